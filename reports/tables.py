# SPDX-License-Identifier: Apache-2.0
"""From run folders to pandas: all tables under one name."""

from reports.comparison import attack_table, compare, differing
from reports.cost import bytes_per_image, cost_table, images_per_second
from reports.utility import Headline, headline, utility_per_attribute, utility_table

__all__ = [
    "Headline",
    "attack_table",
    "bytes_per_image",
    "compare",
    "cost_table",
    "differing",
    "headline",
    "images_per_second",
    "utility_per_attribute",
    "utility_table",
]
