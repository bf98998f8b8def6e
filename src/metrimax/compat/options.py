"""SVM-perf's way of giving options: ``-x value`` and ``--x value``, then file names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class OptionError(ValueError):
    """Options that are wrong or not supported; the command ends with exit code 1."""


class Option(NamedTuple):
    """One option: its type, default, what it means, and which values are allowed."""

    kind: Callable[[str], Any]
    default: Any
    help: str
    allowed: Callable[[Any], bool] | None = None
    expected: str = ""


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
