"""Estimators that are made of others: a list of names and estimators."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.metaestimators import _BaseComposition


class Composition(_BaseComposition):
    """Mixin for the parameter ``estimators``, a list of (name, estimator)."""

    estimators: Any

    def _check_estimators(self) -> None:
        """Raise unless ``estimators`` is such a list, with names that differ."""
        given = self.estimators
        listed = isinstance(given, (list, tuple)) and len(given) > 0
        if not (listed and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in given)):
            raise ValueError(f"expected estimators as a list of (name, estimator), at least one, got {given!r}")
        self._validate_names([name for name, _ in given])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with ``deep`` also those of the estimators in the list, as ``name__parameter``."""
        params: dict[str, Any] = self._get_params("estimators", deep=deep)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters. Those of the estimators in the list are called ``name__parameter``."""
        self._set_params("estimators", **params)
        return self
