"""What of the findings of Joachims (2000) holds here: a section of the page, counted from the rows."""

from __future__ import annotations

import pandas as pd

from experiments.stats import verdict

MEASURES = ("error", "recall", "precision", "f1")
OPTIMISTIC_PAPER = {"error": 3, "recall": 1, "precision": 15, "f1": 2}
"""Of 100 runs on Reuters with rho = 1."""

NAMES = {"reuters": "Reuters", "webkb": "WebKB", "ohsumed": "Ohsumed"}
NEAR = 2.0
"""Two means are called near where they differ by no more than so many of the paper's standard deviations."""


def findings(free: pd.DataFrame, paper: pd.DataFrame, over_n: pd.DataFrame, exact: pd.DataFrame) -> str:
    """The section; `free` has the runs of Tables 1 to 3 with the paper's machine."""
    first = free.data.iloc[0]
    lines = [
        *_beside_the_paper(free[free.data == first], paper),
        *(_bias(free[free.data == name], NAMES.get(str(name), str(name))) for name in free.data.unique()),
        _factor(free[free.data == first], paper),
        _spread(free),
        *_learning(over_n),
        _open_question(exact, free),
    ]
    return "\n".join([
        "## What agrees with the paper and what does not", "",
        "The paper's findings are in italics; the machine is the paper's, with a free intercept.", "",
        *(f"* {line}" for line in lines), "",
    ])  # fmt: skip


def _beside_the_paper(ours: pd.DataFrame, paper: pd.DataFrame) -> list[str]:
    """How near the means of Table 1 are to those that are printed."""
    said, far = [], []
    for kind, columns in (("estimates with rho = 1", "rho1"), ("with rho = 2", "rho2"), ("hold-outs", "holdout")):
        rho = 2 if columns == "rho2" else 1
        printed = paper[paper.rho == rho].set_index("category")
        near = n = 0
        for category, runs in ours.groupby("category", sort=False):
            for m in MEASURES:
                if category not in printed.index:
                    continue
                name = f"{m}_{'holdout' if columns == 'holdout' else 'estimate'}"
                mean, sd = (float(printed.loc[category, f"{name}_{what}"]) for what in ("mean", "sd"))
                off = (100 * float(runs[f"{m}_{columns}"].mean()) - mean) / sd
                near, n = near + (abs(off) <= NEAR), n + 1
                far.append((abs(off), f"{category}, {'F1' if m == 'f1' else m}, {kind}: {off:+.1f}"))
        if n:
            said.append(f"{near} of {n} {kind}")
    if not said:
        return []
    return [
        f"**Table 1.** Within {NEAR:g} of the paper's standard deviations from its mean are {', '.join(said)}. The "
        f"farthest: {max(far)[1]} deviations."
    ]


def _bias(runs: pd.DataFrame, name: str) -> str:
    """How often an estimate is pessimistic, by means of categories and by runs."""
    means = runs.groupby("category").mean(numeric_only=True)
    cautious = {m: _cautious(means, m) for m in MEASURES}
    single = {m: len(runs) - int(_cautious(runs, m)) for m in MEASURES}
    theirs = ", in the paper " + _listed(OPTIMISTIC_PAPER) if name == NAMES["reuters"] else ""
    return (
        f"*With rho = 1 the estimates are pessimistic on average* ({name}). "
        f"{verdict(sum(cautious.values()), len(MEASURES) * len(means))}: by the means of the {len(means)} categories "
        f"for {_listed(cautious)} of them. Of {len(runs)} runs, optimistic were {_listed(single)}{theirs}."
    )


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} ({'F1' if m == 'f1' else m})" for m, count in counts.items())


def _cautious(values: pd.DataFrame, m: str) -> int:
    """How many estimates are no better than the hold-out."""
    sign = -1 if m == "error" else 1
    return int((sign * values[f"{m}_rho1"] <= sign * values[f"{m}_holdout"]).sum())


def _factor(runs: pd.DataFrame, paper: pd.DataFrame) -> str:
    ours = [100 * float((runs.f1_holdout - runs[f"f1_rho{rho}"]).mean()) for rho in (1, 2)]
    theirs = [float((one.f1_holdout_mean - one.f1_estimate_mean).mean()) for one in
              (paper[(paper.rho == rho) & paper.category.isin(runs.category)] for rho in (1, 2))]  # fmt: skip
    beside = "" if pd.isna(theirs[0]) else f"; in the paper {theirs[0]:.1f} and {theirs[1]:.1f}"
    return (
        f"*With rho = 2 the bias is substantially larger.* {verdict(int(ours[1] >= 2 * ours[0]), 1)}: F1 is "
        f"{ours[0]:.1f} points below the hold-out with rho = 1 and {ours[1]:.1f} with rho = 2 (Reuters){beside}."
    )


def _spread(free: pd.DataFrame) -> str:
    """The deviation of the estimate beside that of the hold-out."""
    ratios = []
    for _, runs in free.groupby("data", sort=False):
        for m in MEASURES:
            over, below = runs.groupby("category")[[f"{m}_rho1", f"{m}_holdout"]].std().mean()
            ratios.append(over / below if below else float("nan"))
    found = pd.Series(ratios)
    alike = int(found.between(2 / 3, 3 / 2).sum())
    return (
        f"*The estimates vary as much as a hold-out on as many documents.* {verdict(alike, len(found))}: their "
        f"standard deviation is between 2/3 and 3/2 of the hold-out's for {alike} of {len(found)} pairs of a "
        f"collection and a measure, {found.median():.2f} times in the median."
    )


def _learning(over_n: pd.DataFrame) -> list[str]:
    """Figures 4 to 6: bias and deviation over the number of documents."""
    sizes = sorted(over_n.n.unique())
    bias = (over_n.f1_holdout - over_n.f1_rho1).groupby([over_n.category, over_n.n]).mean() * 100
    deviation = over_n.groupby(["category", "n"]).f1_rho1.std() * 100
    categories = list(over_n.category.unique())
    level = sum(max(bias[c, n] for n in sizes[2:]) <= 2 * min(bias[c, n] for n in sizes[2:]) for c in categories)
    lines = [
        "*The bias hardly depends on the size of the training set, but for very small ones* (Figures 4-6). "
        f"{verdict(level, len(categories))}: F1 is below the hold-out by so many points, from {sizes[0]} to "
        f"{sizes[-1]} documents: "
        + "; ".join(f"{c} " + ", ".join(f"{bias[c, n]:.1f}" for n in sizes) for c in categories)
        + f". From {sizes[2]} documents on it stays within a factor of 2 for {level} of {len(categories)}.",
    ]
    rises = [c for c in over_n.category.unique() if deviation[c, sizes[0]] < max(deviation[c, n] for n in sizes[1:])]
    return [
        *lines,
        "*The deviation grows as the training set shrinks, and falls again for very small ones.* "
        f"{verdict(len(rises), over_n.category.nunique())}: it falls again for {', '.join(rises) or 'none'} "
        f"(of {', '.join(over_n.category.unique())}).",
    ]


def _open_question(exact: pd.DataFrame, free: pd.DataFrame) -> str:
    """Leave-one-out by retraining the doubtful examples alone, which the paper leaves open."""
    whole = exact[exact.method == "leave-one-out"]
    share = 100 * float((whole.n_retrained / whole.n).mean())
    times = whole.n * whole.seconds_one_training / whole.seconds
    pairs = exact.pivot_table(index="category", columns="method", values="f1")
    estimate = next(name for name in pairs.columns if name != "leave-one-out")
    off = []
    for category, row in pairs.iterrows():
        held = free[(free.category == category) & (free.seed == 0) & (free.data == exact.data.iloc[0])].f1_holdout
        if len(held):
            off.append([abs(100 * (row[way] - float(held.iloc[0]))) for way in (estimate, "leave-one-out")])
    mean = pd.DataFrame(off).mean()
    beside = f" F1 is then {mean[1]:.1f} points from the hold-out, with xi-alpha {mean[0]:.1f}." if len(off) else ""
    return (
        "*Can the bias be removed at a modest expense, by leaving out the doubtful examples alone?* (left open) Yes: "
        f"{share:.1f} % of the examples are retrained, {times.min():.0f} to {times.max():.0f} times faster than n "
        f"trainings.{beside}"
    )
