# SPDX-License-Identifier: Apache-2.0
"""Which architecture a model is: by the classes of its modules, else by the names it gives."""

from collections.abc import Iterable, Mapping

from torch import nn

from equivariance.rules.architecture import Architecture, Scope
from equivariance.rules.registry import ARCHITECTURES
from equivariance.rules.rule import Rule

__all__ = ["UnknownArchitectureError", "architecture_of", "rules_for"]


class UnknownArchitectureError(ValueError):
    """No architecture's rules cover the model; the message says which are known, and why not."""


def rules_for(
    model: nn.Module | Mapping[str, object] | Iterable[str], *, scope: Scope = "blocks"
) -> tuple[Rule, ...]:
    """Find the rules that say what conjugation does to each parameter of a model.

    Parameters
    ----------
    model : nn.Module, mapping by name, or iterable of str
        A whole model, a stack of blocks or one block; or its state dict, or its parameters' names.
    scope : {"blocks", "model"}
        What becomes of the parameters outside the blocks: see `Architecture.rules`.

    Returns
    -------
    tuple of Rule
        For `conjugate_state`, `conjugate_`, `conjugate_tensor` and `conjugate_optimizer_`.

    Raises
    ------
    UnknownArchitectureError
        If no architecture fits.
    ValueError
        If the scope is unknown.
    """
    return architecture_of(model).rules(scope)


def architecture_of(model: nn.Module | Mapping[str, object] | Iterable[str]) -> Architecture:
    """Find a model's architecture; parameters and errors are those of `rules_for`.

    A module with blocks of one known class is of that class's architecture, whatever its other
    parameters are called: those without a rule are listed when they are conjugated. Otherwise all
    names must have a rule.
    """
    if isinstance(model, nn.Module):
        found = _by_type(model)
        if found is not None:
            return found
        model = [name for name, _ in (*model.named_parameters(), *model.named_buffers())]
    return _by_names(list(model))


def _by_type(model: nn.Module) -> Architecture | None:
    classes = {
        f"{base.__module__}.{base.__qualname__}"
        for module in model.modules()
        for base in type(module).__mro__
    }
    found = [a for a in ARCHITECTURES.values() if not a.types.isdisjoint(classes)]
    if len(found) > 1:
        names = ", ".join(architecture.name for architecture in found)
        raise UnknownArchitectureError(
            f"the model has blocks of several architectures: {names}; conjugate each by itself"
        )
    return found[0] if found else None


def _by_names(names: list[str]) -> Architecture:
    known = ", ".join(ARCHITECTURES)
    if not names:
        raise UnknownArchitectureError(f"the model has no parameters; known are: {known}")
    missing = {key: _without_rule(names, a) for key, a in ARCHITECTURES.items()}
    nearest = min(missing, key=lambda key: len(missing[key]))
    if not missing[nearest]:
        return ARCHITECTURES[nearest]
    text = f"no architecture's rules cover the model; known are: {known}"
    if len(missing[nearest]) < len(names):
        text += f"; these parameters have no rule in {nearest}, the nearest:"
        text = "\n  ".join([text, *missing[nearest]])
    raise UnknownArchitectureError(text)


def _without_rule(names: Iterable[str], architecture: Architecture) -> list[str]:
    rules = architecture.rules("model")
    return [name for name in names if not any(rule.pattern.fullmatch(name) for rule in rules)]
