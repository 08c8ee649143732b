# SPDX-License-Identifier: Apache-2.0
"""Files and folders that appear whole or not at all.

Everything is written beside its destination under a hidden name and renamed. Readers ignore hidden
names, so what a killed process leaves behind is never read.
"""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def hidden(path: Path) -> Path:
    """A fresh hidden name beside ``path``, on the same file system."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file ``path`` by ``content``."""
    draft = hidden(path)
    try:
        draft.write_bytes(content)
        os.replace(draft, path)  # noqa: PTH105 - named so that the atomic step is plain to see
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: Path, content: str) -> None:
    """Replace the file ``path`` by ``content``, in UTF-8 with Unix line ends."""
    write_bytes(path, content.encode("utf-8"))


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; it becomes ``path`` when the block ends without an error.

    Raises
    ------
    OSError
        If ``path`` exists and is not an empty folder.
    """
    draft = hidden(path)
    draft.mkdir()
    try:
        yield draft
        draft.rename(path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def remove_folder(path: Path) -> None:
    """Remove a folder with all it holds; it vanishes at once, before its files are deleted."""
    grave = hidden(path)
    path.rename(grave)
    shutil.rmtree(grave)
