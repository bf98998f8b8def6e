"""Fits that change nothing unless they end: the checks write on a copy, and the attributes are set at the end."""

from __future__ import annotations

from typing import ClassVar, Self


class Refitted:
    """Mixin: what an estimator has learnt can be left out of a copy, and replaced."""

    _learnt: ClassVar[tuple[str, ...]] = ()  #: names that `fit` sets beside those that end in an underscore

    def _is_learnt(self, name: str) -> bool:
        return name.endswith("_") or name in self._learnt

    def _unfitted(self) -> Self:
        """A copy without what earlier fits have learnt. The checks of a new fit set their attributes on it."""
        twin = object.__new__(type(self))
        twin.__dict__.update({name: value for name, value in vars(self).items() if not self._is_learnt(name)})
        return twin

    def _renew(self, checked: Self) -> None:
        """Delete what earlier fits have learnt, and take the attributes that the checks set on ``checked``.

        Called after training, so that a fit that is interrupted changes nothing.
        """
        for name in [name for name in vars(self) if self._is_learnt(name)]:
            delattr(self, name)
        for name, value in vars(checked).items():
            if self._is_learnt(name):
                setattr(self, name, value)
