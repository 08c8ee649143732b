# SPDX-License-Identifier: Apache-2.0
"""Data of experiments: computed alike every time, read as documented, refused by one message."""

import json
import re
from pathlib import Path

import pytest
import torch
from datasets import ClassLabel, Dataset, DatasetDict, Features
from datasets import Image as ImageFeature
from PIL import Image

from equivariance.experiments import ExperimentError
from equivariance.experiments.data.dense import IGNORED, DenseOptions, load_dense
from equivariance.experiments.data.images import ImageOptions, load_images
from equivariance.experiments.data.sentences import prose, reviews, sentence_pairs
from equivariance.experiments.data.shapes import SHAPES, draw_shapes
from equivariance.experiments.data.texts import TextOptions, load_pairs, load_prose, load_reviews
from equivariance.experiments.examples import Examples, batches, sequential


def test_shapes_follow_from_seed_and_index() -> None:
    images, labels, masks = draw_shapes(20, 16, seed=3)
    again, _, _ = draw_shapes(12, 16, seed=3)
    assert torch.equal(images[:12], again)
    assert not torch.equal(images, draw_shapes(20, 16, seed=4)[0])
    assert labels.bincount().tolist() == [2] * len(SHAPES)
    for label, mask in zip(labels, masks, strict=True):
        assert set(mask.unique().tolist()) == {0, 1 + int(label)}
    # A shape is brighter than its background.
    inside = masks.unsqueeze(1).expand_as(images) > 0
    assert images[inside].float().mean() > 2 * images[~inside].float().mean()


def test_images_of_a_folder(tmp_path: Path) -> None:
    for split, count in (("train", 3), ("test", 2)):
        for value, name in ((0, "dark"), (255, "light")):
            (tmp_path / split / name).mkdir(parents=True)
            for index in range(count):
                path = tmp_path / split / name / f"{index}.png"
                Image.new("RGB", (10, 12), (value,) * 3).save(path)
    data = load_images(ImageOptions.of(data=str(tmp_path), image_size=8))
    assert (len(data.train), len(data.test), data.classes) == (6, 4, 2)
    inputs, labels = next(sequential(data.test, size=4, device="cpu"))
    assert inputs["x"].dtype == torch.float64
    few = load_images(ImageOptions.of(data=str(tmp_path), train_images=2, image_size=8))
    assert (len(few.train), len(few.test)) == (2, 4)
    # Classes in alphabetic order, bytes scaled to -1 .. 1.
    assert torch.equal(inputs["x"].mean((1, 2, 3)), 2.0 * labels - 1)


def test_images_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    images = [Image.new("RGB", (9, 9), (value,) * 3) for value in (0, 255, 0, 255)]
    features = Features({"img": ImageFeature(), "label": ClassLabel(names=["dark", "light"])})
    part = Dataset.from_dict({"img": images, "label": [0, 1, 0, 1]}, features=features)
    names: list[str] = []

    def load(name: str) -> DatasetDict:
        names.append(name)
        return DatasetDict({"train": part, "validation": part})

    monkeypatch.setattr("datasets.load_dataset", load)
    data = load_images(ImageOptions.of(data="hf:some/images", image_size=8, test_images=3))
    assert names == ["some/images"]
    assert (len(data.train), len(data.test), data.classes) == (4, 3, 2)
    inputs, labels = next(sequential(data.train, size=4, device="cpu"))
    assert torch.equal(inputs["x"].mean((1, 2, 3)), 2.0 * labels - 1)
    monkeypatch.setattr("datasets.load_dataset", lambda name: DatasetDict({"train": part}))
    with pytest.raises(ExperimentError, match="wants an image, a label and a test split"):
        load_images(ImageOptions.of(data="hf:some/images"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("nowhere", "allowed are synthetic:N, hf:NAME, or a folder"),
        ("synthetic:9", "wants N of at least 10"),
        ("synthetic:x", "wants N of at least 10"),
    ],
)
def test_images_that_are_not_there(data: str, message: str) -> None:
    with pytest.raises(ExperimentError, match=re.escape(message)):
        load_images(ImageOptions.of(data=data))
    if data != "nowhere":
        with pytest.raises(ExperimentError, match=re.escape(message)):
            load_dense(DenseOptions.of(data=data))


def test_dense_labels_in_the_layout_of_ade20k(tmp_path: Path) -> None:
    for split in ("training", "validation"):
        for kind in ("images", "annotations"):
            (tmp_path / kind / split).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "images" / split / "one.jpg")
        mask = Image.new("L", (8, 8), 0)
        mask.paste(3, (0, 0, 8, 4))
        mask.save(tmp_path / "annotations" / split / "one.png")
    data = load_dense(DenseOptions.of(data=str(tmp_path), image_size=8))
    assert data.classes == 3
    assert data.test.labels[0, 0, 0] == 2
    assert data.test.labels[0, 7, 0] == IGNORED
    (tmp_path / "annotations" / "validation" / "one.png").unlink()
    with pytest.raises(ExperimentError, match=r"validation: no annotation for one\.jpg"):
        load_dense(DenseOptions.of(data=str(tmp_path)))


def test_computed_text_follows_from_the_seed() -> None:
    assert reviews(5, seed=1) == reviews(9, seed=1)[:5] != reviews(5, seed=2)
    assert [label for _, label in reviews(4, seed=0)] == [0, 1, 0, 1]
    assert [label for *_, label in sentence_pairs(6, seed=0)] == [0, 1, 2, 0, 1, 2]
    assert prose(2, seed=0) == prose(2, seed=0) != prose(2, seed=1)
    premise, hypothesis, _ = sentence_pairs(1, seed=0)[0]
    assert hypothesis not in premise


def test_text_files(tmp_path: Path) -> None:
    options = TextOptions.of()
    records = [{"text": "one\u2028line", "label": 1}, {"text": "b", "label": 0}]
    (tmp_path / "a.jsonl").write_text(
        "\n".join(json.dumps(record, ensure_ascii=False) for record in records), encoding="utf-8"
    )
    (tmp_path / "a.tsv").write_text("p q\th\t2\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text(" = A = \n\nword .\n", encoding="utf-8")
    assert load_reviews(options, str(tmp_path / "a.jsonl")) == [("one\u2028line", 1), ("b", 0)]
    assert load_pairs(options, str(tmp_path / "a.tsv")) == [("p q", "h", 2)]
    assert load_prose(options, str(tmp_path / "a.txt"), seed=0) == " = A = \nword ."


def test_text_that_cannot_be_read_is_named_with_its_line(tmp_path: Path) -> None:
    options = TextOptions.of()
    (tmp_path / "bad.jsonl").write_text('{"text": "a", "label": 1}\n{"text": 1}\n')
    (tmp_path / "bad.tsv").write_text("only\ttwo\n")
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(ExperimentError, match="line 2: wants an object with text and label"):
        load_reviews(options, str(tmp_path / "bad.jsonl"))
    with pytest.raises(ExperimentError, match="line 1: wants premise, hypothesis and label"):
        load_pairs(options, str(tmp_path / "bad.tsv"))
    with pytest.raises(ExperimentError, match="is empty"):
        load_prose(options, str(tmp_path / "empty.txt"), seed=0)
    with pytest.raises(ExperimentError, match=r"allowed are synthetic:N or a file \*.jsonl"):
        load_reviews(options, str(tmp_path / "bad.tsv"))
    with pytest.raises(ExperimentError, match="cannot be read"):
        load_pairs(options, str(tmp_path / "none.tsv"))


def test_parts_are_disjoint_and_batches_repeat() -> None:
    examples = Examples({"x": torch.arange(10)}, torch.arange(10))
    train, test = examples.split(0.3, seed=1)
    assert sorted([*train.labels.tolist(), *test.labels.tolist()]) == list(range(10))
    assert len(test) == 3
    found = list(batches(examples, size=4, steps=5, seed=2, device="cpu"))
    again = list(batches(examples, size=4, steps=5, seed=2, device="cpu"))
    for (inputs, labels), (_, other) in zip(found, again, strict=True):
        assert torch.equal(inputs["x"], labels)
        assert torch.equal(labels, other)
        assert len(labels.unique()) == 4
    assert torch.cat([labels for _, labels in found[:2]]).unique().numel() == 8


def test_broken_images_are_named(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for name in ("a", "b"):
            (tmp_path / split / name).mkdir(parents=True)
            Image.new("RGB", (8, 8)).save(tmp_path / split / name / "0.png")
    broken = tmp_path / "test" / "b" / "0.png"
    broken.write_bytes(broken.read_bytes()[:40])
    with pytest.raises(ExperimentError, match=r"test/b/0\.png: cannot be read as an image"):
        load_images(ImageOptions.of(data=str(tmp_path)))


@pytest.mark.parametrize("place", ["synthetic:\u00b2", "synthetic:9", "synthetic:", "synthetic:-1"])
def test_counts_are_whole_numbers(place: str) -> None:
    message = f"data = {place}: synthetic:N wants N of at least 10"
    with pytest.raises(ExperimentError, match=message):
        load_images(ImageOptions.of(data=place))
    with pytest.raises(ExperimentError, match=message):
        load_dense(DenseOptions.of(data=place))
    with pytest.raises(ExperimentError, match=message):
        load_pairs(TextOptions.of(), place)


@pytest.mark.parametrize("label", ["3", "\u00b2", "-1", "entailment"])
def test_labels_of_pairs_are_0_1_or_2(tmp_path: Path, label: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(f"a\tb\t0\nc\td\t{label}\n", encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"line 2: wants .* label \(0, 1 or 2\)"):
        load_pairs(TextOptions.of(), str(path))


@pytest.mark.parametrize("share", [0.001, 0.5, 0.999])
def test_neither_part_of_a_split_is_empty(share: float) -> None:
    examples = Examples({"x": torch.arange(10)}, torch.arange(10))
    kept, held = examples.split(share, 0)
    assert len(kept) > 0 < len(held)
    assert sorted([*kept.labels.tolist(), *held.labels.tolist()]) == list(range(10))
    with pytest.raises(ExperimentError, match="1 example: cannot be split"):
        examples.first(1).split(share, 0)
