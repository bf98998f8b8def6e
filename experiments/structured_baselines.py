"""Baselines of the structured experiments, as weights of the same problems: same features, same argmax."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from metrimax.structured import AdaptedProblem, Grammar, SequenceTagger, StructuredProblem, StructuredSVM
from metrimax.structured import pair_differences as differences
from metrimax.structured.clustering import ClusteringProblem, same
from metrimax.structured.parsing import ParsingProblem


class Baseline:
    """Weights of a structured problem, found by other means than its risk."""

    problem: StructuredProblem
    weights: Any

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> Baseline:
        raise NotImplementedError

    def inputs(self, X: Sequence[Any]) -> Any:
        """As the problem sees them."""
        return X

    def outputs(self, inputs: Any, y: Sequence[Any]) -> Any:
        return y

    def named(self, X: Sequence[Any], outputs: list[Any]) -> list[Any]:
        """The problem's outputs as users see them."""
        return outputs

    def predict(self, X: Sequence[Any]) -> list[Any]:
        return self.named(X, self.problem.outputs(self.inputs(X), self.weights))


class HMM(Baseline):
    """Hidden Markov model by (smoothed) maximum likelihood: given the tag, the features of a token are independent.

    Features are there or not, 1 or 0.
    """

    def __init__(self, alpha: float, features: Any = None) -> None:
        self.alpha = alpha
        self.tagger = SequenceTagger(features=features)

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> HMM:
        inputs = self.tagger._learn(X, y)
        self.problem = self.tagger.problem_
        tags = self.outputs(inputs, y)
        K = self.problem.n_tags
        start, transition = np.full(K, self.alpha), np.full((K, K), self.alpha)
        for path in tags:
            if len(path):
                start[path[0]] += 1
                np.add.at(transition, (path[:-1], path[1:]), 1)
        onehot = np.eye(K)[np.concatenate(tags)]
        p = (inputs.rows.T @ onehot + self.alpha) / (onehot.sum(axis=0) + 2 * self.alpha)  # (d, K)
        # sum over features of x log p + (1 - x) log(1 - p): the second part without x is a constant of the tag, which
        # is paid once per token: on its arrival, by transition or as the first one
        constant = np.log1p(-p).sum(axis=0)
        transition = np.log(transition / transition.sum(axis=1, keepdims=True)) + constant
        start = np.log(start / start.sum()) + constant
        self.weights = np.concatenate((transition.ravel(), start, (np.log(p) - np.log1p(-p)).ravel()))
        return self

    def inputs(self, X: Sequence[Any]) -> Any:
        return self.tagger._inputs(X)

    def outputs(self, inputs: Any, y: Sequence[Any]) -> Any:
        return self.tagger._outputs(y, inputs)

    def named(self, X: Sequence[Any], outputs: list[Any]) -> list[Any]:
        return [self.tagger.classes_[path].tolist() for path in outputs]


class PCFG(Baseline):
    """Probabilistic grammar by (smoothed) maximum likelihood: rules by their share among those of the same parent."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> PCFG:
        grammar = Grammar.from_trees(y)
        self.problem = ParsingProblem(grammar)
        count = np.full(len(grammar.rules), self.alpha)
        for words, parse in zip(X, self.outputs(X, y), strict=True):
            count += self.problem.joint_feature(words, parse)
        total: Counter[str] = Counter()
        for rule, n in zip(grammar.rules, count, strict=True):
            total[rule[0]] += n
        self.weights = np.log(count / [total[rule[0]] for rule in grammar.rules])
        return self

    def outputs(self, inputs: Any, y: Sequence[Any]) -> Any:
        return [self.problem.encode(words, tree, i) for i, (words, tree) in enumerate(zip(inputs, y, strict=True))]

    def named(self, X: Sequence[Any], outputs: list[Any]) -> list[Any]:
        return [None if z is None else self.problem.decode(x, z) for x, z in zip(X, outputs, strict=True)]


class PairwiseClassifier(Baseline):
    """Pairs classified one by one by a linear SVM, whose scores are then clustered (Finley & Joachims 2005)."""

    def __init__(self, C: float, method: str = "relaxed") -> None:
        self.C = C
        self.problem = ClusteringProblem(method)

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> PairwiseClassifier:
        pairs = np.concatenate(self.inputs(X))
        together = np.concatenate(self.outputs(X, y)) > 0
        machine = LinearSVC(C=self.C, loss="hinge", fit_intercept=False, max_iter=100_000, random_state=0)
        self.weights = machine.fit(pairs, together).coef_[0]
        return self

    def inputs(self, X: Sequence[Any]) -> Any:
        return [differences(x) for x in X]

    def outputs(self, inputs: Any, y: Sequence[Any]) -> Any:
        return [same(np.asarray(clusters)) for clusters in y]


class Adapted:
    """A structural SVM with the score of a baseline, trained on the same examples, as one more feature."""

    def __init__(self, baseline: Baseline, C: float, tol: float) -> None:
        self.baseline, self.C, self.tol = baseline, C, tol

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> Adapted:
        baseline = self.baseline.fit(X, y)
        inputs = baseline.inputs(X)
        problem = AdaptedProblem(baseline.problem, baseline.weights)
        self.svm = StructuredSVM(problem, C=self.C, tol=self.tol).fit(inputs, baseline.outputs(inputs, y))
        return self

    def predict(self, X: Sequence[Any]) -> list[Any]:
        return self.baseline.named(X, self.svm.predict(self.baseline.inputs(X)))
