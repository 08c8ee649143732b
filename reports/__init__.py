# SPDX-License-Identifier: Apache-2.0
"""The run folder and the tables made of it.

Figures and reports draw with matplotlib, which a training server does not need: import them from
:mod:`reports.figures` and :mod:`reports.report`.
"""

from reports.attack_results import attack_table
from reports.comparison import compare
from reports.cost import cost_table
from reports.errors import RunFolderError
from reports.run_folder import RunFolder
from reports.study import Study
from reports.table6 import table6
from reports.tradeoff import tradeoff
from reports.utility import utility_per_attribute, utility_table

__all__ = [
    "RunFolder",
    "RunFolderError",
    "Study",
    "attack_table",
    "compare",
    "cost_table",
    "table6",
    "tradeoff",
    "utility_per_attribute",
    "utility_table",
]
