# SPDX-License-Identifier: Apache-2.0
"""Run or fine-tune a locked model with its key.

Features are permuted just before the first block and permuted back just after the last one; the
weights stay locked. Gradients are then the conjugated ones, so an optimiser that works entry by
entry trains the locked model exactly as it would train the plain one, and unlocking the result
gives the fine-tuned plain model.
"""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, NoReturn, Self

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from equivariance.column import permute_columns
from equivariance.heads import attention_heads
from equivariance.keys import Secret
from equivariance.locking.architectures import Stack, block_modules
from equivariance.locking.errors import LockError
from equivariance.locking.lock import read_lock
from equivariance.locking.record import LOCK_KEY, Lock
from equivariance.order import invert
from equivariance.rotary import rotary_module

__all__ = ["KeyInUse", "load_locked", "lock_metadata", "with_key", "with_order"]

_STREAM_NAMES = ("hidden_states", "src", "x")


class KeyInUse:
    """A key that is attached to a model; detach it by `remove`, or at the end of a `with` block.

    The model's `state_dict` neither changes nor holds the key. The model can be copied, but, lest
    the key leave its owner, not pickled while the key is attached.
    """

    def __init__(self, *handles: torch.utils.hooks.RemovableHandle) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Detach the key: the model is the locked one again."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()


def with_key(model: nn.Module, secret: Secret, lock: Lock) -> KeyInUse:
    """Attach the key to a model with locked weights, so that it computes what the plain one does.

    For fine-tuning give the parameters to the optimiser as usual; with the key attached nothing
    else changes. What blocks pass among themselves (hidden states, attention) stays locked.

    Parameters
    ----------
    model : nn.Module
        A timm ViT or another model of `lock.architecture`; its blocks take the features [..., dim]
        first and return them, alone or first in a tuple.
    secret : Secret
        The key.
    lock : Lock
        From `read_lock` or `lock_file`.

    Returns
    -------
    KeyInUse
        Use as `with with_key(model, secret, lock): ...`, or keep it attached.

    Raises
    ------
    LockError
        If it is the wrong key, the model has other blocks, features or heads than the lock says, or
        a key is attached already.
    """
    return with_order(model, lock.order(secret), lock)


def with_order(model: nn.Module, order: Tensor, stack: Stack) -> KeyInUse:
    """Attach a column permutation [dim]: `with_key` for who has the permutation itself.

    For example recovered by `crack`. Parameters and errors are otherwise those of `with_key`.
    """
    blocks = _fitting_blocks(model, stack)
    return KeyInUse(
        blocks[0].register_forward_pre_hook(_Before(order), with_kwargs=True),
        blocks[-1].register_forward_hook(_After(invert(order))),
    )


def load_locked(
    model: nn.Module,
    path: str | PathLike[str],
    secret: Secret,
    *,
    convert: Callable[[dict[str, Tensor], nn.Module], dict[str, Tensor]] | None = None,
) -> KeyInUse:
    """Load a locked file into a model and attach the key.

    Parameters
    ----------
    model : nn.Module
        Changed in place. Its parameters keep their dtype and device.
    path : path
        The locked file.
    secret : Secret
        The key.
    convert : callable, optional
        Takes the tensors and the model and returns the tensors to load. It must leave blocks
        alone; e.g. timm's `checkpoint_filter_fn` resamples positions to another image size.

    Raises
    ------
    LockError
        If it is the wrong key, the file is not locked, or its tensors do not fit the model.
    """
    lock = read_lock(path)
    lock.order(secret, source=str(path))
    _fitting_blocks(model, lock)
    state = load_file(path)
    if convert is not None:
        state = convert(state, model)
    misfits = _misfits(model.state_dict(), state)
    if misfits:
        raise LockError("\n  ".join([f"{path}: does not fit the model:", *misfits]))
    model.load_state_dict(state)
    return with_key(model, secret, lock)


def lock_metadata(lock: Lock) -> dict[str, str]:
    """Return the metadata with which a fine-tuned locked model is saved, so that `unlock` knows it.

    `safetensors.torch.save_file(model.state_dict(), path, metadata=lock_metadata(lock))`
    """
    return {LOCK_KEY: lock.text}


class _Hook:
    """A permutation of features [dim] as a hook; it is no module, so no state_dict shows it."""

    def __init__(self, order: Tensor) -> None:
        self._order = order

    def _permute(self, x: Tensor) -> Tensor:
        self._order = self._order.to(x.device)  # stays where it was last used
        if x.is_nested:  # PyTorch's fast path, by which encoders skip padding
            parts = [permute_columns(part, self._order) for part in x.unbind()]
            return torch.nested.as_nested_tensor(parts)
        return permute_columns(x, self._order)

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a model with its key attached is not pickled; save its state_dict")


class _Before(_Hook):
    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if args:
            return (self._permute(args[0]), *args[1:]), kwargs
        name = next((name for name in _STREAM_NAMES if name in kwargs), None)
        if name is None:
            raise LockError(
                f"the first block takes {', '.join(kwargs) or 'nothing'}: which are the features? "
                f"Known names are {', '.join(_STREAM_NAMES)}; or pass them first, without a name"
            )
        return args, kwargs | {name: self._permute(kwargs[name])}


class _After(_Hook):
    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        if isinstance(output, tuple):
            return (self._permute(output[0]), *output[1:])
        return self._permute(output)


def _misfits(wanted: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> list[str]:
    """List what differs; `load_state_dict` itself finds out after it has changed the model."""
    shapes = [{name: list(tensor.shape) for name, tensor in one.items()} for one in (wanted, given)]
    names = dict.fromkeys((*wanted, *given))
    return [
        f"{name}: {shapes[1].get(name, 'missing')}; the model has {shapes[0].get(name, 'none')}"
        for name in names
        if shapes[0].get(name) != shapes[1].get(name)
    ]


def _fitting_blocks(model: nn.Module, stack: Stack) -> list[nn.Module]:
    """Return the model's blocks, after checking that they are what the lock says."""
    rotary = rotary_module(model) if stack.inner == "headwise" else None
    if rotary is not None:
        raise LockError(
            f"{rotary}: has rotary positions, which pair the features inside a head: inner "
            f"headwise is wrong for them, and a model that is locked so is wrong with its key, too"
        )
    blocks = block_modules(model, stack.architecture)
    _check_heads(blocks.values(), stack)
    shapes = {
        f"{prefix}.{name}": tuple(parameter.shape)
        for prefix, block in blocks.items()
        for name, parameter in block.named_parameters()
    }
    stack.check_shapes(shapes, torch.arange(stack.dim))
    first = next(iter(blocks.values()))
    if any(isinstance(hook, _Hook) for hook in first._forward_pre_hooks.values()):
        raise LockError("the model has a key attached already: remove it first")
    return list(blocks.values())


def _check_heads(blocks: Iterable[nn.Module], stack: Stack) -> None:
    for heads in (heads for block in blocks for heads in attention_heads(block).values()):
        if stack.inner == "headwise" and heads != stack.heads:
            raise LockError(f"locked for {stack.heads} heads; the model has {heads}")
