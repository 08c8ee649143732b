# SPDX-License-Identifier: Apache-2.0
"""Operations and bytes are what shapes say, views and freed tensors included."""

import torch

from equivariance import permute_columns, permute_rows
from equivariance.experiments.dense import dense_columns, dense_rows
from equivariance.experiments.measure import count_flops, peak_bytes, seconds

FLOAT_BYTES = 4


def test_a_product_counts_two_operations_a_term() -> None:
    x = torch.randn(3, 5, requires_grad=True)
    weight = torch.randn(5, 7, requires_grad=True)
    assert count_flops(lambda: x @ weight) == 2 * 3 * 5 * 7
    assert count_flops(lambda: (x @ weight).sum().backward()) == 3 * 2 * 3 * 5 * 7


def test_bytes_alive_at_once() -> None:
    x = torch.randn(100)

    def chain() -> torch.Tensor:
        for _ in range(5):
            y = x + 1  # the previous y lives until this is done
        return y

    def views() -> torch.Tensor:
        y = x + 1
        return y.view(10, 10).T[2:]

    assert peak_bytes(chain) == 2 * 100 * FLOAT_BYTES
    assert peak_bytes(views) == 100 * FLOAT_BYTES
    assert peak_bytes(lambda: x.view(10, 10)) == 0
    assert peak_bytes(lambda: x.add_(1)) == 0


def test_gradients_count_and_shapes_suffice() -> None:
    weight = torch.empty(100, device="meta", requires_grad=True)
    assert peak_bytes(lambda: weight.exp().sum().backward()) >= 2 * 100 * FLOAT_BYTES
    assert weight.grad is not None
    assert weight.grad.is_meta


def test_an_index_costs_nothing_and_is_the_dense_product() -> None:
    x = torch.randn(2, 6, 4, requires_grad=True)
    rows, columns = torch.randperm(6), torch.randperm(4)
    for order, index, dense, cost in (
        (rows, permute_rows, dense_rows, 2 * 2 * 6 * 6 * 4),
        (columns, permute_columns, dense_columns, 2 * 2 * 6 * 4 * 4),
    ):
        do, undo = dense(order, torch.float32)
        assert torch.equal(do(x), index(x, order))
        assert torch.equal(undo(do(x)), x)
        assert count_flops(lambda do=do: do(x).sum().backward()) == 2 * cost
        by_index = count_flops(lambda index=index, order=order: index(x, order).sum().backward())
        assert by_index == 0


def test_work_is_repeated_after_a_warm_up() -> None:
    calls: list[int] = []
    assert seconds(lambda: calls.append(1), repeat=3) >= 0
    assert len(calls) == 4
