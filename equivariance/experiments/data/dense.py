# SPDX-License-Identifier: Apache-2.0
"""Images with a class for every pixel: computed shapes, or the layout of ADE20K."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from pydantic import Field

from equivariance.experiments.data.images import ImageData, normalised, read_image
from equivariance.experiments.data.shapes import SHAPES, draw_shapes
from equivariance.experiments.errors import ExperimentError
from equivariance.experiments.examples import Examples
from equivariance.experiments.models.vit import ViTOptions
from equivariance.experiments.options import synthetic_count

__all__ = ["IGNORED", "DenseOptions", "load_dense"]

IGNORED = -100
"""Label of pixels that do not count, as in torch's losses."""


class DenseOptions(ViTOptions):
    """Where images and their masks come from."""

    data: str = Field(
        "synthetic:300",
        description="synthetic:N, or a folder of images/{training,validation}/*.jpg and "
        "annotations/{training,validation}/*.png, where 0 is ignored (ADE20K).",
    )
    test_images: int = Field(60, ge=0, description="At most so many to test on; 0: all.")


def load_dense(options: DenseOptions) -> ImageData:
    """Load both splits; labels are [M, side, side].

    Raises
    ------
    ExperimentError
        If there is no such source or folder, or images lack their annotation.
    """
    count = synthetic_count(options.data)
    if count is None:
        return _folder(Path(options.data).expanduser(), options)
    prepare = normalised(options.torch_dtype)
    splits = []
    for number, seed in ((count, 2 * options.seed), (60, 2 * options.seed + 1)):
        images, _, masks = draw_shapes(number, options.image_size, seed=seed)
        splits.append(Examples({"x": images}, masks, prepare).shuffled(options.seed))
    train, test = splits
    return ImageData(
        train.first(options.train_images), test.first(options.test_images), 1 + len(SHAPES)
    )


def _folder(root: Path, options: DenseOptions) -> ImageData:
    splits = []
    for split, limit in (
        ("training", options.train_images),
        ("validation", options.test_images),
    ):
        place = root / "images" / split
        if not place.is_dir():
            raise ExperimentError(
                f"data = {options.data}: allowed are synthetic:N, or a folder with "
                f"images/{{training,validation}} and annotations/{{training,validation}}"
            )
        paths = sorted(place.glob("*.jpg"))
        missing = [p.name for p in paths if not _annotation(root, split, p).is_file()]
        if not paths or missing:
            fault = f"no annotation for {', '.join(missing[:3])}" if missing else "no *.jpg"
            raise ExperimentError(f"data = {options.data}: {split}: {fault}")
        chosen = torch.randperm(len(paths), generator=torch.Generator().manual_seed(options.seed))
        kept = [paths[i] for i in chosen[: limit or len(paths)].tolist()]
        images, masks = zip(*_pairs(root, split, kept, options.image_size), strict=True)
        prepare = normalised(options.torch_dtype)
        splits.append(Examples({"x": torch.stack(images)}, torch.stack(masks), prepare))
    train, test = splits
    return ImageData(train, test, 1 + int(max(train.labels.max(), test.labels.max())))


def _annotation(root: Path, split: str, image: Path) -> Path:
    return root / "annotations" / split / f"{image.stem}.png"


def _pairs(
    root: Path, split: str, paths: list[Path], side: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for path in paths:
        image, annotation = read_image(path, side), _annotation(root, split, path)
        try:
            with Image.open(annotation) as mask:
                small = mask.resize((side, side), Image.Resampling.NEAREST)
                classes = np.asarray(small, np.int64)
        except (OSError, ValueError, SyntaxError) as error:
            raise ExperimentError(f"{annotation}: cannot be read as an image: {error}") from error
        if classes.ndim != 2:
            raise ExperimentError(f"{annotation}: wants one channel, the number of the class")
        yield image, torch.from_numpy(np.where(classes == 0, IGNORED, classes - 1))
