"""scikit-learn's checks of estimators, for every measure; and the tags that they go by."""

from __future__ import annotations

import warnings

import pytest
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from metrimax import CAPOClassifier, MeasureEnsemble, MeasureRanker, MeasureSVC, MeasureSVCCV
from metrimax.measure import REGISTRY

BALANCED = "the measure weighs both classes alike, whatever their weights"
TWICE = "it is trained to call more than there are, or fewer, which is not accurate"
ORDER = "the order of the examples counts, or how many are called: weights of classes do not make one of them rare"
WHOLE = "it takes whole numbers as weights"
COPIES = "the margin of its threshold counts examples of equal spread, which weights of 0, 1 and 2 are not"
ALL = "too little weight of positives proves no recall, and so all are called"
EXPECTED = {
    "recall_at_precision": {
        "check_sample_weight_equivalence_on_dense_data": COPIES,
        "check_sample_weight_equivalence_on_sparse_data": COPIES,
    },
    "precision_at_recall": {"check_class_weight_classifiers": ALL},
    "balanced_error": {"check_class_weight_classifiers": BALANCED},
    "gmean": {"check_class_weight_classifiers": BALANCED},
    "qmean": {"check_class_weight_classifiers": BALANCED},
    "min_tpr_tnr": {"check_class_weight_classifiers": BALANCED},
    "average_precision": {"check_class_weight_classifiers": ORDER},
    "q": {"check_class_weight_classifiers": ORDER},
    "ndcg": {"check_class_weight_classifiers": WHOLE},
    "tpr_at_fpr": {"check_classifiers_train": TWICE},
    "recall_at_k": {"check_classifiers_train": TWICE},
    "recall_at_budget": {"check_classifiers_train": TWICE, "check_class_weight_classifiers": WHOLE},
}
COVERED = ("error", "fbeta", "roc_area", "prbep")  # by tests/test_estimators.py


@parametrize_with_checks(
    [MeasureSVC(name) for name in REGISTRY if name not in COVERED],
    expected_failed_checks=lambda estimator: EXPECTED.get(estimator.measure, {}),
)
def test_every_measure(estimator, check):
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        # The risk alone, to its optimum: there weights mean repetition as far as rounding goes.
        estimator = clone(estimator).set_params(tol=1e-10, hinge=0.0, logistic=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


@pytest.mark.parametrize("estimator", [MeasureSVC(), MeasureSVCCV(), MeasureRanker(), MeasureEnsemble()], ids=repr)
def test_tags_are_true(estimator):
    tags = get_tags(estimator)
    assert tags.input_tags.sparse
    assert tags.target_tags.required
    assert tags.estimator_type == (None if isinstance(estimator, MeasureRanker) else "classifier")
    assert tags.input_tags.allow_nan == isinstance(estimator, MeasureEnsemble)


def test_tags_of_capo_are_those_of_its_auxiliaries():
    assert get_tags(CAPOClassifier([("svm", MeasureSVC())])).input_tags.sparse
    assert not get_tags(CAPOClassifier([("svm", MeasureSVC(kernel="precomputed"))])).input_tags.allow_nan
