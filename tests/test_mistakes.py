"""Mistakes that users make, and the words in the message that help them."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import f1_score
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import metrimax
from metrimax import (
    NDCG,
    CAPOClassifier,
    CostModel,
    FBeta,
    MeasureEnsemble,
    MeasureRanker,
    MeasureRankerCV,
    MeasureSVC,
    MeasureSVCCV,
    PrecisionAtK,
    RecallAtBudget,
    RecallAtPrecision,
    TableFunction,
    open_dataset,
    verify,
    xi_alpha,
)
from metrimax.display import (
    CoefficientDisplay,
    ConvergenceDisplay,
    EstimateDisplay,
    OperatingPointDisplay,
    PathDisplay,
    ReliabilityDisplay,
    ThresholdDisplay,
)
from metrimax.io.models import save_model
from metrimax.measure import PartialAUC, get_measure

rng = np.random.default_rng(0)
y = rng.random(60) < 0.3
X = rng.normal(size=(60, 4)) + y[:, None]
names = np.where(y, "fraud", "legit")
frame = pd.DataFrame(X, columns=list("abcd"))
groups = np.arange(60) // 6
SVC, TREE = MeasureSVC, DecisionTreeClassifier()


def fitted(X=X, y=y):
    return MeasureSVC("f1", logistic=1).fit(X, y)


def rate(tp, fp, fn, tn):
    return tp / (tp + fn)


MISTAKES = {
    "X is one column": (lambda: SVC().fit(X[:, 0], y), "Expected 2D array, got 1D array"),
    "X has three dimensions": (lambda: SVC().fit(X[None], y), "Found array with dim 3"),
    "X is texts": (lambda: SVC().fit(["cheap pills", "lunch"] * 30, y), "TfidfVectorizer"),
    "X has a column of words": (lambda: SVC().fit(frame.assign(a="red"), y), "OneHotEncoder"),
    "X has gaps": (lambda: SVC().fit(np.where(X > 2, np.nan, X), y), "SimpleImputer"),
    "X has gaps in a frame": (lambda: SVC().fit(frame.where(frame < 2), y), "MeasureEnsemble"),
    "X is infinite": (lambda: SVC().fit(np.where(X > 2, np.inf, X), y), "Input X contains infinity"),
    "X is complex": (lambda: SVC().fit(X + 1j, y), "Complex data not supported"),
    "X is None": (lambda: SVC().fit(None, y), "expected X, the rows of features, got None"),
    "X has no rows": (lambda: SVC().fit(X[:0], y[:0]), "Found array with 0 sample"),
    "X has no columns": (lambda: SVC().fit(X[:, :0], y), "Found array with 0 feature"),
    "X has dates": (lambda: SVC().fit(frame.assign(a=pd.Timestamp(0)), y), "turn dates and times into numbers"),
    "X is masked": (lambda: SVC().fit(np.ma.masked_greater(X, 2), y), "fill them in"),
    "X and y are swapped": (lambda: SVC().fit(y, X), "Expected 2D array"),
    "X and y differ in length": (lambda: SVC().fit(X[:50], y), "inconsistent numbers of samples: [50, 60]"),
    "y is missing": (lambda: SVC().fit(X), "requires y to be passed"),
    "y has one class": (lambda: SVC().fit(X, np.ones(60)), "at least two classes in y, got one class only: [1.0]"),
    "y is continuous": (lambda: SVC().fit(X, X[:, 0]), "Unknown label type: continuous"),
    "y has NaN": (lambda: SVC().fit(X, np.where(y, np.nan, 0)), "Input y contains NaN"),
    "y has None": (lambda: SVC().fit(X, np.where(y, None, "a")), "y without missing values"),
    "y mixes types": (lambda: SVC().fit(X, np.array([1, "a"] * 30, dtype=object)), "y.astype(str)"),
    "y is a sparse column": (lambda: SVC().fit(X, sparse.csr_matrix(y[:, None])), "Use '.toarray()'"),
    "y is sets of labels": (lambda: SVC().fit(X, [("a", "b"), ("b",)] * 30), "MultiLabelBinarizer"),
    "y has twos": (lambda: SVC().fit(X, np.column_stack([y, 2 * y, y])), "MultiOutputClassifier"),
    "y is several columns of names": (lambda: SVC().fit(X, np.column_stack([names, names])), "MultiOutputClassifier"),
    "y is masked": (lambda: SVC().fit(X, np.ma.masked_equal(y.astype(int), 1)), "leave these rows out"),
    "measure is misspelt": (lambda: SVC("f1_scor").fit(X, y), "perhaps 'f1' is meant"),
    "measure is f2": (lambda: SVC("f2").fit(X, y), "perhaps FBeta(2) is meant"),
    "measure is precision": (lambda: SVC("precision").fit(X, y), "perhaps 'precision@recall=0.8' is meant"),
    "measure is a class": (lambda: SVC(FBeta).fit(X, y), "call it, as in FBeta()"),
    "measure is scikit-learn's": (lambda: SVC(f1_score).fit(X, y), "write it as a function of the contingency table"),
    "measure is None": (lambda: SVC(None).fit(X, y), "expected measure as a name"),
    "measure takes no k": (lambda: SVC("f1@3").fit(X, y), "precision, recall, ndcg take a k"),
    "k is too large": (lambda: SVC(PrecisionAtK(1000)).fit(X, y), "k = 1000 is more than the 60 examples"),
    "k is zero": (lambda: SVC("precision@0").fit(X, y), "expected k as a whole number of at least 1"),
    "k is a word": (lambda: SVC("precision@ten").fit(X, y), "or as a share of the sample such as '1%'"),
    "k is negative": (lambda: PrecisionAtK(-3), "expected k as a whole number of at least 1"),
    "precision is in percent": (lambda: RecallAtPrecision(90), "expected precision > 0 and <= 1, got 90"),
    "constraint is unknown": (lambda: SVC("recall@specificity=0.9").fit(X, y), "there are recall@precision=..."),
    "costs are negative": (lambda: CostModel(fn=-1), "expected finite costs, not negative"),
    "parameter is misspelt": (lambda: SVC(c=1), "unexpected keyword argument 'c'"),
    "parameter to set is misspelt": (lambda: SVC().set_params(c=1), "Valid parameters are: ['C'"),
    "C is zero": (lambda: SVC(C=0).fit(X, y), "expected a finite C > 0, got 0"),
    "C is a string": (lambda: SVC(C="1").fit(X, y), "expected a finite C > 0, got '1'"),
    "C is a list": (lambda: SVC(C=[1, 10]).fit(X, y), "expected a finite C > 0, got [1, 10]"),
    "Cs is a number": (lambda: MeasureSVCCV(Cs=1.0).fit(X, y), "expected Cs as finite numbers > 0"),
    "tol is negative": (lambda: SVC(tol=-1).fit(X, y), "expected a finite tol > 0"),
    "max_iter is zero": (lambda: SVC(max_iter=0).fit(X, y), "max_iter as a whole number of at least 1"),
    "solver is unknown": (lambda: SVC(solver="newton").fit(X, y), "expected one of auto, bundle"),
    "kernel is unknown": (lambda: SVC(kernel="gauss").fit(X, y), "expected linear, rbf, poly"),
    "threshold is a number": (lambda: SVC(threshold=0.5).fit(X, y), "unknown threshold 0.5: expected one of"),
    "hinge is a string": (lambda: SVC(hinge="yes").fit(X, y), "expected a finite hinge >= 0"),
    "class_weight is auto": (lambda: SVC(class_weight="auto").fit(X, y), "expected class_weight as 'balanced'"),
    "class_weight has other classes": (lambda: SVC(class_weight={"fraud": 2}).fit(X, y), "not in class_weight"),
    "weights are negative": (lambda: SVC().fit(X, y, sample_weight=-np.ones(60)), "Negative values in data passed to"),
    "weights are zero": (lambda: SVC().fit(X, y, sample_weight=np.zeros(60)), "at least one non-zero number"),
    "weights are too few": (lambda: SVC().fit(X, y, sample_weight=np.ones(5)), "expected (60,)"),
    "weights are NaN": (lambda: SVC().fit(X, y, sample_weight=np.full(60, np.nan)), "sample_weight contains NaN"),
    "pos_label is misspelt": (lambda: SVC(pos_label="Fraud").fit(X, names), "with the classes ['fraud', 'legit']"),
    "pos_label of three classes": (lambda: SVC(pos_label=1).fit(X, np.arange(60) % 3), "one of two classes"),
    "predict before fit": (lambda: SVC().predict(X), "not fitted yet"),
    "fewer columns": (lambda: fitted().predict(X[:, :3]), "X has 3 features, but MeasureSVC is expecting 4"),
    "one row as a vector": (lambda: fitted().predict(X[0]), "array.reshape(1, -1) if it contains a single sample"),
    "other column names": (lambda: fitted(frame).predict(frame.rename(columns={"a": "z"})), "unseen at fit time"),
    "probabilities": (lambda: fitted().predict_proba(X), "CalibratedClassifierCV"),
    "scores of other labels": (lambda: fitted().score(X, names), "give the labels as in fit"),
    "score without labels": (lambda: fitted().score(X), "expected y, the true labels"),
    "more than all": (lambda: fitted().predict_top_k(X, 1000), "from 0 to the 60 examples, got 1000"),
    "one fold": (lambda: MeasureSVCCV(cv=1).fit(X, y), "n_splits=2 or more"),
    "folds in words": (lambda: MeasureSVCCV(cv="five").fit(X, y), "`cv` as an integer"),
    "scoring is misspelt": (lambda: MeasureSVCCV(scoring="acuracy").fit(X, y), "perhaps 'error' is meant"),
    "a ranker for F1": (lambda: MeasureRanker("f1").fit(X, y, groups=groups), "such as ndcg"),
    "grades are names": (lambda: MeasureRanker().fit(X, names, groups=groups), "encode the labels as numbers"),
    "no auxiliaries": (lambda: CAPOClassifier([]).fit(X, y), "list of (name, estimator), at least one"),
    "an auxiliary alone": (lambda: CAPOClassifier(SVC()).fit(X, y), "list of (name, estimator), at least one"),
    "preset is unknown": (lambda: MeasureEnsemble("f1", "quick").fit(X, y), "or one of default, fast, best"),
    "a member is a class": (
        lambda: MeasureEnsemble("f1", [("t", DecisionTreeClassifier)]).fit(X, y),
        "got estimator class instead",
    ),
    "own measure takes two": (lambda: SVC(lambda a, b: a).fit(X, y), "as a function of (tp, fp, fn, tn)"),
    "own measure never differs": (lambda: SVC(lambda tp, fp, fn, tn: 0 * tp).fit(X, y), "kind='score'"),
    "own measure fits no table": (
        lambda: SVC(TableFunction(rate, where=lambda tp, fp, fn, tn: tp > 1e9)).fit(X, y),
        "admits no table of 17 positives and 43 negatives",
    ),
    "dataset is not there": (lambda: open_dataset("/nowhere"), "expected a folder of shards, got nothing"),
    "verify before fit": (lambda: verify(SVC(), X, y), "not fitted yet"),
    "xi-alpha of an ensemble": (lambda: xi_alpha(MeasureEnsemble(), X, y), "the estimate is for hinge losses"),
}


NAMES = {  # of measures, and what the message has to say
    "f1_micro": "'f1' is that of the positive class, and of several classes or labels their mean (macro)",
    "f1_weighted": "their mean (macro)",
    "roc_auc_macro": "'roc_auc' is that of the positive class",
    "hamming_loss": "perhaps 'error' is meant",
    "zero_one_loss": "perhaps 'error' is meant",
    "neg_log_loss": "measures here judge labels and rankings, no probabilities",
    "brier_score": "no probabilities",
    "mse": "no probabilities",
    "mrr": "perhaps 'average_precision' is meant",
    "sensitivity": "perhaps 'recall@precision=0.9' is meant",
    "specificity": "perhaps 'tpr@fpr=0.01' is meant",
    "youden": "perhaps 'balanced_error' is meant",
    "IoU": "perhaps 'jaccard' is meant",
    "dice_score": "perhaps 'f1' is meant",
    "gini": "perhaps 'roc_area' is meant",
    "lift": "perhaps 'precision@10%' is meant",
    "f-beta": "perhaps 'fbeta' is meant",
    "G-mean": "perhaps 'gmean' is meant",
    "F0.5": "perhaps FBeta(0.5) is meant, 'fbeta:beta=0.5'",
    "map@10": "precision, recall, ndcg take a k, as in precision@50",
    "cost=50": "parameters follow a colon, as in fbeta:beta=2 or cost:fn=50,fp=1",
    "fbeta(2)": "parameters follow a colon",
    "fbeta:2": "expected NAME:KEY=VALUE,KEY=VALUE as in cost:fn=50,fp=1",
    "fbeta:gamma=2": "unknown parameter 'gamma' in the measure 'fbeta:gamma=2': fbeta takes beta",
    "mcc:k=2": "mcc takes none",
    "recall@precision": "there are recall@precision=...",
    "recall@precision>0.9": "there are recall@precision=...",
    "recall@precision=90": "got 90: 90 % is 0.9",
    "fpr@tpr=0.9": "there are recall@precision=..., precision@recall=..., tpr@fpr=...",
    "precision@recall=0": "expected recall > 0 and <= 1, got 0",
}


@pytest.mark.parametrize("name", NAMES)
def test_the_message_on_a_name_helps(name):
    with pytest.raises(ValueError, match=re.escape(NAMES[name])):
        SVC(name).fit(X, y)


MISTAKES |= {
    "measure is a list": (lambda: SVC(["f1", "mcc"]).fit(X, y), "give one of them, and let GridSearchCV try several"),
    "measure is made of words": (lambda: CostModel(miss=5), "unexpected keyword argument 'miss'"),
    "costs are 3 x 3": (lambda: CostModel.from_matrix(np.eye(3)), "expected a 2 x 2 cost matrix"),
    "X is dictionaries": (lambda: SVC().fit([{"a": 1}] * 60, y), "DictVectorizer().fit_transform(X)"),
    "X is a generator": (lambda: SVC().fit((row for row in X), y), "a data frame, or a list of rows"),
    "X is a file": (lambda: SVC().fit("data.csv", y), "read it first, as with pandas.read_csv"),
    "X has rows of several lengths": (lambda: SVC().fit([[1, 2], [1]] * 30, y), "give every row the same columns"),
    "X has decimal commas": (lambda: SVC().fit(np.full((60, 2), "1,5"), y), "decimal=','"),
    "X is text to predict": (lambda: fitted().predict(["hello"]), "TfidfVectorizer"),
    "X has gaps to predict": (lambda: fitted().predict(np.full((1, 4), np.nan)), "SimpleImputer"),
    "X has dates to predict": (lambda: fitted().predict(frame.assign(a=pd.Timestamp(0))), "turn dates and times"),
    "y is a name": (lambda: SVC().fit(frame, "verdict"), "give the column itself, as in table['verdict']"),
    "y lies down": (lambda: SVC().fit(X, y[None, :]), "inconsistent numbers of samples: [60, 1]"),
    "y is all different": (lambda: MeasureSVCCV().fit(X, np.arange(60)), "n_splits=5 cannot be greater"),
    "y has one positive": (lambda: MeasureSVCCV().fit(X, np.arange(60) == 3), "choose fewer folds"),
    "weights are a word": (lambda: SVC().fit(X, y, sample_weight="balanced"), "'balanced' is for class_weight"),
    "weights are a matrix": (lambda: SVC().fit(X, y, sample_weight=np.ones((60, 2))), "Sample weights must be 1D"),
    "weights are infinite": (lambda: SVC().fit(X, y, sample_weight=np.full(60, np.inf)), "sample_weight contains inf"),
    "class_weight is a list": (lambda: SVC(class_weight=[1, 2]).fit(X, y), "a dict by classes or None, got [1, 2]"),
    "class_weight is negative": (lambda: SVC(class_weight={True: -1}).fit(X, y), "not negative, got {True: -1}"),
    "threads are all": (lambda: SVC(n_threads=-1).fit(X, y), "or None for all cores, got -1"),
    "callback is a number": (lambda: SVC(callback=5).fit(X, y), "expected callback as a function of a Record"),
    "checkpoint is True": (lambda: SVC(checkpoint=True).fit(X, y), "expected checkpoint as the name of a folder"),
    "gamma is misspelt": (lambda: SVC(kernel="rbf", gamma="scal").fit(X, y), "expected gamma as a number, 'scale'"),
    "gram matrix is not square": (lambda: SVC(kernel="precomputed").fit(X, y), "as a square matrix, got shape (60, 4)"),
    "a kernel's weights": (lambda: SVC(kernel="rbf").fit(X, y).coef_, "a kernel has no weights of features"),
    "Cs are exponents": (lambda: MeasureSVCCV(Cs=[-1, 0, 1]).fit(X, y), "expected Cs as finite numbers > 0"),
    "too many folds": (lambda: MeasureSVCCV(cv=100).fit(X, y), "n_splits=100 greater than the number of samples"),
    "scoring is a scorer": (lambda: MeasureSVCCV(scoring=lambda e, X, y: 1).fit(X, y), "function of (tp, fp, fn, tn)"),
    "members have no names": (lambda: MeasureEnsemble("f1", [TREE]).fit(X, y), "as a list of (name, estimator)"),
    "members have one name": (lambda: MeasureEnsemble("f1", [("t", TREE)] * 2).fit(X, y), "not unique: ['t', 't']"),
    "k is given twice": (lambda: MeasureRanker("ndcg@5", k=7).fit(X, y, groups=groups), "leave one of them out"),
    "sizes do not add up": (lambda: MeasureRanker().fit(X, y, group=[30, 20]), "that add up to the 60 rows"),
    "groups are a name": (lambda: MeasureRanker().fit(X, y, groups="query"), "give the column itself"),
    "a group is missing": (
        lambda: MeasureRanker().fit(X, y, groups=np.where(groups == 3, np.nan, groups)),
        "got nan at place 18, one of 6: give these examples a group",
    ),
    "groups are all alike": (lambda: MeasureRanker().fit(X, np.ones(60), groups=groups), "nothing can be ranked"),
    "share for the top": (lambda: fitted().predict_top_k(X, "10%"), "expected k as a whole number from 0 to the 60"),
    "importances": (lambda: fitted().feature_importances_, "permutation_importance"),
    "best_params_": (lambda: MeasureSVCCV(cv=2, Cs=[1]).fit(X, y).best_params_, "C_ and trained_with_"),
    "best_estimator_": (lambda: MeasureSVCCV(cv=2, Cs=[1]).fit(X, y).best_estimator_, "trained on all rows"),
    "partial_fit": (lambda: fitted().partial_fit(X, y), "metrimax.open_dataset"),
    "save": (lambda: fitted().save("m"), "joblib.dump"),
    "plot": (lambda: fitted().plot(), "metrimax.display has the plots"),
    "gap before fit": (lambda: SVC().gap_, "call fit first"),
    "curve of a ranking measure": (
        lambda: ThresholdDisplay.from_predictions(y, X[:, 0], measure="roc_auc"),
        "knows no threshold",
    ),
    "probabilities are scores": (lambda: ReliabilityDisplay.from_predictions(y, 9 * X[:, 0]), "not scores"),
    "path of one C": (lambda: PathDisplay.from_estimator(fitted()), "expected a fitted MeasureSVCCV, got MeasureSVC"),
    "no history": (lambda: ConvergenceDisplay.from_estimator(TREE.fit(X, y)), "its training keeps none"),
    "own measure is text": (lambda: SVC(lambda tp, fp, fn, tn: "good").fit(X, y), "returned 'good': expected numbers"),
    "own measure returns nothing": (lambda: SVC(lambda tp, fp, fn, tn: None).fit(X, y), "returned None"),
    "own measure is NaN": (lambda: SVC(lambda tp, fp, fn, tn: tp * np.nan).fit(X, y), "define the case 0/0"),
    "own measure has another order": (
        lambda: SVC(lambda tn, fp, fn, tp: tp / (tp + fn + 1)).fit(X, y),
        "a function of (tp, fp, fn, tn), in this order",
    ),
    "pos_label has another type": (lambda: SVC(pos_label="1").fit(X, y.astype(int)), "with the classes [0, 1]"),
    "dataset is a file": (lambda: open_dataset(__file__), "expected a folder of shards, got a file"),
}


categories = frame.assign(b=pd.Categorical(["x", "y"] * 30), c=["u", "v"] * 30)
several = np.column_stack([y, ~y]).astype(int)
piped = make_pipeline(StandardScaler(), SVC("f1")).fit(X, y)

MISTAKES |= {
    "costs are words": (lambda: CostModel(fn="high"), "expected finite costs, not negative and not both zero, got fn="),
    "the top are more than all": (lambda: PrecisionAtK("110%"), "share of the sample such as '1%' or 0.01, got '110%'"),
    "the top in words": (lambda: PrecisionAtK("5 percent"), "such as '1%' or 0.01, got '5 percent'"),
    "the top of none": (lambda: RecallAtBudget(0), "expected k as a whole number of at least 1"),
    "the top is not given": (lambda: SVC("precision@").fit(X, y), "such as '1%' or 0.01, got ''"),
    "labellings are misspelt": (lambda: PrecisionAtK(5, "atleast"), "'exact', 'at_least', 'at_most' or 'rankings'"),
    "beta is text": (lambda: FBeta("2"), "expected a finite beta > 0, from 1e-100 to 1e100, got '2'"),
    "confidence is a percentage": (lambda: RecallAtPrecision(0.9, 95), "a confidence between 0 and 1, got 95"),
    "the end is before the start": (lambda: PartialAUC(0.5, 0.1), "expected 0 <= alpha < beta <= 1"),
    "gain is unknown": (lambda: NDCG(gain="log"), "expected gain 'exponential' or 'linear', got 'log'"),
    "measure is a number": (lambda: SVC(0.9).fit(X, y), "or a function of (tp, fp, fn, tn), got float: 0.9"),
    "measure is empty": (lambda: SVC("").fit(X, y), "unknown measure '': expected one of ae, "),
    "measure is the area below precision": (lambda: SVC("auprc").fit(X, y), "perhaps 'average_precision' is meant"),
    "measure is recall": (lambda: SVC("recall").fit(X, y), "perhaps 'recall@precision=0.9' is meant"),
    "measure is a profit": (lambda: SVC("profit").fit(X, y), "perhaps 'cost:fn=50,fp=1' is meant"),
    "measure is of imbalanced-learn": (lambda: SVC("geometric_mean_score").fit(X, y), "perhaps 'gmean' is meant"),
    "jobs in words": (lambda: MeasureSVCCV(n_jobs="all").fit(X, y), "-1 for all cores, or None, got 'all'"),
    "selection is unknown": (lambda: MeasureSVCCV(selection="aic").fit(X, y), "one of cv, holdout, xi_alpha"),
    "a splitter lacks groups": (lambda: MeasureSVCCV(cv=GroupKFold(3)).fit(X, y), "fit(X, y, groups=...)"),
    "groups of folds are too few": (lambda: MeasureSVCCV().fit(X, y, groups=groups[:5]), "samples: [60, 5]"),
    "no folds, but their threshold": (lambda: SVC(threshold="folds").fit(X, y), "MeasureSVCCV places it by folds"),
    "no loss is left": (lambda: SVC(risk=0, hinge=0, logistic=0).fit(X, y), "give one of them a weight"),
    "risk is a word": (lambda: SVC(risk="equal").fit(X, y), "expected a finite risk >= 0 or even, got 'equal'"),
    "balanced is a word": (lambda: SVC(balanced="yes").fit(X, y), "expected balanced as True or False, got 'yes'"),
    "intercept is scaled by zero": (lambda: SVC(intercept_scaling=0).fit(X, y), "must be a positive and finite number"),
    "a free intercept for F1": (lambda: SVC(intercept_scaling="free").fit(X, y), "or a number for intercept_scaling"),
    "coordinate descent for F1": (lambda: SVC(solver="dual_cd").fit(X, y), "choose one of them, or solver='bundle'"),
    "iterations are a float": (lambda: SVC(max_iter=1e4).fit(X, y), "max_iter as a whole number of at least 1"),
    "tol is text": (lambda: SVC(tol="1e-3").fit(X, y), "expected a finite tol > 0, got '1e-3'"),
    "gamma is negative": (lambda: SVC(kernel="rbf", gamma=-1).fit(X, y), "expected a finite gamma > 0, got -1"),
    "degree is text": (lambda: SVC(kernel="poly", degree="3").fit(X, y), "expected degree as a whole number"),
    "pos_label of several labels": (
        lambda: SVC(pos_label=1).fit(X, several),
        "leave it out, for each label is positive",
    ),
    "pos_label is a list": (lambda: SVC(pos_label=["fraud"]).fit(X, names), "give one of them, or None"),
    "y is lists of labels": (lambda: SVC().fit(X, [["a"], ["b", "c"]] * 30), "MultiLabelBinarizer().fit_transform(y)"),
    "X is a series": (lambda: SVC().fit(frame["a"], y), "Pass a DataFrame"),
    "X has categories": (lambda: SVC().fit(categories, y), "X contains text, in the columns b, c: encode documents"),
    "X has text beside categories": (
        lambda: SVC().fit(categories.assign(b=pd.Categorical([1, 2] * 30), c=frame.a.astype(str) + "?"), y),
        "X contains text, in the column c: encode documents",
    ),
    "X has a date": (lambda: SVC().fit(frame.assign(when=pd.Timestamp(0)), y), "in the column when: turn dates"),
    "X has columns of one name": (lambda: SVC().fit(pd.concat([frame, frame[["a"]]], axis=1), y), "'a' 2 times"),
    "X has numbers as names, too": (lambda: SVC().fit(frame.set_axis([0, "b", 2, "d"], axis=1), y), "astype(str)"),
    "X is too large": (lambda: SVC().fit(X * 1e200, y), "scale them before training"),
    "columns in another order": (lambda: fitted(frame).predict(frame[list("dcba")]), "feature_names_in_)]"),
    "a column is missing": (lambda: fitted(frame).predict(frame[list("abc")]), "X[list(estimator.feature_names_in_)]"),
    "a column too many": (lambda: fitted(frame).predict(frame.assign(e=1)), "Feature names unseen at fit time:\n- e"),
    "rows are columns": (lambda: fitted().predict(X.T), "X has 60 features, but MeasureSVC is expecting 4"),
    "rows are in a file": (lambda: fitted().predict("new.csv"), "X is the name of a file, perhaps"),
    "score with too few labels": (lambda: fitted().score(X, y[:5]), "inconsistent numbers of samples: [60, 5]"),
    "score with negative weights": (lambda: fitted().score(X, y, sample_weight=-np.ones(60)), "Negative values"),
    "score of one class": (lambda: SVC("auc").fit(X, y).score(X, ~y & y), "of both classes, got only one"),
    "no weight on positives": (lambda: SVC().fit(X, y, np.where(y, 0, 1)), "got no positive example"),
    "a share of a row": (lambda: fitted().predict_top_k(X, 2.5), "a whole number from 0 to the 60 examples, got 2.5"),
    "groups in two ways": (lambda: MeasureRanker().fit(X, y, groups=groups, qid=groups), "groups and qid: give one"),
    "groups are too few": (lambda: MeasureRanker().fit(X, y, qid=groups[:7]), "with 60 entries, the group of each"),
    "grades below zero": (
        lambda: MeasureRanker().fit(X, -np.arange(60), groups=groups),
        "so that 0 is the worst grade",
    ),
    "grades are amounts": (lambda: MeasureRanker().fit(X, 9.5 * np.arange(60), groups=groups), "into fewer grades"),
    "more folds than groups": (lambda: MeasureRankerCV(cv=100).fit(X, y, groups=groups), "the number of groups, 10"),
    "a member cannot predict": (lambda: MeasureEnsemble("f1", [("a", GroupKFold())]).fit(X, y), "'a' as an estimator"),
    "an ensemble of texts": (lambda: MeasureEnsemble().fit(["a text", "b"] * 30, y), "as a pandas data frame"),
    "auxiliaries are not trained": (
        lambda: CAPOClassifier([("t", DecisionTreeClassifier())], prefit=True).fit(X, y),
        "or set prefit=False",
    ),
    "outputs are unknown": (lambda: CAPOClassifier([("t", TREE)], outputs="proba").fit(X, y), "one of label, score"),
    "B is zero": (lambda: CAPOClassifier([("t", TREE)], B=0).fit(X, y), "expected a finite B > 0, got 0"),
    "another model to verify": (lambda: verify(TREE.fit(X, y), X, y), "expected a fitted MeasureSVC, MeasureSVCCV or"),
    "another model to save": (lambda: save_model("m", fitted()), "joblib.dump stores an estimator"),
    "a class is misspelt": (lambda: metrimax.MeasureSVM, "perhaps MeasureSVC is meant"),
    "a curve of several labels": (
        lambda: ThresholdDisplay.from_estimator(fitted(), X, several),
        "one column at a time",
    ),
    "a curve of fewer scores": (lambda: ThresholdDisplay.from_predictions(y, X[:5, 0]), "each of the 60 labels, got"),
    "a curve of swapped arrays": (lambda: OperatingPointDisplay.from_predictions(X[:, 0], y), "labels first, then"),
    "coefficients of a tree": (lambda: CoefficientDisplay.from_estimator(TREE.fit(X, y)), "permutation_importance"),
    "coefficients of a fourth label": (lambda: CoefficientDisplay.from_estimator(piped, label=3), "from 0 to 0, got 3"),
    "estimates of another model": (lambda: EstimateDisplay.from_estimator(piped, X, y, X, y), "MeasureSVCCV, got Pipe"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_message_helps(name):
    make, words = MISTAKES[name]
    with pytest.raises((ValueError, TypeError, AttributeError, OSError)) as caught:
        make()
    told = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert re.search(re.escape(words), told), told


def test_what_is_not_there_is_not_there():
    model = fitted()
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="'MeasureSVC' object has no attribute 'coeff_'"):
        _ = model.coeff_


def test_verbose_writes_lines_where_there_is_no_terminal(monkeypatch, capsys):
    """As in notebooks and logs: the last line at the end, others when their time has come, and no carriage returns."""
    MeasureSVC("f1", logistic=1, verbose=1).fit(X, y)
    told = capsys.readouterr().err
    assert re.fullmatch(r"MeasureSVC\(f1\): iteration \d+, gap .*\n", told)
    monkeypatch.setattr("metrimax.training.progress.EVERY", 0.0)
    MeasureSVC("f1", logistic=1, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 1
    assert not any("\r" in line or "\x1b" in line for line in lines)
    MeasureEnsemble("f1", [("t", DecisionTreeClassifier())], cv=2, verbose=1).fit(X, y)
    assert "MeasureEnsemble" in capsys.readouterr().err
    MeasureSVC("f1", logistic=1).fit(X, y)
    assert capsys.readouterr().err == ""


def test_a_document_is_not_quoted_whole():
    with pytest.raises(ValueError, match="From: me") as caught:
        SVC().fit(["From: me\n" + "many words " * 1000] * 60, y)
    assert len(str(caught.value)) < 300


def test_names_hold_parameters():
    """In Python as on the command line."""
    assert get_measure("cost:fn=50,fp=1") == CostModel(fn=50, fp=1)
    assert get_measure("FBeta:beta=0.5") == FBeta(0.5)
    assert get_measure("precision@20:labellings=at_least") == PrecisionAtK(20, labellings="at_least")
    assert get_measure("recall@precision=90%:confidence=0.9") == RecallAtPrecision(0.9, 0.9)
    assert SVC("cost:fn=50,fp=1").fit(X, y).gap_ <= 1e-3
    assert MeasureRanker("ndcg:k=5").fit(X, y, groups=groups).score(X, y, groups=groups) > 0.5


@pytest.mark.parametrize("model", [SVC("ndcg", max_iter=2), MeasureSVCCV("ndcg", Cs=[1.0], cv=2, max_iter=2)])
def test_grades_that_are_trained_as_classes_are_said(model):
    with pytest.warns(UserWarning, match="3 values of y are trained as classes, .* train MeasureRanker"):
        model.fit(X, np.arange(60) % 3)


def test_groups_that_are_missing_are_said():
    """At the user's own line, also where a pipeline or a search stands between."""
    grades = np.arange(60) % 3
    with pytest.warns(
        UserWarning, match="no groups are given, so all rows are ranked as one group: give groups="
    ) as told:
        make_pipeline(StandardScaler(), MeasureRanker()).fit(X, grades)
    assert [one.filename for one in told] == [__file__]
    ranker = MeasureRanker().fit(X, grades, groups=groups)
    with pytest.warns(UserWarning, match="no groups are given"):
        ranker.score(X, grades)


@pytest.mark.parametrize(
    ("model", "X", "y", "remedy"),
    [
        (SVC("f1"), np.zeros((60, 2)), y, "see whether the columns of X vary"),
        (
            MeasureSVCCV(Cs=[1e-3]),
            np.random.default_rng(0).normal(size=(60, 2)),
            np.arange(60) < 2,
            "or there are too few positives to learn from",
        ),
        (SVC("f1", hinge=0, C=0.1), rng.normal(size=(60, 2)), np.arange(60) < 2, "or let MeasureSVCCV choose"),
        (SVC("f1"), X, np.zeros((60, 3), dtype=int), "none of the 3 labels varies in y, so nothing can be learnt"),
    ],
)
def test_what_cannot_be_learnt_is_said(model, X, y, remedy):
    with pytest.warns(UserWarning, match=remedy):
        model.fit(X, y)


def test_the_warning_on_a_fixed_k_says_what_to_write():
    with pytest.warns(UserWarning, match="labellings='at_least', .* or by name precision@K:labellings=at_least"):
        SVC("precision@5").fit(X, y)
    assert SVC("precision@5:labellings=at_least").fit(X, y).gap_ <= 1e-3
