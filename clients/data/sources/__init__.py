# SPDX-License-Identifier: Apache-2.0
"""Where images come from. A new source is a file with a ``Source`` and a line in ``SOURCES``."""

from collections.abc import Mapping
from functools import lru_cache

from ..errors import DataError, did_you_mean
from .base import Source
from .celeba import CelebaFolder
from .hub import HubDataset
from .synthetic import SyntheticFaces

__all__ = ["SOURCES", "Source", "open_source"]

SOURCES: Mapping[str, type[Source]] = {
    "synthetic": SyntheticFaces,
    "celeba": CelebaFolder,
    "hf": HubDataset,
}


@lru_cache(maxsize=8)
def open_source(data: str) -> Source:
    """Return the source that ``scheme:argument`` names, without reading it.

    Raises
    ------
    DataError
        If the scheme is unknown or the argument does not fit it.
    """
    scheme, colon, argument = data.partition(":")
    if scheme not in SOURCES:
        hint = did_you_mean(scheme, tuple(SOURCES))
        raise DataError(f"data = {data!r}: unknown source {scheme!r}; {hint}")
    if not colon or not argument:
        raise DataError(f"data = {data!r}: expected {SOURCES[scheme].usage}")
    return SOURCES[scheme](argument)
