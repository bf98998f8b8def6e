"""Structural support vector machines: outputs that are sequences, trees, clusterings, or anything of your own."""

from metrimax.structured.adapted import AdaptedProblem
from metrimax.structured.clustering import SupervisedClustering, pair_differences
from metrimax.structured.estimator import StructuredSVM
from metrimax.structured.grammar import Grammar, binarise, constituent_f1, constituents, unbinarise
from metrimax.structured.parsing import CFGParser
from metrimax.structured.problem import StructuredProblem
from metrimax.structured.sequence import SequenceTagger
from metrimax.structured.words import word_features

__all__ = [
    "AdaptedProblem",
    "CFGParser",
    "Grammar",
    "SequenceTagger",
    "StructuredProblem",
    "StructuredSVM",
    "SupervisedClustering",
    "binarise",
    "constituent_f1",
    "constituents",
    "pair_differences",
    "unbinarise",
    "word_features",
]
