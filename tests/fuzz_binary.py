"""Fuzzing of archives, shards, Parquet files and checkpoints: bytes changed, and contents with the right checksums.

Data must be read as finite numbers or raise FileError. A fit from a changed checkpoint must end with a bound that is
not above the optimum, and an objective that is not below it, whatever the file says.

    python tests/fuzz_binary.py --seconds 600 --seed 1

What was found is kept in ``tests/data/fuzz`` and read again by `tests/test_fuzz.py`. Under sanitizers: see
`tests/fuzz_files.py`.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse

from metrimax import MeasureSVC, open_dataset
from metrimax.io.checkpoints import Checkpoint
from metrimax.io.data import load_data
from metrimax.io.files import FileError
from metrimax.io.npy import read_archive
from metrimax.io.sealing import SEAL, sealed
from metrimax.io.shards import MANIFEST
from metrimax.io.writing import ShardWriter
from metrimax.protocols import Record

PIECES = (
    b"\x00",
    b"\xff",
    b"\x00" * 8,
    b"\xff" * 8,
    b"\x7f\xf0\x00\x00",
    b"(",
    b"9" * 20,
    b"<f8",
    b"|O",
    b"PK\x03\x04",
)
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e300, -1e300, 1e-300, np.nan, np.inf, 2.0**31, 2.0**63)


def mutate(rng: random.Random, raw: bytes) -> bytes:
    """Some random edits of bytes."""
    data = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, kind = rng.randrange(len(data) + 1), rng.random()
        if kind < 0.5 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind < 0.7:
            piece = rng.choice(PIECES)
            data[at : at + len(piece)] = piece
        elif kind < 0.85:
            del data[at : at + rng.choice((1, 8, 100))]
        else:
            data[at:at] = data[at : at + rng.choice((1, 8, 100))]
    return bytes(data)


def changed(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """An array of another content, length, shape or type."""
    array = array.copy()
    kind = rng.random()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind < 0.5 and array.size and array.dtype.kind in "fiu":
            flat = array.reshape(-1)
            for _ in range(rng.choice((1, 1, 5))):
                at = rng.randrange(array.size)
                number = (
                    rng.choice(NUMBERS) if rng.random() < 0.5 else float(flat[at]) * rng.choice((2, -1, 1.001, 0.9))
                )
                flat[at] = np.array([number]).astype(array.dtype)[0]
        elif kind < 0.65 and array.dtype.kind == "f":
            array = rng.choice((array * 2, array * -1, array + 1, array * 1e-3))
        elif kind < 0.75 and array.ndim:
            array = array[: rng.randrange(len(array) + 1)]
        elif kind < 0.85:
            array = rng.choice((array.reshape(-1), array[None], np.repeat(array, 2), array.T))
        elif array.dtype.kind in "fiu":
            array = array.astype(rng.choice((np.float32, np.int64, np.int8, ">f8", np.bool_, np.complex128)))
    return array


def rows() -> tuple[np.ndarray, np.ndarray]:
    """A small sample."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 3 == 0
    return rng.normal(size=(40, 3)) + y[:, None], y


def used(X: object) -> None:
    """A product with what was read, where it is not too wide."""
    if X.shape[1] < 10**6:  # type: ignore[attr-defined]
        product = X @ np.ones(X.shape[1]) if isinstance(X, np.ndarray) else X.matvec(np.ones(X.shape[1]))  # type: ignore[attr-defined]
        if product.shape != (X.shape[0],):  # type: ignore[attr-defined]
            raise AssertionError(f"a product of shape {product.shape}")


class Archives:
    """``.npz`` as NumPy and SciPy write them."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "a.npz"
        X, y = rows()
        csr = sparse.csr_array(np.where(np.abs(X) > 1, X, 0))
        csc = csr.tocsc()
        self._seeds = [{"X": X, "y": y.astype(float)}]
        for matrix, form in ((csr, b"csr"), (csc, b"csc")):
            parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
            self._seeds.append(
                parts | {"shape": np.array(matrix.shape), "format": np.array(form), "y": y.astype(float)}
            )

    def __call__(self, rng: random.Random) -> bool:
        arrays = dict(rng.choice(self._seeds))
        write = rng.choice((np.savez, np.savez_compressed))
        if rng.random() < 0.5:
            name = rng.choice(sorted(arrays))
            arrays[name] = changed(rng, arrays[name])
            write(self._file, **arrays)
        else:
            write(self._file, **arrays)
            self._file.write_bytes(mutate(rng, self._file.read_bytes()))
        return self.read(self._file)

    @staticmethod
    def read(file: Path) -> bool:
        try:
            data = load_data(file)
        except FileError:
            return False
        values = data.X if isinstance(data.X, np.ndarray) else data.X.data  # type: ignore[union-attr]
        if not np.isfinite(values).all():
            raise AssertionError("not finite")
        used(data.X)
        return True


class Tables(Archives):
    """Parquet; other than zip it has no checksums, so that changed numbers are read."""

    def __init__(self, folder: Path) -> None:
        import pyarrow
        import pyarrow.parquet as parquet

        X, y = rows()
        table = pyarrow.table({f"f{j}": X[:, j] for j in range(3)} | {"label": y.astype(float)})
        self._raw = []
        for compression in ("none", "snappy", "zstd"):
            parquet.write_table(table, folder / "a.parquet", compression=compression)
            self._raw.append((folder / "a.parquet").read_bytes())
        self._file = folder / "b.parquet"

    def __call__(self, rng: random.Random) -> bool:
        self._file.write_bytes(mutate(rng, rng.choice(self._raw)))
        return self.read(self._file)


class Shards:
    """Folders that `metrimax convert` writes."""

    def __init__(self, folder: Path) -> None:
        X, y = rows()
        self._seeds = []
        for name, form in (("dense", X), ("sparse", sparse.csr_array(np.where(np.abs(X) > 1, X, 0)))):
            with ShardWriter(folder / name, shard_size=300) as writer:
                writer.add(form, y.astype(float))
            self._seeds.append(folder / name)
        self._place = folder / "changed"

    def __call__(self, rng: random.Random) -> bool:
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(rng.choice(self._seeds), self._place)
        manifest = self._place / MANIFEST
        if rng.random() < 0.4:
            content = json.loads(manifest.read_text())
            del content[SEAL]
            self._spoil(rng, content)
            manifest.write_text(json.dumps(sealed(content)))
        else:
            file = rng.choice(sorted(self._place.iterdir()))
            file.write_bytes(mutate(rng, file.read_bytes()))
            if rng.random() < 0.3:
                manifest.unlink()
        return self.read(self._place)

    def _spoil(self, rng: random.Random, content: object) -> None:
        """Replace one entry, at any depth."""
        keys = sorted(content) if isinstance(content, dict) else range(len(content))  # type: ignore[arg-type]
        key = rng.choice(list(keys))
        value = content[key]  # type: ignore[index]
        if isinstance(value, (dict, list)) and value and rng.random() < 0.8:
            self._spoil(rng, value)
        else:
            content[key] = rng.choice((None, 0, 1, -1, 2**31, 2**63, 2**200, 0.5, "", "../x", "\x1b", [], {}, True))  # type: ignore[index]

    @staticmethod
    def read(place: Path) -> bool:
        try:
            used(open_dataset(place))
        except FileError:
            return False
        return True


class Checkpoints:
    """States of several solvers, with the checksums of what they hold."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "state"
        self._runs = []
        X, y = rows()
        for solver, data in (
            ("bundle", X),
            ("hybrid", X),
            ("lbfgs", X),
            ("dual_cd", X),
            ("bundle", X @ np.ones((3, 50))),
        ):
            clf = MeasureSVC(
                "error" if solver == "dual_cd" else "roc_area", C=0.5, tol=1e-5, solver=solver, n_threads=1
            )
            straight = clf.fit(data, y)
            bounds = straight.dual_bound_, straight.objective_
            clf = clf.set_params(checkpoint=Checkpoint(self._folder, minutes=0), callback=self._stop)
            try:
                clf.fit(data, y)
            except KeyboardInterrupt:
                (kept,) = self._folder.iterdir()
                self._runs.append((clf.set_params(callback=None), data, y, bounds, kept, kept.read_bytes()))
                kept.unlink()

    @staticmethod
    def _stop(record: Record) -> None:
        if record.iteration == 2:
            raise KeyboardInterrupt

    def __call__(self, rng: random.Random) -> bool:
        clf, X, y, (bound, objective), kept, raw = rng.choice(self._runs)
        self._folder.mkdir(exist_ok=True)
        if rng.random() < 0.3:
            kept.write_bytes(mutate(rng, raw))
        else:
            arrays = read_archive(kept, raw)
            probe = arrays.pop("probe")
            del arrays["about"]
            name = rng.choice(sorted(arrays))
            arrays[name] = changed(rng, arrays[name])
            problem, _, weight = kept.name.removesuffix(".npz").partition("-")
            run = Checkpoint(self._folder).begin(problem, float(weight), probe)
            run.save(arrays, Record(2, 2.0, 1.0, 0.0, 1, 0.1))
            run.release()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            fitted = clf.fit(X, y)
        slack = 1e-6 * objective
        sound = np.isfinite(fitted.objective_) and fitted.dual_bound_ <= objective + slack
        if not sound or fitted.objective_ < bound - slack or fitted.dual_bound_ > fitted.objective_ + slack:
            raise AssertionError(
                f"{fitted.dual_bound_} and {fitted.objective_}, where {bound} and {objective} are true"
            )
        return not any("anew" in str(one.message) for one in said)


KINDS: tuple[type, ...] = (Archives, Tables, Shards, Checkpoints)


def main(argv: list[str] | None = None) -> int:
    """Fuzz for some time; returns 0, or raises at the first thing that is wrong, which is left in a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    rng = random.Random(arguments.seed)
    counts: Counter[str] = Counter()
    place = Path(tempfile.mkdtemp(prefix="fuzz-"))
    fuzzers: list[Callable[[random.Random], bool]] = []
    for kind in KINDS:
        (place / kind.__name__).mkdir()
        try:
            fuzzers.append(kind(place / kind.__name__))
        except ImportError:  # no pyarrow
            continue
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        for fuzz in fuzzers:
            name = type(fuzz).__name__.lower()
            for _ in range(1 if name == "checkpoints" else 8):
                try:
                    counts[f"{name}, of which valid"] += fuzz(rng)
                except BaseException:
                    sys.stderr.write(f"what failed is in {place / type(fuzz).__name__}\n")
                    raise
                counts[name] += 1
    shutil.rmtree(place)
    sys.stdout.write("".join(f"{counts[name]} mutated {name}\n" for name in sorted(counts)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
