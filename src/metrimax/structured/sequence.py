"""Sequence tagging: a Markov model over tags with sparse features of the tokens, trained for the Hamming loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, ClassVar, overload

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer

from metrimax import _kernels
from metrimax.designs import as_design
from metrimax.protocols import Callback, Vector
from metrimax.structured.estimator import StructuredSVM
from metrimax.structured.problem import Constraints, Rescaling, StructuredProblem
from metrimax.structured.words import word_features as word_features  # pickled taggers look for it here

Tags = npt.NDArray[np.int32]

BLOCK = 20_000
"""Wrong tags whose features are put together at a time, about: a bound of the memory that takes."""


class Sequences(Sequence[Any]):
    """Sequences of tokens, each a sparse row of features, stacked: ``rows[offsets[i] : offsets[i + 1]]`` is one."""

    def __init__(self, rows: Any, offsets: npt.NDArray[np.int64]) -> None:
        self.rows = rows
        self.offsets = offsets
        self.owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> Any: ...
    def __getitem__(self, i: Any) -> Any:
        return self.rows[self.offsets[i] : self.offsets[i + 1]]


class SequenceProblem(StructuredProblem):
    """Tags of a sequence, with the score ``start[y_0] + sum_t transition[y_t-1, y_t] + sum_t x_t @ emission[:, y_t]``.

    An input is a sparse matrix (length, d), an output an array of tag numbers, the loss the number of wrong tags.

    Parameters
    ----------
    n_tags, n_features : int
        K and d; the weights are transition (K, K), start (K,) and emission (d, K), one after the other.

    Notes
    -----
    The argmaxes cost O(length K^2) by Viterbi's algorithm; that of slack rescaling O(length^2 K^2), with the number of
    mistakes as part of the state.
    """

    releases_gil: ClassVar[bool] = True

    def __init__(self, n_tags: int, n_features: int) -> None:
        self.n_tags = n_tags
        self.n_features = n_features

    def parts(self, w: Vector) -> tuple[Vector, Vector, Vector]:
        """Transition, start and emission weights."""
        K = self.n_tags
        return w[: K * K].reshape(K, K), w[K * K : K * K + K], w[K * K + K :].reshape(-1, K)

    def size(self, X: Sequence[Any], Y: Sequence[Any]) -> int:
        return self.n_tags * (self.n_tags + 1 + self.n_features)

    def joint_feature(self, x: Any, y: Tags) -> Any:
        K, x = self.n_tags, sparse.coo_array(x)
        row, token = x.coords[::-1]
        first = y[:1].astype(np.int64)
        columns = np.concatenate((y[:-1].astype(np.int64) * K + y[1:], K * K + first, K * K + K + row * K + y[token]))
        values = np.concatenate((np.ones(len(y)), x.data))
        size = self.size([], [])
        return sparse.csr_array((values, (np.zeros(len(columns), dtype=np.int64), columns)), shape=(1, size))

    def loss(self, y: Tags, z: Tags) -> float:
        return float(np.count_nonzero(y != z))

    def loss_augmented_argmax(self, x: Any, y: Tags, w: Vector) -> Tags:
        return self._paths(x, _ends(len(y)), w, y)

    def argmax(self, x: Any, w: Vector) -> Tags:
        return self._paths(x, _ends(x.shape[0]), w)

    def slack_rescaled_argmax(self, x: Any, y: Tags, w: Vector) -> Tags:
        if not len(y):
            return y
        transition, start, _ = self.parts(w)
        scores, paths = _kernels.viterbi_by_mistakes(self._unary(x, w), transition, start, y)
        mistakes = np.arange(len(scores))
        values = np.where(mistakes > 0, mistakes * (1 + scores - scores[0]), 0.0)
        path: Tags = paths[int(np.argmax(values))]
        return path

    def constraints(
        self,
        X: Sequence[Any],
        Y: Sequence[Any],
        w: Vector,
        *,
        rescaling: Rescaling = "margin",
        n_jobs: int | None = None,
    ) -> Constraints:
        """All sequences together: one product for the scores of the tokens, and one call for the paths."""
        if rescaling == "slack" or not isinstance(X, Sequences):
            return super().constraints(X, Y, w, rescaling=rescaling, n_jobs=n_jobs)
        truth = np.concatenate(Y)
        paths = self._paths(X.rows, X.offsets, w, truth, effective_n_jobs(n_jobs))
        wrong = paths != truth
        losses = np.bincount(X.owner[wrong], minlength=len(X)).astype(np.float64)
        mistakes = np.cumsum(losses)
        borders = np.unique([0, *np.searchsorted(mistakes, np.arange(BLOCK, mistakes[-1], BLOCK)), len(X)]).tolist()
        blocks = [self._differences(X, truth, paths, *ends) for ends in pairwise(borders)]
        return Constraints(losses, sparse.csr_array(sparse.vstack(blocks)))

    def outputs(self, X: Sequence[Any], w: Vector, *, n_jobs: int | None = None) -> list[Any]:
        if not isinstance(X, Sequences):
            return super().outputs(X, w, n_jobs=n_jobs)
        paths = self._paths(X.rows, X.offsets, w, n_threads=effective_n_jobs(n_jobs))
        return [paths[first:last] for first, last in pairwise(X.offsets.tolist())]

    def _unary(self, rows: Any, w: Vector, n_threads: int = 1) -> Vector:
        return as_design(rows, n_threads=n_threads).matvec(np.ascontiguousarray(self.parts(w)[2]))

    def _paths(
        self, rows: Any, offsets: npt.NDArray[np.int64], w: Vector, truth: Tags | None = None, n_threads: int = 1
    ) -> Tags:
        """The tags with the highest score; if true tags are given, all wrong tags score one unit more."""
        transition, start, _ = self.parts(w)
        unary = self._unary(rows, w, n_threads)
        if truth is not None:
            unary += 1.0
            unary[np.arange(len(truth)), truth] -= 1.0
        paths: Tags = _kernels.viterbi(unary, transition, start, offsets, n_threads)
        return paths

    def _differences(self, X: Sequences, truth: Tags, paths: Tags, start: int, stop: int) -> Any:
        """``joint_feature(x, path) - joint_feature(x, truth)`` of some sequences, from the wrong tags only."""
        K, offsets = self.n_tags, X.offsets[start : stop + 1]
        wrong = paths[offsets[0] : offsets[-1]] != truth[offsets[0] : offsets[-1]]
        tokens = offsets[0] + np.flatnonzero(wrong)
        features = X.rows[tokens].tocoo()
        feature, token = features.col.astype(np.int64), tokens[features.row]
        inside = np.ones(len(wrong), dtype=bool)
        inside[offsets[:-1][np.diff(offsets) > 0] - offsets[0]] = False  # the first token of a sequence follows none
        follow = offsets[0] + np.flatnonzero(inside & (wrong | np.roll(wrong, 1)))
        first = offsets[0] + np.flatnonzero(~inside & wrong)
        rows, columns, values = [], [], []
        for tags, sign in ((paths.astype(np.int64), 1.0), (truth.astype(np.int64), -1.0)):
            rows += [X.owner[follow], X.owner[first], X.owner[token]]
            columns += [tags[follow - 1] * K + tags[follow], K * K + tags[first], K * K + K + feature * K + tags[token]]
            values += [np.full(len(follow), sign), np.full(len(first), sign), sign * features.data]
        entries = (np.concatenate(values), (np.concatenate(rows) - start, np.concatenate(columns)))
        return sparse.csr_array(entries, shape=(stop - start, self.size([], [])))


class SequenceTagger(StructuredSVM):
    """Tags sequences of tokens by a Markov model trained for the number of wrong tags.

    Parameters
    ----------
    features : callable or None, default=None
        Turns a sequence into its tokens' features, a list of dicts as below; `word_features` does so for words. None if
        X holds features already.
    C, tol, max_iter, solver, rescaling, n_jobs, verbose, callback
        As in `StructuredSVM`; the loss of a sequence is the number of its wrong tags.

    Attributes
    ----------
    classes_ : ndarray
        The tags.
    transition_, start_, emission_ : ndarray (K, K), (K,), (d, K)
        The weights of a tag after another tag, of a tag at the beginning, and of a feature with a tag.
    vectorizer_ : DictVectorizer or None
        Of the features given as dicts.
    coef_, gap_, status_, ...
        As in `StructuredSVM`.

    Notes
    -----
    A sequence is a matrix (length, d), dense or sparse, or a list with a dict of features for each token, names to
    numbers, strings, or lists of strings, as scikit-learn's DictVectorizer takes them.

    References
    ----------
    Altun, Tsochantaridis & Hofmann (2003). Hidden Markov support vector machines. ICML.

    Examples
    --------
    >>> from metrimax.structured import SequenceTagger, word_features
    >>> X = [["the", "dog", "chased", "the", "cat"], ["a", "cat", "slept"], ["the", "dogs", "chased", "a", "cat"]]
    >>> y = [["D", "N", "V", "D", "N"], ["D", "N", "V"], ["D", "N", "V", "D", "N"]]
    >>> tagger = SequenceTagger(features=word_features).fit(X, y)
    >>> tagger.predict([["the", "cats", "slept"]])
    [['D', 'N', 'V']]
    """

    problem_: SequenceProblem

    def __init__(
        self,
        *,
        features: Callable[[Any], Any] | None = None,
        C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 1000,
        solver: str = "cached",
        rescaling: str = "margin",
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.features = features
        super().__init__(
            C=C,
            tol=tol,
            max_iter=max_iter,
            solver=solver,
            rescaling=rescaling,
            n_jobs=n_jobs,
            verbose=verbose,
            callback=callback,
        )

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> SequenceTagger:
        """Train on sequences X and their tags y, one list of tags per sequence.

        Parameters
        ----------
        X : sequence of lists
            Tokens, or their features.
        y : sequence of lists
            The tags of the tokens.

        Returns
        -------
        self
            The fitted estimator.
        """
        return super().fit(X, y)

    @property
    def transition_(self) -> Vector:
        return self._parts()[0]

    @property
    def start_(self) -> Vector:
        return self._parts()[1]

    @property
    def emission_(self) -> Vector:
        return self._parts()[2]

    def _parts(self) -> tuple[Vector, Vector, Vector]:
        return self.problem_.parts(self.coef_)

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Share of the tokens that get the right tag.

        Parameters
        ----------
        X : sequence of lists
            Tokens, or their features.
        y : sequence of lists
            The tags of the tokens.

        Returns
        -------
        float
            From 0 to 1.
        """
        return 1 - float(self._losses(X, y).sum()) / max(1, sum(len(tags) for tags in y))

    def _learn(self, X: Sequence[Any], y: Sequence[Any]) -> Sequences:
        _check_sequences(y)
        tags = [tag for tags in y for tag in tags]
        if not tags:
            raise ValueError("expected at least one token, got empty sequences only")
        first = next((sequence for sequence in map(self._tokens, X) if _length(sequence)), None)
        if first is None:
            raise ValueError(
                f"expected at least one token, got empty sequences only, with {len(tags)} tag(s): "
                "give the features of each token that has a tag"
            )
        try:
            classes = np.unique(tags)
        except TypeError as error:  # for example, None and strings have no order
            raise ValueError(
                f"expected tags that are all strings or all numbers, in all sequences, got some that cannot be put "
                f"in order ({error}); give all tags as strings, for instance"
            ) from error
        _check_tags(y, classes)
        self.classes_ = classes
        if _is_matrix(first):
            self.vectorizer_ = None
            self.problem_ = SequenceProblem(len(classes), int(first.shape[1]))
            return self._inputs(X)
        self.vectorizer_ = DictVectorizer()
        inputs = self._of_dicts(X, self.vectorizer_.fit_transform)
        self.problem_ = SequenceProblem(len(classes), inputs.rows.shape[1])
        return inputs

    def _inputs(self, X: Sequence[Any]) -> Sequences:
        if self.vectorizer_ is not None:
            return self._of_dicts(X, self.vectorizer_.transform)
        d = self.problem_.n_features
        sequences = [self._tokens(x) for x in X]
        for i, x in enumerate(sequences):
            if not _is_matrix(x) or x.shape[1] != d:
                came = f"shape {x.shape}" if hasattr(x, "shape") else type(x).__name__
                raise ValueError(f"sequence {i}: expected a matrix (length, {d}) like the first one, got {came}")
        stacked = sparse.vstack([sparse.csr_array(x) for x in sequences]) if sequences else np.zeros((0, d))
        return _stacked(stacked, [x.shape[0] for x in sequences])

    def _of_dicts(self, X: Sequence[Any], vectorise: Callable[[Any], Any]) -> Sequences:
        """The sequences, if tokens are dicts: one sequence at a time, since dicts take more memory than rows."""
        lengths: list[int] = []

        def tokens() -> Iterator[Any]:
            for i, x in enumerate(X):
                own = self._tokens(x)
                lengths.append(len(own))
                yield from (_check_token(token, i) for token in own)

        rest = tokens()
        first = next(rest, None)
        if first is None:
            return _stacked(np.zeros((0, self.problem_.n_features)), lengths)
        return _stacked(vectorise(chain([first], rest)), lengths)

    def _outputs(self, y: Sequence[Any], inputs: Any) -> list[Tags]:
        _check_sequences(y)
        number = {tag: k for k, tag in enumerate(self.classes_.tolist())}
        for i, (tags, length) in enumerate(zip(y, np.diff(inputs.offsets).tolist(), strict=True)):
            if len(tags) != length:
                raise ValueError(f"sequence {i}: expected one tag for each of its {length} tokens, got {len(tags)}")
        # a tag that training did not see is always wrong
        return [np.array([number.get(tag, -1) for tag in np.asarray(tags).tolist()], dtype=np.int32) for tags in y]

    def _names(self, outputs: list[Any]) -> list[Any]:
        return [self.classes_[path].tolist() for path in outputs]

    def _tokens(self, x: Any) -> Any:
        return x if self.features is None else self.features(x)


def _stacked(stacked: Any, lengths: list[int]) -> Sequences:
    """Sequences of these lengths, from the rows of their tokens one below the other."""
    rows, offsets = (
        sparse.csr_array(stacked, dtype=np.float64),
        np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))),
    )
    if not np.isfinite(rows.data).all():
        token = int(np.searchsorted(rows.indptr, np.flatnonzero(~np.isfinite(rows.data))[0], side="right")) - 1
        i = int(np.searchsorted(offsets, token, side="right")) - 1
        raise ValueError(f"sequence {i}: expected finite features, got NaN or infinity")
    return Sequences(rows, offsets)


def _ends(length: int) -> npt.NDArray[np.int64]:
    return np.array([0, length], dtype=np.int64)


def _is_matrix(x: Any) -> bool:
    return sparse.issparse(x) or (isinstance(x, np.ndarray) and x.ndim == 2)


def _length(x: Any) -> int:
    return int(x.shape[0]) if _is_matrix(x) else len(x)


def _check_token(token: Any, i: int) -> Any:
    if not isinstance(token, Mapping):
        raise TypeError(
            f"sequence {i}: expected a dict of features for each token, or the sequence as a matrix, got "
            f"{type(token).__name__}; for words, SequenceTagger(features=word_features)"
        )
    return token


def _check_sequences(y: Sequence[Any]) -> None:
    for i, tags in enumerate(y):
        if not hasattr(tags, "__len__"):
            raise ValueError(f"sequence {i}: expected a list of tags, one for each of its tokens, got {tags!r:.100}")


def _check_tags(y: Sequence[Any], classes: npt.NDArray[Any]) -> None:
    """Raise for tags that equal no class, because NumPy turned numbers into strings, or because they are NaN."""
    known = set(classes.tolist())
    for i, tags in enumerate(y):
        for tag in tags:
            plain = tag.item() if hasattr(tag, "item") else tag
            if plain not in known:
                raise ValueError(
                    f"sequence {i}: expected tags that are all strings or all numbers, without NaN, in all sequences, "
                    f"got {plain!r} ({type(plain).__name__}); give all tags as strings, for instance"
                )
