"""
Ranking documents, query by query
=================================

Rankings of documents, query by query: NDCG trained directly, beside ROC area, with C chosen by cross-validation."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metrimax import MeasureRanker
from metrimax.measure import NDCG, AveragePrecision, Grouped


def draw(rng, n_queries, size=25):
    """Queries with documents of grades 0 to 4: one feature tells what is relevant at all, one what is best."""
    groups = np.repeat(np.arange(n_queries), size)
    y = rng.choice(5, p=[0.6, 0.25, 0.08, 0.04, 0.03], size=len(groups))
    X = rng.normal(size=(len(groups), 8))
    X[:, 0] += 1.2 * ((y > 0) & (y < 3))
    X[:, 1] += 0.8 * y
    X[:, 2] += 3 * rng.normal(size=n_queries)[groups]  # the query's own, the same for all its documents
    return X, y, groups


def main():
    rng = np.random.default_rng(0)
    X, y, groups = draw(rng, 40)
    X_test, y_test, groups_test = draw(rng, 200)
    print("trained for          C   gap      NDCG@5   mean average precision   (200 new queries)")
    _, ax = plt.subplots()
    with config_context(enable_metadata_routing=True):
        for measure in ("ndcg", "average_precision", "roc_area"):
            ranker = MeasureRanker(measure, k=5).set_fit_request(groups=True).set_score_request(groups=True)
            pipe = make_pipeline(StandardScaler(), ranker)
            search = GridSearchCV(pipe, {"measureranker__C": [0.01, 0.1, 1.0]}, cv=GroupKFold(3))
            search.fit(X, y, groups=groups)
            scores = search.predict(X_test)
            best = search.best_estimator_[-1]
            ndcg = Grouped(NDCG(5), groups_test).score(y_test, scores)
            mean_ap = Grouped(AveragePrecision(), groups_test).score(y_test > 0, scores)
            print(f"{measure:<18}{best.C:>6g}   {best.gap_:.1e}{ndcg:>9.3f}{mean_ap:>12.3f}")
            ax.plot(mean_ap, ndcg, "o", label=f"trained for {measure}")

    ax.set(xlabel="mean average precision", ylabel="NDCG@5 on new queries")
    ax.legend()
    plt.show()


if __name__ == "__main__":
    main()
