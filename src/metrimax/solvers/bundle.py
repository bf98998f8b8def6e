"""The cutting-plane algorithm, and the bundle method that adds a line search in score space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrimax.protocols import Callback, Cuts, Design, Oracle, Steps
from metrimax.solvers.hybrid import Hybrid
from metrimax.solvers.progress import Progress


@dataclass(frozen=True)
class Bundle:
    """Cutting planes with a line search between the best point and the model's minimiser.

    Per iteration the data are read twice: ``X w`` for the minimiser of the model and ``X' slope`` for one new cut.
    The line search moves only scores, ``s + t X d``, so however many points it tries, X is not touched.

    The new cut is a mean of cuts while the gap comes down (`Progress.blur`): the exact one turns on single examples,
    and on many features it would take many of them to say what one mean does.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    stride : float
        The new cut is taken at ``best + stride (minimiser - best)``, and nearer after searches that found no step.
    accuracy : float
        Of the line search, relative to the gap. Below ``stride``, or an exact cut may say nothing new: where the line
        search is exact, that cut is violated by at least ``stride`` times the gap.

    References
    ----------
    Joachims (2005), Algorithm 1; Franc & Sonnenburg (2009), Algorithm 2 (OCAS).
    """

    max_iter: int = 10_000
    stride: float = 0.1
    accuracy: float = 0.02

    def steps(
        self,
        oracle: Oracle,
        design: Design,
        weight: float,
        *,
        tol: float,
        start: Cuts | None = None,
        callback: Callback | None = None,
    ) -> Steps:
        """Minimise ``1/2 |w|^2 + weight R(w)``, inside as ``lam/2 |w|^2 + R(w)`` with ``lam = 1 / weight``."""
        plain = Hybrid(self.max_iter, plain=self.max_iter + 1, stride=self.stride, accuracy=self.accuracy)
        return plain.steps(oracle, design, weight, tol=tol, start=start, callback=callback)


@dataclass(frozen=True)
class CuttingPlane:
    """The plain cutting-plane algorithm: the new cut is taken where the model is least. The reference.

    Parameters
    ----------
    max_iter : int
        Most iterations.

    References
    ----------
    Joachims (2005), Algorithm 1.
    """

    max_iter: int = 10_000

    def steps(
        self,
        oracle: Oracle,
        design: Design,
        weight: float,
        *,
        tol: float,
        start: Cuts | None = None,
        callback: Callback | None = None,
    ) -> Steps:
        """Minimise ``1/2 |w|^2 + weight R(w)``, inside as ``lam/2 |w|^2 + R(w)`` with ``lam = 1 / weight``."""
        cut = oracle(np.zeros(design.shape[0]))
        run = Progress(oracle, design, weight, tol, cut.loss, start, callback)
        model = run.model
        del start  # the model has what it needs
        if model.size == 1:
            yield from model.add(cut)
        del cut  # a vector of length n
        for _ in range(self.max_iter):
            target = model.minimiser(run.precision)
            if not run.closed:
                [target] = yield from model.score(target)
                _, cut = run.offer(target)
            del target
            if run.done():
                break
            yield from model.add(cut)
            del cut
        return (yield from run.solution())
