"""svmlight/libsvm text, read by the compiled reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from metrimax import _kernels
from metrimax.designs.linear import available_threads
from metrimax.io.compressed import Bytes, blocks, stored
from metrimax.io.files import FileError, Name
from metrimax.io.labels import Truth
from metrimax.io.limits import Limit
from metrimax.protocols import Vector


class Svmlight(NamedTuple):
    """The content of a file, feature indices as written.

    The labels of row i are ``labels[label_starts[i] : label_starts[i + 1]]``.
    """

    values: Vector
    indices: npt.NDArray[np.int32]
    indptr: npt.NDArray[np.int64]
    labels: Vector
    label_starts: npt.NDArray[np.int64]
    qids: npt.NDArray[np.int64]  #: empty where the file has none
    lowest: int  #: index; above the highest where there is no feature at all
    highest: int
    n_bytes: int  #: of the text

    @property
    def n(self) -> int:
        return len(self.indptr) - 1

    @property
    def multilabel(self) -> bool:
        """Whether some row has several labels; then a row without any is fine too."""
        return bool((np.diff(self.label_starts) > 1).any())

    @property
    def truth(self) -> Truth:
        """Labels and groups."""
        groups = self.qids if len(self.qids) else None
        if len(self.labels) == 0:
            return Truth(None, groups)
        one_each = len(self.labels) == self.n and not self.multilabel
        return Truth(self.labels if one_each else np.split(self.labels, self.label_starts[1:-1]), groups)


def parse_svmlight(
    text: Bytes | Iterable[Bytes],
    name: Name,
    *,
    allow_blank: bool = True,
    light_tags: bool = False,
    least: int = 0,
    most: int = 2**31 - 2,
    n_threads: int | None = None,
    lines_before: int = 0,
    several: bool = False,
    labels: bool = True,
    text_size: int = 0,
) -> Svmlight:
    r"""Read svmlight text from memory; ``name`` is what errors call it.

    Parameters
    ----------
    text : ndarray of uint8, or several
        The whole file, or its pieces, of whole lines, one after the other.
    name : str or path
        For messages.
    allow_blank : bool
        Skip blank lines; an error otherwise.
    light_tags : bool
        Accept and ignore SVM-light's ``sid:`` and ``cost:``, and ``qid:`` too.
    least, most : int
        The feature indices allowed.
    n_threads : int, optional
        The most threads; all cores by default.
    lines_before : int
        Lines of the file before this text, for the line numbers of errors.
    several : bool
        Rows of other files may have several labels, so rows without a label are allowed here too.
    labels : bool
        False to read neither labels nor groups; some may then be missing.
    text_size : int
        About how many bytes all pieces have, where that is known: arrays of the right size need not grow.

    Examples
    --------
    >>> import numpy as np
    >>> rows = parse_svmlight(np.frombuffer(b"1 3:0.5 # yes\n-1 1:2 3:1\n", np.uint8), "example")
    >>> rows.labels, rows.indices
    (array([ 1., -1.]), array([3, 1, 3], dtype=int32))
    """
    pieces = [text] if isinstance(text, np.ndarray) else text
    reader = _kernels.SvmlightReader(
        allow_blank=allow_blank,
        light_tags=light_tags,
        least=least,
        most=most,
        n_threads=available_threads(n_threads),
        lines_before=lines_before,
        text_size=text.nbytes if isinstance(text, np.ndarray) else text_size,
    )
    for k, piece in enumerate(pieces):
        marked = k == 0 and piece[:3].tobytes() == b"\xef\xbb\xbf"  # by which some editors begin UTF-8
        with _named(name):
            reader.feed(piece[3:] if marked else piece)
    with _named(name):
        return Svmlight(*reader.finish(several=several, unwanted=not labels))


@contextmanager
def _named(name: Name) -> Iterator[None]:
    """Say in which file an error is."""
    try:
        yield
    except ValueError as error:
        raise FileError(f"{name}: {error}") from None


def read_svmlight(path: Name, *, limit: Limit = None, **options: Any) -> Svmlight:
    """Read a file of svmlight text, compressed or not, piece by piece; see `parse_svmlight`."""
    return parse_svmlight(blocks(path, limit=limit), path, text_size=stored(path), **options)
