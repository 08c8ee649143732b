# SPDX-License-Identifier: Apache-2.0
"""Images and feature grids as rows of patches, and back."""

from torch import Tensor

__all__ = ["fold_patches", "unfold_patches"]


def unfold_patches(grid_BCHW: Tensor, patch: int) -> Tensor:
    """Cut a grid into patches.

    Parameters
    ----------
    grid_BCHW : Tensor
        ``[B, C, H, W]``; ``patch`` divides H and W.
    patch : int
        Side of a patch.

    Returns
    -------
    Tensor
        ``[B, n, C patch patch]``: patches row by row of the grid, values by channel, row, column.
    """
    batch, channels, height, width = grid_BCHW.shape
    rows, columns = height // patch, width // patch
    cells = grid_BCHW.reshape(batch, channels, rows, patch, columns, patch)
    return cells.permute(0, 2, 4, 1, 3, 5).reshape(batch, rows * columns, -1)


def fold_patches(patches_BnP: Tensor, patch: int, height: int, width: int) -> Tensor:
    """The inverse of :func:`unfold_patches`: ``[B, C, height, width]``."""
    batch, rows, columns = len(patches_BnP), height // patch, width // patch
    cells = patches_BnP.reshape(batch, rows, columns, -1, patch, patch)
    return cells.permute(0, 3, 1, 4, 2, 5).reshape(batch, -1, height, width)
