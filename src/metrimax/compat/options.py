"""SVM-perf's commands: options as ``-x value`` and ``--x value``, then file names; exit code 0 or 1."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from metrimax.cli import streams


class OptionError(ValueError):
    """Options that are wrong or not supported; the command ends with exit code 1."""


class Option(NamedTuple):
    """One option: its type, default, what it means, and which values are allowed."""

    kind: Callable[[str], Any]
    default: Any
    help: str
    allowed: Callable[[Any], bool] | None = None
    expected: str = ""


class Command(NamedTuple):
    """A command: its name, options and files, what it does with them, and what it writes."""

    name: str
    options: dict[str, Option]
    files: Sequence[str]
    work: Callable[[dict[str, Any], list[str]], int]
    output: str
    help: Sequence[str] = ("-?",)

    def run(self, argv: Sequence[str] | None) -> int:
        """Run it; returns the exit code."""
        arguments = list(sys.argv[1:] if argv is None else argv)
        streams.prepare()
        try:
            if any(flag in arguments for flag in self.help):
                sys.stdout.write(usage(self.name, self.files, self.options))
                sys.stdout.flush()
                return 0
            with streams.tidy():
                return self.work(*parse(arguments, self.options, self.files))
        except OptionError as error:
            sys.stderr.write(f"{self.name}: {error}\n{self.name} -? lists the options\n")
        except ValueError as error:  # a FileError is one
            sys.stderr.write(f"{self.name}: {error}\n")
        except OSError as error:
            streams.tell(self.name, error)
        except MemoryError:
            sys.stderr.write(f"{self.name}: not enough memory\n")
        except KeyboardInterrupt:
            sys.stderr.write(f"{self.name}: interrupted; no {self.output} written\n")
            return 130
        return 1


def say(options: dict[str, Any], text: str) -> None:
    """Text on standard output, unless ``-v 0`` asks for silence."""
    if options["-v"] >= 1:
        sys.stdout.write(text)
        sys.stdout.flush()


def parse(argv: Sequence[str], options: dict[str, Option], files: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The values of the options and the file names. Options come first, as in SVM-perf."""
    values = {name: option.default for name, option in options.items()}
    k = 0
    while k < len(argv) and argv[k].startswith("-") and argv[k] != "-":
        name = argv[k]
        if name not in options:
            raise OptionError(f"unknown option {name}")
        if k + 1 == len(argv):
            raise OptionError(f"option {name}: expected a value after it")
        values[name] = _value(name, options[name], argv[k + 1])
        k += 2
    names = list(argv[k:])
    least = sum(not name.startswith("[") for name in files)
    if not least <= len(names) <= len(files):
        raise OptionError(f"expected {' '.join(files)} after the options, got {' '.join(names) or 'nothing'}")
    return values, names


def check_output(name: str, path: str, **inputs: str) -> None:
    """Raise, before any work, if a file cannot be written or would overwrite an input."""
    from metrimax.io.files import check_writable, same_file

    for what, other in inputs.items():
        if same_file(path, other):
            raise OptionError(f"{path} would take the place of {what}: give {name} another name")
    check_writable(path)


def _value(name: str, option: Option, text: str) -> Any:
    try:
        value = option.kind(text)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError
    except ValueError:
        kind = "a whole number" if option.kind is int else "a finite number"
        raise OptionError(f"option {name}: expected {kind}, got {text!r}") from None
    if option.allowed is not None and not option.allowed(value):
        raise OptionError(f"option {name}: expected {option.expected}, got {text}")
    return value


def usage(program: str, files: Sequence[str], options: dict[str, Option]) -> str:
    """The help text."""
    lines = [f"usage: {program} [options] {' '.join(files)}", "", "options:"]
    for name, option in options.items():
        kind = {int: "int", float: "float"}.get(option.kind, "string")  # type: ignore[call-overload]
        default = "" if option.default in (None, "") else f" (default {option.default})"
        lines.append(f"  {name} {kind:<8} {option.help}{default}")
    return "\n".join(lines) + "\n"
