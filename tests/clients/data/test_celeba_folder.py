# SPDX-License-Identifier: Apache-2.0
"""The official layout: what is read from it, and every way it can be wrong."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from clients.data import ATTRIBUTES, SPLITS, DataError, DataSpec, check_source, load_dataset
from clients.data.pixels import decode_square
from clients.data.sources.celeba import CelebaFolder

LABELS, PARTS, PEOPLE = "list_attr_celeba.txt", "list_eval_partition.txt", "identity_CelebA.txt"


def test_rows_follow_the_tables(tiny: Path) -> None:
    table = CelebaFolder(str(tiny)).read_table()
    lines = [line.split() for line in (tiny / LABELS).read_text().splitlines()[2:]]
    assert table.image.tolist() == [line[0] for line in lines]
    assert np.array_equal(table.attributes, np.array([line[1:] for line in lines]).astype(int) > 0)
    people = dict(line.split() for line in (tiny / PEOPLE).read_text().splitlines())
    assert table.identity.tolist() == [int(people[name]) for name in table.image]


def test_dataset_has_the_schema(make_spec: Callable[..., DataSpec]) -> None:
    dataset = load_dataset(make_spec())
    assert dataset.column_names == ["index", "identity", "split", "attributes", "image"]
    assert [dataset.features[name].dtype for name in ("index", "identity")] == ["int64", "int64"]
    assert len(dataset[0]["attributes"]) == 40
    assert set(dataset.unique("split")) == set(SPLITS)


def test_order_of_lines_and_columns_is_free(tiny: Path) -> None:
    before = CelebaFolder(str(tiny)).read_table()
    for name in (PARTS, PEOPLE):
        lines = (tiny / name).read_text().splitlines()
        (tiny / name).write_text("\n".join(reversed(lines)) + "\n")
    count, names, *rows = (tiny / LABELS).read_text().splitlines()
    turned = [" ".join([row.split()[0], *reversed(row.split()[1:])]) for row in rows]
    header = " ".join(reversed(names.split()))
    (tiny / LABELS).write_text("\n".join([count, header, *turned]) + "\n")
    after = CelebaFolder(str(tiny)).read_table()
    for name in ("identity", "split", "attributes", "image"):
        assert np.array_equal(getattr(before, name), getattr(after, name)), name


def edit(name: str, old: str, new: str, times: int = 1) -> Callable[[Path], None]:
    """Return what replaces a pattern in a table of the folder."""

    def apply(folder: Path) -> None:
        text, count = re.subn(old, new, (folder / name).read_text(), count=times, flags=re.M)
        assert count
        (folder / name).write_text(text)

    return apply


BAD_FOLDERS = [
    # all that is absent is named at once
    (
        lambda f: [(f / PARTS).unlink(), (f / PEOPLE).unlink()],
        ["missing list_eval_partition.txt, identity_CelebA.txt"],
    ),
    # a column is absent
    (edit(LABELS, "Eyeglasses ", ""), ["line 2: missing attribute columns: Eyeglasses"]),
    # a column is misspelt: both names help
    (edit(LABELS, " Male ", " Mael "), ["missing attribute columns: Male", "unknown.*: Mael"]),
    # a column is there twice
    (edit(LABELS, "^5_o", "Male 5_o"), ["repeated attribute columns: Male"]),
    # the count of line 1 does not fit the rows
    (edit(LABELS, "^48$", "50"), ["line 1: says '50' images, but 48 rows"]),
    # a value is not -1 or 1
    (
        edit(LABELS, r"^(000003.jpg +)-?1", r"\g<1>0"),
        [r"line 5 \(000003.jpg\) 5_o_Clock_Shadow = '0', expected -1 or 1"],
    ),
    # a value is no number
    (edit(LABELS, r"^(000003.jpg +)-?1", r"\1x"), [r"line 5 .*5_o_Clock_Shadow = 'x'"]),
    # a row is too short, or too long
    (edit(LABELS, r" -?1$", ""), [r"line 3 \(000001.jpg\) has 39 values, not 40"]),
    (edit(LABELS, r"^(000002.jpg.*)$", r"\1 1"), ["line 4 .*has 41 values"]),
    # all rows are too long
    (edit(LABELS, r"^(0.*)$", r"\1 1", 0), ["line 3 .*has 41 values.*and 43 more"]),
    # a file without rows
    (lambda f: (f / PEOPLE).write_text(""), ["identity_CelebA.txt: no rows"]),
    # the tables list different images
    (
        edit(PARTS, r"^000007.jpg .\n", ""),
        ["partition.txt: 47 rows, but list_attr_celeba.txt has 48", "1 images not listed: 000007"],
    ),
    (edit(PEOPLE, "^000007", "999999"), ["not listed: 000007.jpg", "1 images not in .*: 999999"]),
    # an image is listed twice
    (edit(PARTS, "^000007", "000008"), ["more than once: 000008.jpg"]),
    # an unknown part, a bad identity
    (edit(PARTS, r"^(000009.jpg) .", r"\1 3"), [r"line 9 .* part = '3', expected 0 or 1 or 2"]),
    (edit(PEOPLE, r"^(000009.jpg) ", r"\1 -"), ["line 9 .* expected a whole number from 0"]),
    # images are absent
    (
        lambda f: [(f / "img_align_celeba" / f"00000{n}.jpg").unlink() for n in range(1, 8)],
        ["7 of 48 listed images missing: 000001.jpg.*000005.jpg and 2 more"],
    ),
    # a person is in two parts
    (edit(PEOPLE, r" \d+$", " 100", 0), [r"identity 100 is in train and validation"]),
    # nothing to train on
    (edit(PARTS, " 0$", " 1", 0), ["no image is in the train split"]),
]


@pytest.mark.parametrize(("spoil", "patterns"), BAD_FOLDERS)
def test_bad_folder_is_named(
    make_spec: Callable[..., DataSpec],
    tiny: Path,
    spoil: Callable[[Path], object],
    patterns: list[str],
) -> None:
    spoil(tiny)
    with pytest.raises(DataError) as raised:
        check_source(make_spec())
    for pattern in patterns:
        assert re.search(pattern, str(raised.value)), str(raised.value)


def test_all_problems_come_together(make_spec: Callable[..., DataSpec], tiny: Path) -> None:
    edit(PARTS, r"^(000009.jpg) .", r"\1 3")(tiny)
    edit(LABELS, r"^(000003.jpg +)-?1", r"\g<1>0")(tiny)
    with pytest.raises(DataError) as raised:
        check_source(make_spec(partition="idd", dirichlet_attribute="male", auxiliary=1.0))
    assert len(raised.value.problems) == 5
    assert "did you mean 'iid'?" in str(raised.value)
    assert "did you mean 'Male'?" in str(raised.value)


def test_centre_square_is_resized_antialiased(tmp_path: Path) -> None:
    pixels = np.zeros((218, 178, 3), np.uint8)
    pixels[:20], pixels[198:] = 255, 255  # outside of the central square
    pixels[20:198, ::2] = 200  # stripes of one pixel: their mean is 100
    Image.fromarray(pixels).save(tmp_path / "image.png")
    square = decode_square(tmp_path / "image.png", 16)
    assert square.shape == (16, 16, 3)
    assert square.dtype == np.uint8
    assert np.abs(square.astype(int) - 100).max() <= 10


def test_attributes_are_celebas() -> None:
    assert len(ATTRIBUTES) == 40
    assert (ATTRIBUTES[0], ATTRIBUTES[20], ATTRIBUTES[39]) == ("5_o_Clock_Shadow", "Male", "Young")
