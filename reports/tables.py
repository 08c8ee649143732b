# SPDX-License-Identifier: Apache-2.0
"""From run folders to pandas: all tables under one name."""

from reports.attack_results import attack_table, over_repeats, strongest, utility_of_settings
from reports.comparison import compare
from reports.cost import bytes_per_image, cost_table, images_per_second
from reports.settings import differing
from reports.study import Study
from reports.table6 import table6
from reports.tradeoff import tradeoff
from reports.utility import Headline, headline, utility_per_attribute, utility_table

__all__ = [
    "Headline",
    "Study",
    "attack_table",
    "bytes_per_image",
    "compare",
    "cost_table",
    "differing",
    "headline",
    "images_per_second",
    "over_repeats",
    "strongest",
    "table6",
    "tradeoff",
    "utility_of_settings",
    "utility_per_attribute",
    "utility_table",
]
