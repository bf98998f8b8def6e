"""Models as files: a line of magic, a line of JSON, and the arrays as raw little-endian bytes.

The format is described in ``docs/model_format.md``. Nothing in it is executed, sizes are checked against the length of
the file before anything is allocated, and a checksum of all that follows it tells damage from content.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from metrimax.io.columns import Column, as_json, feature_names, from_json
from metrimax.io.compressed import read_bytes
from metrimax.io.files import FileError, Name, write_bytes
from metrimax.io.labels import are_names
from metrimax.io.limits import Limit
from metrimax.io.sealing import parse_json
from metrimax.protocols import Vector

MAGIC = b"metrimax-model"
VERSION = 3
WITHOUT_COLUMNS = 2
"""The version of models without treated columns, which earlier readers can read."""
RULE = ("coef", "intercept", "threshold")
CERTIFICATE = ("points", "multipliers", "labels_of_points")
KINDS = ("binary", "multiclass", "multilabel", "ranking")


@dataclass(frozen=True)
class LinearModel:
    """A trained linear model: scores are ``X coef' + intercept``.

    Parameters
    ----------
    coef : ndarray (L, p)
        The weights.
    intercept : ndarray (L,)
        The trained intercept minus the threshold.
    threshold : ndarray (L,)
        The score above which an example is called positive, by the intercept that was trained.
    classes : list
        Labels, numbers or strings; [negative, positive] for a binary model (L = 1), none for a ranking (L = 1), else L.
    kind : {"binary", "multiclass", "multilabel", "ranking"}
        Of a ranking the scores are all there is: the higher, the earlier in its group.
    measure : str
        The measure trained for, as given on the command line; "" where it is not known (SVM-perf's files).
    index_base : int or None
        The index of the first feature in svmlight files.
    feature_names : list of str or None
        Columns of the table it was trained on, or the features made of them.
    target : str or None
        The column of that table which held the labels.
    training : dict
        What is known about the training: C, tol, and one entry per label under "labels".
    certificates : list or None
        For every label (points, multipliers), or None: `metrimax.training.certificate`.
    columns : list of Column or None
        How text, gaps and numbers of a table become features, which ``load_data(..., columns=model.columns)`` does;
        None where they are taken as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from metrimax.io.models import LinearModel
    >>> model = LinearModel(np.array([[1.0, -2.0]]), np.zeros(1), np.zeros(1), ["no", "yes"])
    >>> model.predict(model.scores(np.eye(2)))
    [['yes'], ['no']]
    """

    coef: Vector
    intercept: Vector
    threshold: Vector
    classes: list[Any]
    kind: str = "binary"
    measure: str = ""
    index_base: int | None = 1
    feature_names: list[str] | None = None
    target: str | None = None
    training: dict[str, Any] = field(default_factory=dict)
    certificates: list[tuple[Vector, Vector] | None] | None = None
    columns: list[Column] | None = None

    @property
    def trained_intercept(self) -> Vector:
        """The intercept before the threshold was subtracted; the certificate is about this one."""
        return self.intercept + self.threshold

    @property
    def n_features(self) -> int:
        """The number of columns that X has to have."""
        return int(self.coef.shape[1])

    def scores(self, X: Any, n_threads: int | None = None) -> Vector:
        """Scores, (n, L); an error where they overflow.

        Parameters
        ----------
        X : ndarray or sparse matrix (n, p)
            The rows.
        n_threads : int or None, default=None
            The most threads; None for all cores.

        Returns
        -------
        ndarray (n, L)
            The scores.
        """
        from metrimax.designs import as_design

        with np.errstate(over="ignore", invalid="ignore"):
            product = as_design(X, n_threads=n_threads).matvec(np.ascontiguousarray(self.coef.T))
            scores: Vector = product + self.intercept
        wrong = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if len(wrong):
            raise ValueError(
                f"expected finite scores, got {scores[wrong[0]].tolist()} for example {wrong[0] + 1}: the weights "
                "times its features are too large for a float; scale the features, and train again"
            )
        return scores

    def on_numbers(self) -> LinearModel:
        """The same scores from columns of numbers as they are, without gaps: the rule of another scale."""
        columns = self.columns or []
        texts = [column.name for column in columns if column.values is not None]
        if texts:
            raise ValueError(
                f"expected a table, CSV or Parquet, for the model has columns of text ({', '.join(texts[:5])}), got "
                "data of numbers alone: give the table itself, with --format csv if its name does not end in .csv"
            )
        if not columns:
            return self
        ends = np.cumsum([len(column.features) for column in columns])
        coef = self.coef[:, [end - 1 - column.marked for end, column in zip(ends, columns, strict=True)]]
        coef = coef / np.array([column.scale for column in columns])
        intercept = self.intercept - coef @ np.array([column.center for column in columns])
        names = None if self.feature_names is None else [column.name for column in columns]
        return replace(self, coef=coef, intercept=intercept, feature_names=names, certificates=None, columns=None)

    def predict(self, scores: Vector) -> list[list[Any]]:
        """The labels of each example: one, or any number for a multilabel model.

        Parameters
        ----------
        scores : ndarray (n, L)
            What `scores` returned.

        Returns
        -------
        list of lists
            Labels.
        """
        if self.kind == "multilabel":
            return [[self.classes[k] for k in np.flatnonzero(row > 0)] for row in scores]
        choice = (scores[:, 0] > 0).astype(int) if self.kind == "binary" else scores.argmax(axis=1)
        return [[self.classes[k]] for k in choice]


def save_model(path: Name, model: LinearModel) -> None:
    """Write a model file, complete or not at all.

    Parameters
    ----------
    path : str or path
        The file; one that is there is replaced.
    model : LinearModel
        What to write.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from metrimax.io.models import LinearModel, save_model
    >>> file = Path(tempfile.mkdtemp()) / "my.model"
    >>> save_model(file, LinearModel(np.array([[1.0, -2.0]]), np.zeros(1), np.zeros(1), ["no", "yes"]))
    >>> file.exists()
    True
    """
    if not isinstance(model, LinearModel):
        raise TypeError(f"expected a LinearModel, got {type(model).__name__}: joblib.dump stores an estimator")
    from metrimax import __version__

    given = {name: getattr(model, name) for name in RULE} | _stacked(model.certificates)
    arrays = {name: np.ascontiguousarray(array, dtype="<f8") for name, array in given.items()}
    body = b"".join(array.tobytes() for array in arrays.values())
    header = {
        "written_by": f"metrimax {__version__}",
        "kind": model.kind,
        "classes": model.classes,
        "measure": model.measure,
        "index_base": model.index_base,
        "feature_names": model.feature_names,
        "target": model.target,
        "training": model.training,
        "arrays": [{"name": name, "dtype": "<f8", "shape": list(array.shape)} for name, array in arrays.items()],
    }
    if model.columns is not None:
        header["columns"] = as_json(model.columns)
    rest = json.dumps(header, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n" + body
    digest = hashlib.sha256(rest).hexdigest().encode("ascii")
    write_bytes(path, MAGIC + b" %d %s\n" % (WITHOUT_COLUMNS if model.columns is None else VERSION, digest) + rest)


def load_model(path: Name, *, limit: Limit = None) -> LinearModel:
    """Read a model: this library's format, or the linear models of SVM-perf and SVM-light.

    ``limit`` is the most that a compressed file may expand to; see `metrimax.io.data.load_data`.

    Parameters
    ----------
    path : str or path
        A model file, which may be compressed.
    limit : int, str or None, default=None
        The most that it may expand to, as for `metrimax.io.data.load_data`.

    Returns
    -------
    LinearModel
        The model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from metrimax.io.models import LinearModel, load_model, save_model
    >>> file = Path(tempfile.mkdtemp()) / "my.model"
    >>> save_model(file, LinearModel(np.array([[1.0, -2.0]]), np.zeros(1), np.zeros(1), ["no", "yes"]))
    >>> load_model(file).scores(np.eye(2)).tolist()
    [[1.0], [-2.0]]
    """
    raw = read_bytes(path, limit=limit, begins=(MAGIC, b"SVM-light")).tobytes()
    if raw.startswith(MAGIC):
        return _parse(path, raw)
    if raw.startswith(b"SVM-light"):
        from metrimax.io.svmperf_model import parse_svmperf_model

        return parse_svmperf_model(path, raw).linear()
    raise FileError(
        f"{path}: expected a model file, beginning with '{MAGIC.decode()}' or 'SVM-light Version', got something else"
    )


def _parse(path: Name, raw: bytes) -> LinearModel:
    def fail(problem: str) -> FileError:
        return FileError(f"{path}: {problem}")

    first = raw.find(b"\n", 0, 128)
    line = re.fullmatch(rb" ([1-9][0-9]{0,8})(?: ([0-9a-f]{64}))?", raw[len(MAGIC) : max(first, 0)])
    if line is None:
        raise fail("expected 'metrimax-model VERSION' on the first line: the file is damaged")
    version, digest = int(line[1]), line[2]
    if version > VERSION:
        raise fail(f"expected a version of the model format up to {VERSION}, got {version}: update metrimax")
    if version > 1 and digest != hashlib.sha256(memoryview(raw)[first + 1 :]).hexdigest().encode("ascii"):
        raise fail("the checksum of the file is wrong: it is damaged or was changed; save the model again")
    second = raw.find(b"\n", first + 1)
    if second < 0:
        raise fail("the file ends inside its header: it was cut off")
    try:
        header = parse_json(raw[first + 1 : second])
    except (ValueError, RecursionError) as error:
        raise fail(f"the header is no JSON ({error})") from None
    if not isinstance(header, dict):
        raise fail("the header is no JSON object")
    body = memoryview(raw)[second + 1 :]
    arrays = _arrays(fail, header.get("arrays"), body)
    if version == 1 and header.get("crc32") != zlib.crc32(body):
        raise fail("the checksum of the arrays is wrong: the file is damaged")
    coef, intercept, threshold = (arrays[name] for name in RULE)
    if coef.ndim != 2 or len(coef) == 0 or intercept.shape != threshold.shape or intercept.shape != (len(coef),):
        raise fail(
            "expected coef of shape (L, p), intercept and threshold of shape (L,), got "
            f"{coef.shape}, {intercept.shape} and {threshold.shape}"
        )
    _check_header(fail, header, coef.shape)
    keys = ("classes", "kind", "measure", "index_base", "feature_names", "target", "training")
    described: dict[str, Any] = {key: header.get(key) for key in keys}
    rule = intercept - threshold if version == 1 else intercept  # version 1 stored intercept and threshold separately
    kept = _unstacked(fail, arrays, len(coef)) if "points" in arrays else None
    if (version > WITHOUT_COLUMNS) != ("columns" in header):  # the first line is not under the checksum
        raise fail(f"expected columns in version {VERSION}, and in no other, got version {version}: it is damaged")
    columns = _columns(fail, header, coef.shape[1]) if version > WITHOUT_COLUMNS else None
    return LinearModel(coef, rule, threshold, **described, certificates=kept, columns=columns)


def _columns(fail: Callable[[str], FileError], header: dict[str, Any], n_features: int) -> list[Column]:
    try:
        columns = from_json(header["columns"])
    except ValueError as error:
        raise fail(f"{error}: the header is damaged, train again") from None
    names = feature_names(columns)
    if len(names) != n_features or header["feature_names"] not in (None, names):
        raise fail(f"expected columns that make the {n_features} features of the model, got {len(names)}: train again")
    unwritable = next((name for name in names if not _encodes(name)), None)
    if unwritable is not None:
        raise fail(f"expected columns as text that can be written as UTF-8, got {unwritable!a:.100}: train again")
    return columns


def _stacked(certificates: list[tuple[Vector, Vector] | None] | None) -> dict[str, Vector]:
    """Certificates as arrays: all points, their multipliers, and the label number of each point."""
    made = [(k, *one) for k, one in enumerate(certificates or []) if one is not None]
    if not made:
        return {}
    labels = np.concatenate([np.full(len(multipliers), float(k)) for k, _, multipliers in made])
    parts = np.vstack([points for _, points, _ in made]), np.concatenate([own for _, _, own in made]), labels
    return dict(zip(CERTIFICATE, parts, strict=True))


def _unstacked(
    fail: Callable[[str], FileError], arrays: dict[str, Vector], n_labels: int
) -> list[tuple[Vector, Vector] | None]:
    points, multipliers, labels = (arrays[name] for name in CERTIFICATE)
    if points.ndim != 2 or not multipliers.shape == labels.shape == points.shape[:1]:
        raise fail(
            f"expected as many multipliers and labels as points, got shapes {points.shape}, {multipliers.shape} and "
            f"{labels.shape}: the certificate is damaged, train again"
        )
    return [(points[labels == k], multipliers[labels == k]) for k in range(n_labels)]


def _check_header(fail: Callable[[str], FileError], header: dict[str, Any], shape: tuple[int, ...]) -> None:
    """Raise for a header that does not describe a model with coef of this shape."""
    n_labels, n_features = shape
    kind, classes = header.get("kind"), header.get("classes")
    if kind not in KINDS:
        raise fail(f"expected kind as one of {', '.join(KINDS)}, got {kind!r:.100}")
    length = {"binary": 2, "ranking": 0}.get(kind, n_labels)
    single = kind in ("binary", "ranking")
    if not isinstance(classes, list) or len(classes) != length or (single and n_labels != 1):
        raise fail(f"expected {length} classes for a {kind} model with coef of shape {shape}")
    if not (all(isinstance(c, str) for c in classes) or all(_is_number(c) for c in classes)):
        raise fail("expected the classes to be all numbers or all strings")
    if len(set(classes)) != len(classes):
        raise fail("expected different classes, got some twice")
    names = header.get("feature_names")
    if names is not None and not are_names(names, n_features):
        raise fail(f"expected feature_names as {n_features} strings or null")
    base = header.get("index_base")
    if base is not None and (type(base) is not int or base not in (0, 1)):  # 1.0 is no index
        raise fail(f"expected index_base 0, 1 or null, got {base!r:.100}: correct the header, or save the model again")
    for key, allowed in (("measure", str), ("target", (str, type(None))), ("training", dict)):
        if not isinstance(header.get(key), allowed):
            raise fail(f"the entry {key!r} of the header is missing or of the wrong type")
    for key in ("classes", "feature_names", "target", "measure"):
        unwritable = next((text for text in _texts(header.get(key)) if not _encodes(text)), None)
        if unwritable is not None:
            raise fail(
                f"expected {key} as text that can be written as UTF-8, got {unwritable!a:.100}: "
                "rename it in the training data, and train again"
            )


def _arrays(fail: Callable[[str], FileError], described: Any, body: memoryview) -> dict[str, Vector]:
    objects = isinstance(described, list) and all(isinstance(d, dict) for d in described)
    if not objects or [d.get("name") for d in described] not in ([*RULE], [*RULE, *CERTIFICATE]):
        raise fail(
            f"expected the arrays {', '.join(RULE)} in the header, each as a JSON object, got something else: "
            "the file is damaged, save the model again"
        )
    arrays: dict[str, Vector] = {}
    at = 0
    for entry in described:
        shape = entry.get("shape")
        if entry.get("dtype") != "<f8":
            raise fail(f"expected arrays of type '<f8', got {entry.get('dtype')!r:.100}")
        if not isinstance(shape, list) or not all(type(k) is int and k >= 0 for k in shape) or len(shape) > 2:
            raise fail(f"expected the shape of an array as one or two whole numbers, got {shape!r:.100}")
        if any(k > len(body) for k in shape):  # also where another dimension is 0
            raise fail(
                f"the array {entry['name']} has the shape {shape!r:.100}, which {len(body)} bytes of arrays cannot "
                "hold: the file was cut off or is damaged, save the model again"
            )
        size = math.prod(shape)
        if at + 8 * size > len(body):
            raise fail(
                f"the array {entry['name']} needs {8 * size} bytes, but {len(body) - at} are left: the file was cut off"
            )
        array = np.frombuffer(body, dtype="<f8", count=size, offset=at).reshape(shape).astype(np.float64)
        if not np.isfinite(array).all():
            raise fail(f"the array {entry['name']} holds NaN or infinite values")
        arrays[entry["name"]] = array
        at += 8 * size
    if at != len(body):
        raise fail(f"{len(body) - at} bytes behind the last array: the file is damaged")
    return arrays


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _texts(value: Any) -> list[str]:
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True
