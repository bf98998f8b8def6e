"""Standard output and error that may be closed, full, or without a reader; and signals."""

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
    """Make both streams take any text. For a closed stream Python has None, which is replaced.

    Flushing a closed standard output fails, as in every program (`tell` reports it). Text for a closed standard error
    is lost. Characters that the terminal's encoding lacks are escaped.
    """
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
        if isinstance(sys.stdout.buffer, io.RawIOBase):  # python -u: a full disk would lose text without an error
            buffer = io.BufferedWriter(sys.stdout.buffer)
            sys.stdout = io.TextIOWrapper(buffer, sys.stdout.encoding, "backslashreplace", line_buffering=True)


def say(program: str, text: object) -> None:
    """One message on standard error. Control characters, which could hide text, are escaped."""
    from metrimax.io.labels import visible  # slow to import, and mostly there already

    sys.stderr.write(visible(f"{program}: {text}", "\n") + "\n")


def tell(program: str, error: OSError) -> bool:
    """Write an error as one line on standard error; return whether the reader of standard output has gone instead.

    A reader that goes, as in ``metrimax info MODEL | head -2``, is not an error.
    """
    gone = False
    try:
        sys.stdout.flush()
    except OSError as lost:  # otherwise Python would try to write again when it ends, and report the error once more
        gone = isinstance(lost, BrokenPipeError)
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not isinstance(error, BrokenPipeError):
        place = "" if error.filename is None else f"{error.filename}: "
        say(program, f"{place}{error.strerror or error}")
    return gone and isinstance(error, BrokenPipeError)


@contextmanager
def tidy() -> Iterator[None]:
    """Let signals that end the process raise SystemExit, so that half-written files are removed as after Ctrl-C."""
    ends = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        ends = []  # only the main thread may set signal handlers
    ends = [end for end in ends if signal.getsignal(end) is signal.SIG_DFL]  # signals that nohup ignores stay ignored
    for end in ends:
        signal.signal(end, _exit)
    try:
        yield
    finally:
        for end in ends:
            signal.signal(end, signal.SIG_DFL)


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
