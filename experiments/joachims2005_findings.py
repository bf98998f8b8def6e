"""What of the findings of Joachims (2005) and of its slides holds here: a section of the page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import geometric_mean, mean

from experiments.holdout import MEASURES
from experiments.stats import Comparison, verdict

ARXIV = "direct 56.8, 58.4, 73.3, 92.8 and cost model 49.6, 57.9, 74.4, 92.7 (9/5 *, 9/4, 1/13 **, 8/6)"
"""Table 1 on the arXiv abstracts: F1, PRBEP, Rec@2p and ROC area in percent; wins and losses of direct training."""

TEXT, FEW = "reuters", "covtype/first"
F1, AT_2P = (list(MEASURES).index(name) for name in ("f1", "recall_at_2p"))

Ours = Mapping[str, Sequence[Comparison]]
Printed = Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[str]]]


def findings(
    ours: Ours,
    printed: Printed,
    bins: Sequence[Sequence[float]],
    cuts: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    examples: Mapping[str, tuple[float, float]],
) -> str:
    """The section.

    ``ours`` and ``printed`` hold Table 1 by collection, ``bins`` Figure 1 by measure, ``cuts`` the iterations of
    cutting planes and those of the slides, ``examples`` support vectors for F1 and of the soft-margin SVM.
    """
    shared = {data: ours[data] for data in printed if data in ours}
    if not shared:
        return ""
    lines = []
    for finding, hits, of, said in (*_table(shared, printed), *_figure(shared, bins), *_slides(cuts, examples)):
        line = f"* *{finding}* {verdict(hits, of)}: {said}."
        lines.append(textwrap.fill(line, 120, subsequent_indent="  ", break_on_hyphens=False) + "\n")
    head = "## What agrees with the paper and what does not\n\nThe paper's findings are in italics.\n\n"
    return head + "".join(lines)


Finding = tuple[str, int, int, str]
"""What the paper finds, in how many cases it holds here, of how many, and the numbers."""


def _table(ours: Ours, printed: Printed) -> Iterator[Finding]:
    """Table 1."""
    own = [one for data in ours for one in ours[data]]
    theirs = [(a - b, stars) for data in ours for a, b, stars in zip(*printed[data], strict=True)]
    up, down = ([one for one in own if sign * one.difference > 0] for sign in (1, -1))
    up_printed, down_printed = ([stars for d, stars in theirs if sign * d > 0] for sign in (1, -1))
    yield (
        "Direct training is mostly ahead of the cost model (Table 1).",
        len(up),
        len(up_printed),
        f"its average is higher for {len(up)} of {len(own)} pairs of a collection and a measure, with a level of 0.9 "
        f"or more for {_significant(up)}, and lower for {len(down)}, {_significant(down)} of them at that level; in "
        f"the paper {len(up_printed)}, {_starred(up_printed)}, {len(down_printed)} and {_starred(down_printed)}, "
        f"without the arXiv abstracts. For those, which are not available, it has {ARXIV}",
    )
    if TEXT in ours:
        gains = [one.difference for one in ours[TEXT]]
        elsewhere = max(one.difference for data in ours if data != TEXT for one in ours[data]) if len(ours) > 1 else 0
        yield (
            "It gains most on text, and there in F1.",
            int(gains[F1] == max(*gains, elsewhere)),
            1,
            f"on Reuters {_said(gains)} points, elsewhere at most {elsewhere:+.1f}",
        )
    at_2p = [ours[data][AT_2P].difference for data in ours]
    yield (
        "In Rec@2p the cost model is ahead on average.",
        int(mean(at_2p) < 0),
        1,
        f"direct training less the cost model is {mean(at_2p):+.1f} points over the collections "
        f"({', '.join(f'{d:+.1f}' for d in at_2p)})",
    )
    if FEW in ours:
        starred = [name for name, one in zip(MEASURES.values(), ours[FEW], strict=True) if one.stars]
        yield (
            "On Covertype the two do not differ significantly.",
            len(MEASURES) - len(starred),
            len(MEASURES),
            f"they do in {' and '.join(starred) or 'no measure'}",
        )


def _figure(ours: Ours, bins: Sequence[Sequence[float]]) -> Iterator[Finding]:
    """Figure 1."""
    if TEXT in ours:
        rarer = [means[-1] - means[0] for means in bins]
        yield (
            "Rarer categories gain more, above all in F1 (Figure 1).",
            sum(d > 0 for d in rarer) if max(rarer) == rarer[F1] else 0,
            len(rarer),
            f"the rarest fifth gains more than the most frequent by {_said(rarer)} points",
        )


def _slides(
    cuts: Mapping[str, tuple[Sequence[float], Sequence[float]]], examples: Mapping[str, tuple[float, float]]
) -> Iterator[Finding]:
    """Iterations and support vectors."""
    if cuts:
        ratios = [a / b for one, other in cuts.values() for a, b in zip(one, other, strict=True)]
        yield (
            "Cutting planes take some tens of iterations (the slides).",
            sum(0.5 <= ratio <= 2 for ratio in ratios),
            len(ratios),
            f"{geometric_mean(ratios):.2f} times those of the slides (geometric mean over collections and measures, "
            f"from {min(ratios):.2f} to {max(ratios):.2f}), at other C",
        )
    if examples:
        times = [vectors / support for support, vectors in examples.values()]
        yield (
            "The solution has very few support vectors (the slides).",
            sum(ratio > 1 for ratio in times),
            len(times),
            f"for F1 {min(times):.0f} to {max(times):.0f} times fewer labellings than the soft-margin SVM has examples "
            "with a multiplier",
        )


def _significant(some: Iterable[Comparison]) -> int:
    return sum(bool(one.stars) for one in some)


def _starred(some: Iterable[str]) -> int:
    return sum("*" in one for one in some)


def _said(points: Sequence[float]) -> str:
    return ", ".join(f"{name} {value:+.1f}" for name, value in zip(MEASURES.values(), points, strict=True))
