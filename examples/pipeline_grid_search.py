"""
Rare text categories: a pipeline and a grid search
==================================================

Sparse text features, a pipeline and a grid search: MeasureSVC where scikit-learn's own classifiers would stand.

The documents come with scikit-learn: the openings of the docstrings of its public classes and functions. The task is to
tell which of them are about clustering, a rare class.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import PrecisionRecallDisplay, classification_report
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils.discovery import all_estimators, all_functions

from metrimax import FBeta, MeasureSVC


def documents(words=40):
    """The first words of every docstring, and whether it stands in a module about clustering."""
    texts, labels = [], []
    for _, thing in sorted(dict(all_estimators() + all_functions()).items()):
        text = (thing.__doc__ or "").split()[:words]
        if text:
            texts.append(" ".join(text))
            labels.append(".cluster" in thing.__module__)
    return texts, labels


def main():
    texts, y = documents()
    train, test, y_train, y_test = train_test_split(texts, y, test_size=0.5, stratify=y, random_state=0)
    pipeline = Pipeline([("tfidf", TfidfVectorizer(sublinear_tf=True)), ("svm", MeasureSVC())])
    grid = {
        "tfidf__min_df": [1, 2],
        "svm__measure": ["f1", FBeta(2), "roc_area"],
        "svm__C": [0.1, 1.0, 10.0],
    }
    search = GridSearchCV(pipeline, grid, scoring="f1", cv=StratifiedKFold(3, shuffle=True, random_state=0))
    search.fit(train, y_train)
    svm = search.best_estimator_["svm"]
    print(f"{len(train)} docstrings to train on, {sum(y_train)} about clustering, {svm.n_features_in_} words")
    print(f"best of {len(search.cv_results_['params'])} settings: {search.best_params_}")
    print(f"F1 in cross-validation {search.best_score_:.3f}; {svm.status_} (gap {svm.gap_:.1e})\n")
    print(classification_report(y_test, search.predict(test), target_names=["other", "clustering"], zero_division=0))

    PrecisionRecallDisplay.from_estimator(search, test, y_test, name="MeasureSVC")
    plt.show()


if __name__ == "__main__":
    main()
