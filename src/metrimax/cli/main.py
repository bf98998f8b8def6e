"""The ``metrimax`` command: exit codes and signals. Slow modules are imported only when they are needed.

Results go to standard output, progress and messages to standard error.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from metrimax.cli import streams
from metrimax.cli.arguments import build_parser

OK, FAILURE, USAGE, NOT_CONVERGED, NOTHING_LEARNT, INTERRUPTED = 0, 1, 2, 3, 4, 130

_CLUSTER_ERRORS = (RuntimeError, ImportError)
"""Exceptions a Dask run may raise: a worker was lost, Dask is missing. No scheduler and no answer are OSErrors."""


class UsageError(ValueError):
    """Invalid arguments; exit code 2."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    streams.prepare()
    name, arguments = "metrimax", argparse.Namespace()
    try:
        try:
            arguments = build_parser().parse_args(argv)
        finally:
            sys.stdout.flush()  # writing the help or the version may fail, too
        name = f"metrimax {arguments.command}"
        with streams.tidy(), warnings.catch_warnings(record=True) as remarks:
            warnings.simplefilter("always", UserWarning)
            code = _command(arguments.command)(arguments)
        if not getattr(arguments, "quiet", False):
            for text in dict.fromkeys(str(remark.message) for remark in remarks):
                streams.say(name, text)
        sys.stdout.flush()
        return code
    except UsageError as error:
        streams.say(name, error)
        return USAGE
    except MemoryError:
        sys.stderr.write(f"{name}: not enough memory\n")
        return FAILURE
    except OSError as error:  # no space left, a name that is too long, a closed pipe, a cluster that does not answer
        gone = streams.tell(name, error)
        return OK if gone and not _is_standard_output(arguments) else FAILURE
    except (ValueError, TypeError, *_CLUSTER_ERRORS) as error:  # a FileError is a ValueError
        streams.say(name, error)
        return FAILURE
    except OverflowError as error:  # a number in an option, such as a k of hundreds of digits
        streams.say(name, f"a number is too large to compute with ({error}): give a smaller one")
        return FAILURE
    except KeyboardInterrupt:
        folder = getattr(arguments, "checkpoint", None)
        saved = folder is not None and any(Path(folder).rglob("*.npz"))
        streams.say(name, f"interrupted; its state is in {folder}" if saved else "interrupted; nothing was written")
        return INTERRUPTED


def _is_standard_output(arguments: argparse.Namespace) -> bool:
    """Whether the model goes to standard output: if the reader has gone, half a model was written."""
    return getattr(arguments, "command", None) in ("train", "tune") and arguments.model in ("-", "/dev/stdout")


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    homes = {"train": "training", "tune": "tuning", "convert": "converting", "evaluate": "evaluating", "demo": "demo"}
    home = (homes | {"verify": "verifying"}).get(name, "using")
    command: Callable[[argparse.Namespace], int] = getattr(import_module(f"metrimax.cli.{home}"), name)
    return command
