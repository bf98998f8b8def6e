"""Fuzzing of the readers: mutated svmlight text and model files, which must be read or refused, and nothing else.

Every mutated piece of text is read by the compiled reader and, one in eight, by the plain Python reader too: both
have to agree on whether it is valid, on the line of the first error, and on every number. Mutated models of both
formats must load as finite weights or raise FileError.

    python tests/fuzz_files.py --seconds 600 --seed 1

To run it under the address and undefined-behaviour sanitizers, build with ``-Ccmake.define.METRIMAX_SANITIZE=ON`` and
start Python with ``LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0``.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import svmlight_reference as reference

from metrimax.io.files import FileError
from metrimax.io.models import LinearModel, load_model, save_model
from metrimax.io.svmlight import parse_svmlight
from metrimax.io.svmperf_model import format_svmperf_model, parse_svmperf_model

SEEDS = (
    b"1 1:0.5 2:-1e-3 10:3 # comment",
    b"-1 qid:12 3:1.25 7:.5 9:5.",
    b"1,3,17 1:0.123456789012345678901 2147483646:1e22",
    b"+1.5e2 4:1E+5 5:-0",
    b"1 sid:3 cost:0.5 1:1",
    b" 1:1 2:2",
    b"0",
)
PIECES = (
    b":", b",", b"#", b" ", b"\t", b"\n", b"\r\n", b"\r", b"\x00", b"\xff", b"qid:", b"sid:", b"e", b"E-", b"+", b"-",
    b".", b"nan", b"inf", b"1e999", b"-1e-999", b"0x10", b"9" * 40, b"0" * 400, b"1:1", b"2147483647:1", b"1 2:3\n",
    b"SVM-light Version V6.20\n", b"{", b"}", b"[", b"]", b'"', b"null", b"1e400", b"-1", b"99999999999999999999",
)  # fmt: skip


def mutate(rng: random.Random, text: bytes) -> bytes:
    """Some random edits: bytes changed, pieces put in, taken out, doubled."""
    data = bytearray(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randint(0, len(data))
        kind = rng.random()
        if kind < 0.4:
            data[at:at] = rng.choice(PIECES)
        elif kind < 0.6 and data:
            data[at % len(data)] = rng.randrange(256)
        elif kind < 0.8:
            del data[at : at + rng.choice((1, 1, 2, 5, 50))]
        else:
            data[at:at] = data[at : at + rng.choice((1, 3, 20))]
    return bytes(data)


def fuzz_text(rng: random.Random, text: bytes, *, compare: bool) -> bool:
    """Read it; True if it was valid. With ``compare``, also by the plain reader."""
    n_threads = rng.choice((1, 1, 3))
    buffer = np.frombuffer(text, np.uint8)
    try:
        rows = parse_svmlight(buffer, "fuzz", n_threads=n_threads)
    except FileError as error:
        if compare:
            try:
                reference.read(text)
            except reference.Bad as bad:
                if f"fuzz: line {bad.line}, column " not in str(error):
                    raise AssertionError(
                        f"the first error is in line {bad.line}, not as said: {error}: {text!r}"
                    ) from None
            else:
                raise AssertionError(f"refused what is valid: {error}: {text!r}") from None
        return False
    if compare:
        try:
            expected = reference.read(text)
        except reference.Bad as bad:
            raise AssertionError(f"accepted a bad {bad}: {text!r}") from None
        flat = [pair for _, _, features in expected for pair in features]
        got = list(zip(rows.indices.tolist(), rows.values.tolist(), strict=True))
        labels = [label for labels, _, _ in expected for label in labels]
        if got != flat or rows.labels.tolist() != labels or rows.n != len(expected):
            raise AssertionError(f"read otherwise than by the plain reader: {text!r}")
    parse_light(text)
    return True


def parse_light(text: bytes) -> None:
    """The other options, for crashes only."""
    with suppress(FileError):
        parse_svmlight(np.frombuffer(text, np.uint8), "fuzz", allow_blank=False, light_tags=True, least=1, most=99)


def model_seeds() -> list[bytes]:
    """Model files of both formats."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        save_model(path, LinearModel(w[None], np.zeros(1), np.zeros(1), [-1.0, 1.0], training={"C": 1.0}))
        binary = path.read_bytes()
        several = LinearModel(rng.normal(size=(3, 2)), np.zeros(3), np.ones(3), ["a", "b", "c"], "multiclass", "f1")
        save_model(path, several)
        return [binary, path.read_bytes(), format_svmperf_model(w, 0.5, highest=7, n_cuts=3)]


def fuzz_model(folder: Path, raw: bytes) -> bool:
    """Load it; True if it was valid."""
    path = folder / "mutated"
    path.write_bytes(raw)
    try:
        model = load_model(path)
    except FileError:
        return False
    if not np.isfinite(model.coef).all() or model.coef.shape != (len(model.intercept), model.n_features):
        raise AssertionError(f"accepted a bad model: {raw!r}")
    return True


def main(argv: list[str] | None = None) -> int:
    """Fuzz for some time; returns 0, or raises at the first thing that is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    rng = random.Random(arguments.seed)
    end = time.monotonic() + arguments.seconds
    models = model_seeds()
    lines = valid = loaded = model_files = 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            for number in range(64):
                text = mutate(rng, b"\n".join(rng.choices(SEEDS, k=rng.randint(1, 4))))
                valid += fuzz_text(rng, text, compare=number % 8 == 0)
                lines += text.count(b"\n") + 1
            seed = rng.choice(models)
            loaded += fuzz_model(Path(folder), mutate(rng, seed))
            model_files += 1
        # once through the pieces of several threads too
        big = b"\n".join(mutate(rng, rng.choice(SEEDS[:1])) for _ in range(20_000))
        fuzz_text(rng, big, compare=True)
    sys.stdout.write(
        f"{lines} mutated lines, {valid} texts of them valid; {model_files} mutated models, {loaded} of them valid\n"
    )
    parse_svmperf_model("seed", models[2])  # the seeds themselves are good
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
