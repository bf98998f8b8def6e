"""``metrimax demo``."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec

from metrimax.cli.main import FAILURE, OK, UsageError


def demo(arguments: argparse.Namespace) -> int:
    """Compare on data that comes with scikit-learn: a table, and a plot if matplotlib is installed."""
    if find_spec("sklearn") is None:
        sys.stderr.write("metrimax demo: needs scikit-learn: pip install scikit-learn\n")
        return FAILURE
    from metrimax.cli.report import emit
    from metrimax.io.files import check_writable, is_standard_output

    if is_standard_output(arguments.plot):
        raise UsageError(f"--plot {arguments.plot}: expected a file, got standard output, where the table goes")
    if find_spec("matplotlib") is not None:
        check_writable(arguments.plot)
    sys.stderr.write("metrimax demo: training on three small sets, some seconds ...\n")
    from metrimax.cli import comparison

    rows = comparison.run()
    if arguments.json:
        emit(
            arguments,
            {row.name: dict(zip(comparison.METHODS, row.f1.mean(axis=0).tolist(), strict=True)) for row in rows},
        )
    else:
        sys.stdout.write(comparison.table(rows) + "\n")
        sys.stdout.write(
            f"\nAll at C = 1, over {comparison.SPLITS} random halves. A plain SVM minimises errors, and may miss a "
            "rare class.\nThe sets are chosen to show this, and one (digits) where it does not pay: "
            "an illustration, no evidence.\n"
        )
    if find_spec("matplotlib") is None:
        sys.stderr.write("metrimax demo: no plot, for matplotlib is not installed (pip install 'metrimax[plot]')\n")
    else:
        comparison.plot(rows, arguments.plot)
        sys.stderr.write(f"metrimax demo: plot written to {arguments.plot}\n")
    return OK
