"""``metrimax demo``."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from metrimax.cli.main import OK, UsageError
from metrimax.cli.report import emit
from metrimax.io.files import check_writable, is_standard_output, write_bytes

if TYPE_CHECKING:
    from metrimax.cli.comparison import Result

OPENING = """\
This takes about ten seconds. Models are trained on one half of each set and judged on the other:

 1. Text with rare labels: which module of Python's own library a docstring is from.
 2. A table that is not linear: tumours by three measurements (comes with scikit-learn).
 3. A report about one of the classifiers, as a page for the browser.

"""


def demo(arguments: argparse.Namespace) -> int:
    """Compare with scikit-learn on text with rare labels and on a table, and write a report."""
    if is_standard_output(arguments.report):
        raise UsageError(f"--report {arguments.report}: expected a file, got standard output, where the results go")
    drawn = find_spec("matplotlib") is not None
    if drawn:
        check_writable(arguments.report)
    if not arguments.json:
        sys.stdout.write(OPENING)
        sys.stdout.flush()
    from metrimax.cli import comparison

    found = {}
    texts, labels = comparison.docstrings()
    if texts:
        text = comparison.text_sample(texts, labels)
        shares = text.Y.mean(axis=0)
        found["text"], ours = comparison.compare_text(text)
        about = f"{len(texts)} docstrings, {len(text.labels)} modules of {shares.min():.1%} to {shares.max():.1%} each"
        _show(arguments, f"1. Text: {about}; macro-F1", found["text"])
    else:
        sys.stderr.write("metrimax demo: no text, because this Python comes without the source of its library\n")
    found["table"] = comparison.compare_table()
    _show(arguments, "2. Table: 569 tumours, 37 % malignant; F1", found["table"])
    if arguments.json:
        emit(arguments, {name: {one.method: one.f1 for one in results} for name, results in found.items()})
    else:
        sys.stdout.write("One split of two small sets: an illustration. docs/results has the measurements.\n")
    if not drawn:
        sys.stderr.write("metrimax demo: no report without matplotlib (pip install 'metrimax[plot]')\n")
    elif texts:
        write_bytes(arguments.report, comparison.report(text, ours).encode())
        sys.stderr.write(f"metrimax demo: 3. Report of the label '{comparison.SHOWN}': {arguments.report}\n")
    return OK


def _show(arguments: argparse.Namespace, heading: str, results: list[Result]) -> None:
    if arguments.json:
        return
    best = max(one.f1 for one in results)
    lines = [
        f"  {one.method:<48}{100 * one.f1:6.1f}{' *' if one.f1 == best else '  '}{one.seconds:8.1f} s"
        for one in results
    ]
    sys.stdout.write("\n".join([f"{heading:<50}    CPU", *lines, "", ""]))
    sys.stdout.flush()
