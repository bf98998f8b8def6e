"""Weights as a sparse matrix, for models of many labels and features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from metrimax._validation import dense, is_number
from metrimax.protocols import Vector


def _is_linear(model: SparseWeights) -> bool:
    return isinstance(model.kernel, str) and model.kernel == "linear"


class SparseWeights:
    """Mixin: ``coef_`` as a CSR matrix, without small weights."""

    kernel: Any
    coef_: Any

    @available_if(_is_linear)  # type: ignore[untyped-decorator]
    def sparsify(self, below: float = 0.0) -> Self:
        """Keep ``coef_`` as a CSR matrix, without weights that are small.

        Most weights of a model for text are zero or tiny. ``dropped_`` says what was left out: for each row of
        ``coef_`` the length of the dropped weights. The score of a row x changes by no more than that times ``|x|``.
        The certificate is that of all weights, so `metrimax.verify` refuses a model from which some were dropped.

        Parameters
        ----------
        below : float, default=0.0
            Weights are dropped if they are smaller than this share of the largest one of their row; 0 drops zeros only.

        Returns
        -------
        self
            The estimator, whose ``coef_`` is a `scipy.sparse.csr_array` now.

        Examples
        --------
        >>> import numpy as np
        >>> from metrimax import MeasureSVC
        >>> X = np.eye(6)[:, :4]
        >>> model = MeasureSVC("f1").fit(X, [1, 1, 0, 0, 0, 0]).sparsify(below=0.01)
        >>> bool((model.dropped_ < 0.01).all())
        True
        """
        check_is_fitted(self)
        if not is_number(below) or not 0 <= below < 1:
            raise ValueError(f"expected below as a share of the largest weight, from 0 to less than 1, got {below!r}")
        W = sparse.csr_array(self.coef_, copy=True)  # a shallow copy of the model may share it
        W.eliminate_zeros()
        largest = abs(W).max(axis=1).toarray().ravel()
        small = np.abs(W.data) < below * np.repeat(largest, np.diff(W.indptr))
        left_out = sparse.csr_array((np.where(small, W.data, 0.0), W.indices, W.indptr), shape=W.shape)
        lengths = np.sqrt((left_out * left_out).sum(axis=1))
        self.dropped_: Vector = np.hypot(vars(self).get("dropped_", 0.0), lengths)
        W.data[small] = 0.0
        W.eliminate_zeros()
        self.coef_ = W
        return self

    @available_if(_is_linear)  # type: ignore[untyped-decorator]
    def densify(self) -> Self:
        """Keep ``coef_`` as an array again; weights that `sparsify` has dropped stay zero.

        Returns
        -------
        self
            The estimator.
        """
        check_is_fitted(self)
        self.coef_ = dense(self.coef_)
        return self
