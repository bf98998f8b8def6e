"""Archives of arrays (.npz) as the metrimax command reads them: dense, sparse as SciPy saves them, damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from test_cli import Capture, numbers, run, run_json
from test_tables import refused

from metrimax.io.data import load_data
from metrimax.io.files import FileError


def test_npz(tmp_path: Path, capsys: Capture) -> None:
    X, y = numbers()
    np.savez(tmp_path / "dense.npz", X=X, y=y)
    matrix = sparse.csr_matrix(X)
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
    np.savez(tmp_path / "sparse.npz", y=y, **parts)
    results = [run_json(capsys, "train", tmp_path / f"{kind}.npz", tmp_path / kind) for kind in ("dense", "sparse")]
    assert results[0]["objective"] == [pytest.approx(results[1]["objective"][0], rel=2e-3)]  # type: ignore[index]
    assert run(capsys, "predict", tmp_path / "dense.npz", tmp_path / "dense").split()[0] in ("0", "1")
    for content, message in (
        ({"Z": X}, "expected the arrays X and y"),
        ({"X": X, "y": y[:-1]}, "expected y with 300 entries"),
        ({"X": X[0], "y": y}, "expected X as a matrix"),
        ({"X": np.where(X > 2, np.nan, X), "y": y}, "X holds NaN or infinite values"),
        ({"X": np.array([None, 1]), "y": y}, "no NumPy archive without pickled objects"),
        ({"y": y, **parts, "indptr": matrix.indptr[:-5]}, "are no CSR matrix"),
    ):
        np.savez(tmp_path / "bad.npz", **content)  # type: ignore[arg-type]
        with pytest.raises(FileError, match=message):
            load_data(tmp_path / "bad.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(FileError, match="no NumPy archive"):
        load_data(tmp_path / "bad.npz")
    with pytest.raises(FileError, match="expected 9 features, those of the model, got 4"):
        load_data(tmp_path / "dense.npz", n_features=9)
    with pytest.raises(ValueError, match="unknown kind of data 'xls'"):
        load_data(tmp_path / "dense.npz", kind="xls")


def test_missing_labels_of_archives(tmp_path: Path, capsys: Capture) -> None:
    for y, shown in ((np.array([0, 1, np.nan]), "nan"), (np.array(["a", "b", ""]), "''")):
        np.savez(tmp_path / "t.npz", X=np.arange(3.0)[:, None], y=y)
        said = refused(capsys, "train", tmp_path / "t.npz", tmp_path / "m")
        assert f"t.npz: row 2 (from 0) holds {shown}: expected labels" in said


@pytest.mark.parametrize("shape", [(5, 5), (6, 3), (2, 7)])
def test_saved_by_scipy(tmp_path: Path, shape: tuple[int, int]) -> None:
    dense = np.round(sparse.random(*shape, density=0.5, random_state=0).toarray(), 3)
    for form in ("csr", "csc"):
        sparse.save_npz(tmp_path / "t.npz", sparse.csr_matrix(dense).asformat(form))
        X = load_data(tmp_path / "t.npz").X
        assert X.shape == shape
        np.testing.assert_allclose(X.matvec(np.eye(shape[1])), dense)  # type: ignore[union-attr]
    for form in ("coo", "bsr", "dia"):
        sparse.save_npz(tmp_path / "t.npz", sparse.csr_matrix(dense).asformat(form))
        with pytest.raises(FileError, match=f"in CSR or CSC format, got {form}: save matrix.tocsr()"):
            load_data(tmp_path / "t.npz")


def test_damaged_columns_are_no_matrix(tmp_path: Path) -> None:
    parts = {"data": np.ones(2), "indices": np.array([0, 9]), "indptr": np.array([0, 1, 2]), "format": b"csc"}
    for shape in ((3, 2), (10, 3)):
        np.savez(tmp_path / "t.npz", shape=np.array(shape), **parts)  # type: ignore[arg-type]
        with pytest.raises(FileError, match="are no CSC matrix"):
            load_data(tmp_path / "t.npz")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"indices": np.array([2**32, 2**32 + 1])}, "expected indices from 0 to 2, got 4294967296 to 4294967297"),
        ({"indices": np.array([-(2**32), 1])}, "expected indices from 0 to 2, got -4294967296 to 1"),
        ({"indices": np.array([0.0, 1.7])}, "expected indices as whole numbers, got shape .* and dtype float64"),
        ({"indptr": np.array([0, 2**32 + 1, 2])}, "expected indptr from 0 to 2, got 0 to 4294967297"),
        ({"shape": np.array([2, -2])}, "expected shape from 0 to 281474976710656, got -2 to 2"),
        ({"shape": np.array([2, 2**62])}, "expected shape from 0 to 281474976710656"),
        ({"shape": np.array([2.0, 2.0])}, "expected shape as whole numbers"),
    ],
)
def test_numbers_that_32_bits_turn_into_others(tmp_path: Path, change: dict[str, np.ndarray], said: str) -> None:
    """A cast takes 2^32 for 0: the matrix would be another."""
    parts = {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2]), "shape": np.array([2, 2])}
    np.savez(tmp_path / "t.npz", **parts)
    assert load_data(tmp_path / "t.npz").X.shape == (2, 2)
    np.savez(tmp_path / "t.npz", **(parts | change))
    with pytest.raises(FileError, match=rf"t.npz: data, indices, indptr and shape are no CSR matrix \({said}"):
        load_data(tmp_path / "t.npz")


def test_labels_in_bytes(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", X=np.eye(2), y=np.array([b"ham", b"spam"]))
    assert load_data(tmp_path / "t.npz").labels.tolist() == ["ham", "spam"]  # type: ignore[union-attr]


def test_a_single_array_is_no_archive(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.eye(2))
    (tmp_path / "t.npy").rename(tmp_path / "t.npz")
    with pytest.raises(FileError, match="expected an archive of the arrays X and y, got a single array"):
        load_data(tmp_path / "t.npz")


def test_a_damaged_archive(tmp_path: Path, capsys: Capture) -> None:
    """Compressed arrays that are damaged raise zlib.error, which is no ValueError."""
    np.savez_compressed(tmp_path / "t.npz", X=np.arange(2000.0).reshape(1000, 2) % 7, y=np.arange(1000) % 2)
    raw = (tmp_path / "t.npz").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(30):
        damaged = bytearray(raw)
        for at in rng.integers(60, 400, 5):
            damaged[at] ^= 0x55
        (tmp_path / "t.npz").write_bytes(damaged)
        assert "t.npz: " in refused(capsys, "train", tmp_path / "t.npz", tmp_path / "m")
