# SPDX-License-Identifier: Apache-2.0
"""Labelled images for classification: computed, from a folder, or from the hub."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from pydantic import Field
from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor

from equivariance.experiments.data.shapes import draw_shapes
from equivariance.experiments.errors import ExperimentError
from equivariance.experiments.examples import Examples, Inputs
from equivariance.experiments.options import Options, synthetic_count

__all__ = ["ImageData", "ImageOptions", "load_images", "normalised", "read_image"]

_SUFFIXES = {".png", ".jpg", ".jpeg"}


class ImageOptions(Options):
    """Where images come from."""

    data: str = Field(
        "synthetic:1000",
        description="synthetic:N, hf:NAME, or a folder of train/CLASS/* and test/CLASS/*.",
    )
    image_size: int = Field(32, ge=8, le=1024, description="Side of the square images, in pixels.")
    train_images: int = Field(0, ge=0, description="At most so many to train on; 0: all.")
    test_images: int = Field(200, ge=0, description="At most so many to test on; 0: all.")


@dataclass(frozen=True)
class ImageData:
    """A training and a test split and the number of classes."""

    train: Examples
    test: Examples
    classes: int


def load_images(options: ImageOptions) -> ImageData:
    """Load both splits as uint8 [M, 3, side, side], in memory; batches are float in -1 .. 1.

    Raises
    ------
    ExperimentError
        If there is no such source, folder or split.
    """
    kind, _, place = options.data.partition(":")
    count = synthetic_count(options.data)
    if count is not None:
        data = _synthetic(count, options)
    elif kind == "hf" and place:
        data = _hub(place, options)
    else:
        data = _folder(Path(options.data).expanduser(), options)
    train = data.train.shuffled(options.seed).first(options.train_images)
    return ImageData(
        train, data.test.shuffled(options.seed).first(options.test_images), data.classes
    )


def normalised(
    dtype: torch.dtype, *, mean: float | Tensor = 0.5, deviation: float | Tensor = 0.5
) -> Callable[[Inputs], Inputs]:
    """Return what turns stored bytes `x` into normalised floats; by default -1 .. 1."""

    def prepare(inputs: Inputs) -> Inputs:
        return {"x": (inputs["x"].to(dtype) / 255 - mean) / deviation}

    return prepare


def _synthetic(count: int, options: ImageOptions) -> ImageData:
    tests = max(options.test_images, 100)
    train, test = (
        _examples(*draw_shapes(n, options.image_size, seed=seed)[:2], options)
        for n, seed in ((count, 2 * options.seed), (tests, 2 * options.seed + 1))
    )
    return ImageData(train, test, 10)


def _folder(root: Path, options: ImageOptions) -> ImageData:
    places = {split: root / split for split in ("train", "test")}
    if not all(place.is_dir() for place in places.values()):
        raise ExperimentError(
            f"data = {options.data}: allowed are synthetic:N, hf:NAME, "
            f"or a folder with train/CLASS/* and test/CLASS/*"
        )
    classes = sorted(place.name for place in places["train"].iterdir() if place.is_dir())
    if len(classes) < 2:
        raise ExperimentError(f"{places['train']}: wants a folder for each of two or more classes")
    train = _class_folders(places["train"], classes, options.train_images, options)
    test = _class_folders(places["test"], classes, options.test_images, options)
    return ImageData(train, test, len(classes))


def _class_folders(place: Path, classes: list[str], limit: int, options: ImageOptions) -> Examples:
    paths = [
        (path, label)
        for label, name in enumerate(classes)
        for path in sorted((place / name).glob("*"))
        if path.suffix.lower() in _SUFFIXES
    ]
    if not paths:
        raise ExperimentError(f"{place}: has no .png or .jpg in folders {', '.join(classes)}")
    chosen = [paths[index] for index in _chosen(len(paths), limit, options)]
    images = torch.stack([read_image(path, options.image_size) for path, _ in chosen])
    return _examples(images, torch.tensor([label for _, label in chosen]), options)


def _hub(name: str, options: ImageOptions) -> ImageData:
    from datasets import Image as ImageFeature
    from datasets import load_dataset

    try:
        splits = load_dataset(name)
    except Exception as error:  # network, name and format errors have no common base
        raise ExperimentError(f"data = hf:{name}: cannot be loaded: {error}") from error
    features = splits["train"].features
    image = next((key for key in features if isinstance(features[key], ImageFeature)), None)
    label = next((key for key in ("label", "fine_label", "labels") if key in features), None)
    test = next((split for split in ("test", "validation") if split in splits), None)
    if image is None or label is None or test is None:
        raise ExperimentError(f"data = hf:{name}: wants an image, a label and a test split")
    loaded = []
    for split, limit in (("train", options.train_images), (test, options.test_images)):
        part = splits[split].select(_chosen(len(splits[split]), limit, options))
        images = torch.stack([_resized(row[image], options.image_size) for row in part])
        loaded.append(_examples(images, torch.tensor(list(part[label])), options))
    return ImageData(loaded[0], loaded[1], 1 + int(max(part.labels.max() for part in loaded)))


def _chosen(count: int, limit: int, options: ImageOptions) -> list[int]:
    """Choose before decoding: all of a large set may not fit in memory."""
    generator = torch.Generator().manual_seed(options.seed)
    found: list[int] = torch.randperm(count, generator=generator)[: limit or count].tolist()
    return found


def read_image(path: Path, side: int) -> Tensor:
    """Read an image file as bytes [3, side, side]; ExperimentError if it is broken."""
    try:
        with Image.open(path) as image:
            return _resized(image, side)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ExperimentError(f"{path}: cannot be read as an image: {error}") from error


def _resized(image: Image.Image, side: int) -> Tensor:
    small = image.convert("RGB").resize((side, side), Image.Resampling.BICUBIC)
    found: Tensor = pil_to_tensor(small)
    return found


def _examples(images: Tensor, labels: Tensor, options: ImageOptions) -> Examples:
    return Examples({"x": images}, labels, normalised(options.torch_dtype))
