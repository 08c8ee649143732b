# SPDX-License-Identifier: Apache-2.0
"""An experiment: a name, options, and a function from options to a table."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from equivariance.experiments.options import Options, parse_options

__all__ = ["Experiment"]


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper; its module is imported when it is needed.

    Parameters
    ----------
    module : str
        In this package; it has `run(options) -> DataFrame`.
    options_name : str
        The class of its options there.
    summary : str
        What it shows, in a line.
    """

    module: str
    options_name: str
    summary: str

    @property
    def options(self) -> type[Options]:
        """The class of its options."""
        kind: type[Options] = getattr(self._module(), self.options_name)
        return kind

    def run(self, options: Options) -> pd.DataFrame:
        """Return the table that `results` describes.

        Raises
        ------
        ExperimentError
            If data, model or sizes are not as they must be.
        """
        table: pd.DataFrame = self._module().run(options)
        return table

    def run_with(self, values: Mapping[str, object] | None = None) -> pd.DataFrame:
        """Run with values of options by name, e.g. `{"batch-size": 64}`; texts are parsed."""
        return self.run(parse_options(self.options, values or {}))

    def _module(self) -> Any:
        return importlib.import_module(f"equivariance.experiments.{self.module}")
