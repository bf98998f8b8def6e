"""What every command says when the system fails it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def tell(program: str, error: OSError) -> None:
    """One line on standard error; none where the reader of our output has gone, for there is nobody to tell."""
    try:
        sys.stdout.flush()
    except OSError:  # what cannot be written would be tried again, and complained of, when Python ends
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not isinstance(error, BrokenPipeError):
        place = "" if error.filename is None else f"{error.filename}: "
        sys.stderr.write(f"{program}: {place}{error.strerror or error}\n")
