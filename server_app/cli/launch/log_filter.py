# SPDX-License-Identifier: Apache-2.0
"""From Flower's and Ray's log to a readable one.

Noise goes, what an app logs stays, warnings and errors stay in full; an error that several clients
or several layers report is shown once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from server_app.cli.launch.log_patterns import (
    ACTOR,
    ANSI,
    BOX_LINE,
    BOX_TOP,
    FLOWER_RECORD,
    NOISE,
    PYTHON_WARNING,
    RAY_CPP_RECORD,
    RAY_RECORD,
    RAY_REMARK,
    RAY_TASK,
    VOLATILE,
)

_CPP_LEVELS = {"I": "DEBUG", "W": "WARNING", "E": "ERROR", "C": "CRITICAL", "F": "CRITICAL"}
_SOURCES = {"ClientAppActor": "client"}
_ERRORS = ("ERROR", "CRITICAL")


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One line to show.

    Parameters
    ----------
    text : str
        Without level, colours and source.
    level : str
        ``DEBUG``, ``INFO``, ``WARNING``, ``ERROR`` or ``CRITICAL``.
    source : str
        Process it comes from, such as ``client 4711``; empty for the ServerApp.
    head : bool
        Whether the line begins a record, or continues one.
    """

    text: str
    level: str = "INFO"
    source: str = ""
    head: bool = True

    def __str__(self) -> str:
        level = f"{self.level}: " if self.head and self.level not in ("INFO", "") else ""
        source = f"[{self.source}] " if self.source else ""
        return f"{source}{level}{self.text}"


class LogFilter:
    """Feed it raw lines in order; it returns what to show.

    Lines of an error wait until the next record begins, so that the error can be compared with
    those before: call :meth:`flush` when the log pauses or ends.
    """

    def __init__(self) -> None:
        self._record = LogLine(text="", head=True)
        self._muted = False
        self._error: list[LogLine] = []
        self._seen: set[str] = set()

    @property
    def errors(self) -> int:
        """Number of different errors so far."""
        return len(self._seen)

    def feed(self, raw: str) -> list[LogLine]:
        """What ``raw``, one line, adds to the readable log."""
        line = parse(raw)
        if not line.head:
            return self._continue(line)
        shown = self.flush() if self._error else []
        self._record, self._muted = line, is_noise(line)
        if self._muted:
            return shown
        if line.level in _ERRORS or line.text.startswith("Traceback (most recent call last)"):
            self._error = [line]
            return shown
        return [*shown, line]

    def flush(self) -> list[LogLine]:
        """The error that waits, unless it was shown before."""
        block, self._error = self._error, []
        if not block:
            return []
        mark = fingerprint(block)
        if mark in self._seen:
            return []
        self._seen.add(mark)
        return list(_readable(block))

    def _continue(self, line: LogLine) -> list[LogLine]:
        if self._error:
            self._error.append(replace(line, level=self._error[0].level))
            return []
        if self._muted and (not line.text.strip() or line.text[0].isspace()):
            return []
        if line.text.startswith("Traceback (most recent call last)"):
            self._error = [line]
            return []
        return [] if is_noise(line) else list(self._plain(line))

    def _plain(self, line: LogLine) -> Iterator[LogLine]:
        """A line without a record's head: of a record before it, or printed as it is."""
        if line.text[:1].isspace():
            yield replace(line, level=self._record.level)
            return
        self._record, self._muted = line, False
        yield line


def parse(raw: str) -> LogLine:
    """One raw line with its level, its source and whether a record begins with it."""
    text = RAY_REMARK.sub("", ANSI.sub("", raw).rstrip("\n")).rsplit("\r", 1)[-1].rstrip()
    if match := ACTOR.match(text):
        inner = parse(match["text"])
        name = _SOURCES.get(match["name"], match["name"])
        source = f"{name} {match['pid']}" if name else match["daemon"]
        return replace(inner, source=source, head=True)
    if match := FLOWER_RECORD.match(text):
        indent = 10 - len(match["level"])  # Flower aligns the texts of all levels
        body = match["text"]
        body = body[indent:] if body[:indent].isspace() else body.lstrip(" ")
        return LogLine(level=match["level"], text=body)
    if match := RAY_RECORD.match(text):
        return LogLine(level=match["level"], text=match["text"])
    if match := RAY_CPP_RECORD.match(text):
        return LogLine(level=_CPP_LEVELS[match["level"]], text=match["text"])
    if BOX_TOP.match(text):
        return LogLine(level="ERROR", text="Flower says:")
    if match := BOX_LINE.match(text):
        return LogLine(text=match["text"] or "", head=False)
    if PYTHON_WARNING.match(text):
        return LogLine(level="WARNING", text=text)
    return LogLine(text=text, head=False)


def is_noise(line: LogLine) -> bool:
    """Whether a record says nothing about the run."""
    if not line.text.strip() or line.level == "DEBUG":
        return True
    return any(pattern.search(line.text) for pattern in NOISE)


def fingerprint(block: list[LogLine]) -> str:
    """What two reports of the same error have in common.

    A client's error is reported by Ray, again by Flower with Ray's own frames before it, and so
    for every client: from Ray's ``ray::`` on, without process ids and addresses, all are the same.
    """
    text = "\n".join(line.text.rstrip() for line in block)
    start = text.find("ray::")
    return VOLATILE.sub("", text[max(start, 0) :]).strip()


def _readable(block: list[LogLine]) -> Iterator[LogLine]:
    """The lines of an error with Ray's heads made short, without the carets Ray leaves alone."""
    after_head = False
    for line in block:
        if match := RAY_TASK.search(line.text):
            name = _SOURCES.get(match["name"], match["name"])
            yield replace(line, text=f"Traceback of {name} {match['pid']} ({match['method']}):")
            after_head = True
        elif not (after_head and line.text.strip(" ^~") == "" and line.text):
            after_head = False
            yield line
