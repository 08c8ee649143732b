# SPDX-License-Identifier: Apache-2.0
"""One-to-one assignment of least cost (Hungarian method, by scipy)."""

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

__all__ = ["assign"]


def assign(costs: Tensor) -> Tensor:
    """For each row the column it is given, so that the sum of costs is least.

    Parameters
    ----------
    costs : Tensor
        ``[..., n, m]``, finite, on any device; at least as many columns as rows.

    Returns
    -------
    Tensor
        ``[..., n]``, int64, on the CPU: in each matrix different columns (all, if n = m).
    """
    matrices = costs.detach().double().cpu().flatten(0, -3) if costs.ndim > 2 else costs[None]
    plans = [linear_sum_assignment(matrix)[1] for matrix in matrices.double().cpu().numpy()]
    return torch.from_numpy(np.stack(plans)).view(costs.shape[:-1])
