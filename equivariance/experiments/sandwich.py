# SPDX-License-Identifier: Apache-2.0
"""The paper's sandwich Y = F2(P_R^-1 T_(C)(Z_(P)) P_C^-1) around the blocks of a model as it is.

Features are permuted before the first block and permuted back after the last one, by hooks, so
that any model whose blocks take [B, N, D] first can be measured. Attention masks that a block is
given, [B or 1, heads or 1, N or 1, N], are permuted along with the tokens.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

from torch import Tensor, nn

from equivariance.column import permute_columns, unpermute_columns
from equivariance.keys import Secret
from equivariance.rotation import Rotation, row_orders
from equivariance.row import permute_rows, unpermute_rows

__all__ = ["RowOrders", "fresh_rows", "permuted"]

RowOrders = Callable[[Tensor], Tensor]
"""From features [B, N, D] about to be permuted to their row order [N] or [B, N]."""


def fresh_rows(
    secret: Secret, *, rotation: Rotation = "sample", purpose: str = "train"
) -> RowOrders:
    """Return row orders that change with every call, as `row_orders` with the call as its step."""
    steps = count()

    def draw(x_BND: Tensor) -> Tensor:
        return row_orders(
            secret,
            rotation=rotation,
            purpose=purpose,
            round=0,
            step=next(steps),
            batch=x_BND.shape[0],
            tokens=x_BND.shape[1],
            device=x_BND.device,
        )

    return draw


@contextmanager
def permuted(
    blocks: Sequence[nn.Module],
    *,
    rows: RowOrders | None = None,
    columns: Tensor | None = None,
    masks: bool = True,
) -> Iterator[None]:
    """Permute what runs through a stack of blocks, and permute it back behind.

    Parameters
    ----------
    blocks : sequence of nn.Module
        In the order in which they run.
    rows : callable, optional
        Draws the row order of each forward pass.
    columns : Tensor, optional
        Column permutation [D]; the blocks' weights are to be conjugated by it.
    masks : bool
        Permute attention masks along with the tokens. False is a negative control.
    """
    around = _Around(rows, columns)
    handles = [blocks[0].register_forward_pre_hook(around.enter, with_kwargs=True)]
    if masks:
        hook = around.permute_masks
        handles += [block.register_forward_pre_hook(hook, with_kwargs=True) for block in blocks]
    handles.append(blocks[-1].register_forward_hook(around.leave))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


_Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class _Around:
    """The hooks of one stack; holds the row order of the forward pass under way."""

    def __init__(self, rows: RowOrders | None, columns: Tensor | None) -> None:
        self._rows, self._columns = rows, columns
        self._order: Tensor | None = None

    def enter(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> _Arguments:
        x, *others = args
        if self._rows is not None:
            self._order = self._rows(x)
            x = permute_rows(x, self._order)
        if self._columns is not None:
            x = permute_columns(x, self._columns.to(x.device))
        return (x, *others), dict(kwargs)

    def permute_masks(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> _Arguments:
        return tuple(map(self._mask, args)), {k: self._mask(v) for k, v in kwargs.items()}

    def leave(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        x, *others = output if isinstance(output, tuple) else (output,)
        if self._columns is not None:
            x = unpermute_columns(x, self._columns.to(x.device))
        if self._order is not None:
            x = unpermute_rows(x, self._order)
        return (x, *others) if isinstance(output, tuple) else x

    def _mask(self, value: Any) -> Any:
        order = self._order
        if order is None or not isinstance(value, Tensor) or value.ndim != 4:
            return value
        tokens, samples = order.shape[-1], order.numel() // order.shape[-1]
        if value.shape[-1] != tokens:
            return value
        mask = value.expand(max(value.shape[0], samples), *value.shape[1:])
        order_BN = order.expand(mask.shape[0], tokens)
        mask = mask.gather(-1, order_BN[:, None, None, :].expand(mask.shape))
        if mask.shape[-2] == tokens:
            mask = mask.gather(-2, order_BN[:, None, :, None].expand(mask.shape))
        return mask
