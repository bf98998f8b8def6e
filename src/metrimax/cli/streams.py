"""Standard output and error as the commands find them: closed, full, or without a reader; and signals."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType


def prepare() -> None:
    """Make both streams take all text, closed ones included, for which Python has None.

    What a closed standard output is given fails when it is flushed, as in every program (`tell` says so); what a closed
    standard error is told is lost. Characters that the terminal's encoding lacks are escaped.
    """
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
        if isinstance(sys.stdout.buffer, io.RawIOBase):  # python -u: what a disk has no room for is lost unnoticed
            buffer = io.BufferedWriter(sys.stdout.buffer)
            sys.stdout = io.TextIOWrapper(buffer, sys.stdout.encoding, "backslashreplace", line_buffering=True)


def say(program: str, text: object) -> None:
    """One message on standard error: what it quotes, of files of others, may not move the cursor or hide text."""
    from metrimax.io.labels import visible  # slow to import, and mostly there already

    sys.stderr.write(visible(f"{program}: {text}", "\n") + "\n")


def tell(program: str, error: OSError) -> bool:
    """One line on standard error, none where the reader of our output has gone; returns whether it has.

    Such a reader, as in ``metrimax info MODEL | head -2``, has seen what it wanted.
    """
    gone = False
    try:
        sys.stdout.flush()
    except OSError as lost:  # what cannot be written would be tried again, and complained of, when Python ends
        gone = isinstance(lost, BrokenPipeError)
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not isinstance(error, BrokenPipeError):
        place = "" if error.filename is None else f"{error.filename}: "
        say(program, f"{place}{error.strerror or error}")
    return gone and isinstance(error, BrokenPipeError)


@contextmanager
def tidy() -> Iterator[None]:
    """Have the signals that end a process raise SystemExit: what is half-written is then removed, as after Ctrl-C."""
    ends = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        ends = []  # only the main thread may set signal handlers
    ends = [end for end in ends if signal.getsignal(end) is signal.SIG_DFL]  # keep signals ignored that nohup ignores
    for end in ends:
        signal.signal(end, _exit)
    try:
        yield
    finally:
        for end in ends:
            signal.signal(end, signal.SIG_DFL)


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
