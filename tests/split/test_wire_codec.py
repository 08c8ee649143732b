# SPDX-License-Identifier: Apache-2.0
"""The wire codec: fp32 is exact, fp16 keeps tiny gradients, and nothing not finite is hidden."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from split import WireTensor, decode, encode

quick = settings(deadline=None, max_examples=50, derandomize=True)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@quick
@given(st.lists(floats | st.sampled_from([-0.0, 1e-45, float("inf"), float("nan")]), max_size=9))
def test_fp32_is_exact(values: list[float]) -> None:
    tensor = torch.tensor(values)
    wire = encode(tensor, "fp32")
    assert (wire.payload.dtype, wire.scale, wire.nbytes) == (np.float32, 1.0, 4 * len(values))
    assert torch.equal(decode(wire).view(torch.int32), tensor.view(torch.int32))


@quick
@given(
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=9), st.sampled_from([1e-9, 1.0, 1e30])
)
def test_fp16_is_off_by_half_of_its_last_bit(values: list[float], magnitude: float) -> None:
    tensor = torch.tensor(values, dtype=torch.float64).mul(magnitude).float()
    wire = encode(tensor, "fp16")
    assert (wire.payload.dtype, wire.nbytes) == (np.float16, 2 * len(values))
    error = (decode(wire).double() - tensor.double()).abs()
    largest = tensor.abs().max().double()
    # 11 bits of each value; below 2**-14 of the largest one float16 is subnormal.
    allowed = torch.maximum(tensor.double().abs() * 2**-11, largest * 2**-25)
    assert bool((error <= allowed * 1.001).all())


def test_fp16_keeps_gradients_that_plain_fp16_loses() -> None:
    gradient = torch.randn(4, 5, generator=torch.Generator().manual_seed(0)) * 1e-9
    assert not gradient.half().any()
    torch.testing.assert_close(decode(encode(gradient, "fp16")), gradient, rtol=1e-3, atol=1e-14)


@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_zeros_and_nothing(dtype: str) -> None:
    for shape in [(3, 2), (0, 2)]:
        decoded = decode(encode(torch.zeros(shape), dtype))  # type: ignore[arg-type]
        assert torch.equal(decoded, torch.zeros(shape))


@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_arrives_as_such(dtype: str, bad: float) -> None:
    decoded = decode(encode(torch.tensor([1.0, bad, -2.0]), dtype))  # type: ignore[arg-type]
    assert decoded.isfinite().tolist() == [True, False, True]


def test_any_layout_dtype_and_graph_is_sent_plain() -> None:
    tensor = torch.arange(6.0, dtype=torch.float64, requires_grad=True).view(2, 3).T
    wire = encode(tensor, "fp32")
    assert wire.payload.flags.c_contiguous
    assert torch.equal(decode(wire), tensor.detach().float())


def test_a_read_only_payload_is_copied() -> None:
    payload = np.ones(3, np.float32)
    payload.flags.writeable = False
    decode(WireTensor(payload)).add_(1)
    assert payload.tolist() == [1, 1, 1]
