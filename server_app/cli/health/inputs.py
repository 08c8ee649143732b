# SPDX-License-Identifier: Apache-2.0
"""What a run reads: images and weights."""

from collections.abc import Iterator
from pathlib import Path

from server_app.cli.health.finding import Examination, Finding

CELEBA = (
    "img_align_celeba", "list_attr_celeba.txt", "list_eval_partition.txt", "identity_CelebA.txt",
)  # fmt: skip


def data_source(examination: Examination) -> Iterator[Finding]:
    """Is the data there?"""
    source, _, place = examination.config.data.partition(":")
    if source == "celeba":
        missing = [name for name in CELEBA if not (Path(place) / name).exists()]
        if missing:
            advice = "give the folder of the official archive: --set data=celeba:/path"
            yield Finding("FAIL", "data", f"{place} lacks {', '.join(missing)}", advice)
        else:
            yield Finding("OK", "data", f"CelebA in {place}")
    elif source == "hf":
        advice = "the first run downloads it; afterwards it is read from the cache"
        yield Finding("WARN", "data", f"{place} comes from the Hugging Face hub", advice)
    else:
        yield Finding("OK", "data", f"{examination.config.data}, made on the fly")


def weights_file(examination: Examination) -> Iterator[Finding]:
    """Are the weights there?"""
    weights = examination.config.weights
    if not weights:
        yield Finding("OK", "weights", "random, from the seed")
    elif weights.partition(":")[0] == "hub":
        advice = "the first run downloads them"
        yield Finding("WARN", "weights", "come from the Hugging Face hub", advice)
    elif Path(weights).is_file():
        size = Path(weights).stat().st_size / 2**20
        yield Finding("OK", "weights", f"{weights}, {size:.1f} MiB")
    else:
        advice = 'give an existing file, or --set weights="" for random ones'
        yield Finding("FAIL", "weights", f"{weights} is no file", advice)
