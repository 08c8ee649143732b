# SPDX-License-Identifier: Apache-2.0
"""Options of experiments: frozen, typed; the defaults run offline in about a minute."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self, TypeVar, get_args

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from equivariance.experiments.errors import ExperimentError

__all__ = ["DType", "Options", "describe_options", "parse_options", "synthetic_count"]

T = TypeVar("T", bound="Options")
DType = Literal["float64", "float32"]


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class Options(BaseModel):
    """What all experiments share. Attribute `batch_size` is the option `batch-size`."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        alias_generator=_kebab,
        populate_by_name=True,
    )

    seed: int = Field(0, ge=0, lt=2**32, description="Decides data, weights, batches and keys.")
    dtype: DType = Field("float64", description="Precision; decides the tolerances.")
    device: str = Field("cpu", description="Torch device, such as cuda.")

    @field_validator("device")
    @classmethod
    def _exists(cls, device: str) -> str:
        try:
            torch.zeros(1, device=device).item()  # meta has no numbers
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise ValueError(f"torch cannot use it: {str(error).splitlines()[0]}") from error
        return device

    @classmethod
    def of(cls, **values: object) -> Self:
        """Validate values by attribute name; ExperimentError lists all problems."""
        return parse_options(cls, {_kebab(name): value for name, value in values.items()})

    @property
    def torch_dtype(self) -> torch.dtype:
        """The precision as torch has it."""
        return torch.float64 if self.dtype == "float64" else torch.float32


def synthetic_count(place: str) -> int | None:
    """Return N of `synthetic:N`, or None if a value of `data` is something else.

    Raises
    ------
    ExperimentError
        If N is no whole number of at least 10.
    """
    kind, _, count = place.partition(":")
    if kind != "synthetic":
        return None
    if not (count.isascii() and count.isdigit()) or int(count) < 10:
        raise ExperimentError(f"data = {place}: synthetic:N wants N of at least 10")
    return int(count)


def parse_options(kind: type[T], values: Mapping[str, object]) -> T:
    """Validate values, texts included, and return the frozen options.

    Parameters
    ----------
    kind : type
        The experiment's options.
    values : mapping of str to object
        By option name (kebab-case), e.g. `{"batch-size": "64"}`.

    Raises
    ------
    ExperimentError
        With every problem: unknown options, wrong types, values out of bounds.
    """
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        problems = [f"  - {_problem(kind, detail, values)}" for detail in error.errors()]
        raise ExperimentError("\n".join(["cannot use these options:", *problems])) from error


def describe_options(kind: type[Options]) -> Iterator[tuple[str, str, str, str]]:
    """Give each option's name, what is allowed, its default and its meaning."""
    for name, field in kind.model_fields.items():
        yield _kebab(name), _allowed(field), str(field.default) or '""', field.description or ""


def _problem(kind: type[Options], detail: ErrorDetails, values: Mapping[str, object]) -> str:
    key = str(detail["loc"][0]) if detail["loc"] else "options"
    names = [_kebab(name) for name in kind.model_fields]
    if detail["type"] == "extra_forbidden":
        close = difflib.get_close_matches(key, names, n=1)
        hint = f"did you mean {close[0]}?" if close else f"allowed are {', '.join(names)}"
        return f"{key} = {values.get(key)}: unknown option; {hint}"
    message = detail["msg"]
    return f"{key} = {values.get(key)}: {message[0].lower()}{message[1:]}"


def _allowed(field: FieldInfo) -> str:
    choices = get_args(field.annotation)
    if choices:
        return " | ".join(str(choice) for choice in choices)
    kind: Any = field.annotation
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    bounds = [
        f"{sign} {getattr(rule, name)}"
        for rule in field.metadata
        for name, sign in signs.items()
        if hasattr(rule, name)
    ]
    return ", ".join([kind.__name__, *bounds])
