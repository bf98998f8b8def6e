"""``svm_perf_classify``: scores of a test file by a model file, and the measures that SVM-perf prints.

The manual, with all differences, is ``docs/svmperf.md``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from metrimax import streams
from metrimax.compat.options import Option, OptionError, parse, usage

OPTIONS: dict[str, Option] = {
    "-v": Option(int, 1, "verbosity, 0 to 3"),
    "-y": Option(int, 0, "accepted, without effect"),
    "--d": Option(int, 1, "dense support vectors for kernel models: accepted, without effect"),
}
FILES = ("test_file", "model_file", "[output_file]")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code, 0 or 1."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    streams.prepare()
    try:
        if "-?" in arguments or "-h" in arguments:
            sys.stdout.write(usage("svm_perf_classify", FILES, OPTIONS))
            sys.stdout.flush()
            return 0
        options, names = parse(arguments, OPTIONS, FILES)
        classify(options, names[0], names[1], names[2] if len(names) > 2 else "svm_predictions")
        return 0
    except OptionError as error:
        sys.stderr.write(f"svm_perf_classify: {error}\nsvm_perf_classify -? lists the options\n")
    except ValueError as error:  # a FileError is one
        sys.stderr.write(f"svm_perf_classify: {error}\n")
    except OSError as error:
        streams.tell("svm_perf_classify", error)
    except MemoryError:
        sys.stderr.write("svm_perf_classify: not enough memory\n")
    except KeyboardInterrupt:
        sys.stderr.write("svm_perf_classify: interrupted; no predictions were written\n")
        return 130
    return 1


def classify(options: dict[str, Any], test_file: str, model_file: str, output_file: str) -> None:
    """Read, score, report, write."""
    from metrimax.compat.reporting import report
    from metrimax.compat.training import read_examples
    from metrimax.io.files import read_bytes, write_bytes
    from metrimax.io.svmperf_model import parse_svmperf_model

    def say(text: str) -> None:
        if options["-v"] >= 1:
            sys.stdout.write(text)
            sys.stdout.flush()

    say("Reading model...")
    model = parse_svmperf_model(model_file, read_bytes(model_file).tobytes())
    say("done.\nReading test examples...")
    rows = read_examples(test_file)
    say(f" ({rows.n} examples) done.\nClassifying test examples...")
    began = time.process_time()
    scores = model.scores(rows)
    seconds = time.process_time() - began
    write_bytes(output_file, "".join(f"{score:.8f}\n" for score in scores.tolist()).encode())
    say("done\n")
    say(f"Runtime (without IO) in cpu-seconds: {seconds:.2f}\n")
    loss, measures = report(rows.labels > 0, scores)
    say(loss)
    sys.stdout.write(measures)
    sys.stdout.flush()
