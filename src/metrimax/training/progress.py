"""A progress line on a terminal; in notebooks and logs, lines every few seconds, or nothing."""

from __future__ import annotations

import math
import os
import sys
import time

from metrimax.io.labels import visible
from metrimax.protocols import Record

EVERY = 5.0
"""Seconds between lines where standard error is no terminal."""


class ProgressLine:
    """A callback that rewrites one line on the terminal, at most ten times a second.

    Where standard error is no terminal, as in a notebook or a log, it writes nothing or, if ``lines``, a line every few
    seconds and the last one at the end.

    As a context manager it ends the line when the work ends or fails. If the design counts the bytes it reads
    (``bytes_read``) or sends (``bytes_moved``), the line shows them.
    """

    def __init__(self, title: str, tol: float = 0.0, design: object = None, *, lines: bool = False) -> None:
        self._title = title
        self._tol = tol
        self._design = design
        self._stream = sys.stderr
        self._terminal = self._stream is not None and self._stream.isatty()
        self._lines = lines and self._stream is not None and not self._terminal
        self._next = 0.0 if self._terminal else time.monotonic() + EVERY
        self._shown = False
        self._waiting = ""
        self._first: Record | None = None

    def __call__(self, record: Record) -> None:
        gap = f"gap {record.gap:.2e} (until {self._tol:g})"
        read, moved = (getattr(self._design, name, 0) for name in ("bytes_read", "bytes_moved"))
        bytes_read = f", {read / 1e9:.2f} GB read" if read else f", {moved / 1e9:.2f} GB moved" if moved else ""
        self.show(f"iteration {record.iteration}, {gap}, {record.seconds:.1f} s{bytes_read}{self._remaining(record)}")

    def show(self, text: str) -> None:
        """Put the text on the line, unless the line changed less than a tenth of a second ago."""
        if not (self._terminal or self._lines):
            return
        now = time.monotonic()
        if self._lines:
            self._waiting = visible(f"{self._title}: {text}")
            if now >= self._next:
                self._write_line()
            return
        if now < self._next:
            return
        self._next = now + 0.1
        self._shown = True
        self._stream.write(f"\r\x1b[K{visible(f'{self._title}: {text}')[: self._width()]}")
        self._stream.flush()

    def _write_line(self) -> None:
        self._next = time.monotonic() + EVERY
        self._stream.write(f"{self._waiting}\n")
        self._stream.flush()
        self._waiting = ""

    def _width(self) -> int | None:
        """Characters that fit on a line of the terminal; a longer text would start a new line each time."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):  # not known
            return None
        return columns - 1 if columns > 1 else None

    def _remaining(self, record: Record) -> str:
        """The time left, if the gap keeps shrinking by the same factor per second."""
        if self._first is None or record.iteration <= self._first.iteration:  # a new run
            self._first = record
        first = self._first
        if not 0 < self._tol < record.gap <= first.gap / 2 or record.seconds <= first.seconds:
            return ""  # before the gap has fallen by half nothing can be said
        share = math.log(record.gap / self._tol) / math.log(first.gap / record.gap)
        iterations, seconds = record.iteration - first.iteration, record.seconds - first.seconds
        return f", about {share * seconds:.0f} s, {math.ceil(share * iterations - 1e-9)} iterations left"

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._waiting:
            self._write_line()
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
