"""``svm_perf_classify``: scores of a test file by a model file, and the measures that SVM-perf prints.

The manual, with all differences, is ``docs/svmperf.md``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from metrimax.compat.options import Command, Option, check_output, say

OPTIONS: dict[str, Option] = {
    "-v": Option(int, 1, "verbosity, 0 to 3"),
    "-y": Option(int, 0, "accepted, without effect"),
    "--d": Option(int, 1, "dense support vectors for kernel models: accepted, without effect"),
}
FILES = ("test_file", "model_file", "[output_file]")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code, 0 or 1."""
    return Command("svm_perf_classify", OPTIONS, FILES, classify, "predictions were", help=("-?", "-h")).run(argv)


def classify(options: dict[str, Any], names: list[str]) -> int:
    """Read, score, report, write."""
    from metrimax.compat.reporting import report
    from metrimax.compat.training import read_examples
    from metrimax.io.compressed import read_bytes
    from metrimax.io.files import write_bytes
    from metrimax.io.svmperf_model import parse_svmperf_model

    test_file, model_file, output_file = names if len(names) == 3 else (*names, "svm_predictions")
    check_output("output_file", output_file, test_file=test_file, model_file=model_file)
    say(options, "Reading model...")
    model = parse_svmperf_model(model_file, read_bytes(model_file).tobytes())
    say(options, "done.\nReading test examples...")
    rows = read_examples(test_file)
    say(options, f" ({rows.n} examples) done.\nClassifying test examples...")
    began = time.process_time()
    scores = model.scores(rows)
    seconds = time.process_time() - began
    write_bytes(output_file, "".join(f"{score:.8f}\n" for score in scores.tolist()).encode())
    say(options, "done\n")
    say(options, f"Runtime (without IO) in cpu-seconds: {seconds:.2f}\n")
    loss, measures = report(rows.labels > 0, scores)
    say(options, loss)
    sys.stdout.write(measures)
    sys.stdout.flush()
    return 0
