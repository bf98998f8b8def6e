"""``--report``: a page (HTML) about a model on data. It needs no network."""

from __future__ import annotations

import argparse
import html
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from metrimax.cli.main import UsageError
from metrimax.cli.report import check_apart, note
from metrimax.io.data import Data
from metrimax.io.files import check_writable, is_standard_output, write_bytes
from metrimax.io.models import LinearModel

if TYPE_CHECKING:
    from metrimax.cli.evaluating import Judged

MOST_LABELS = 200
"""The most labels in the table of labels."""

_STYLE = """
:root { color-scheme: light; --ink: #1d2733; --soft: #5d6b7a; --line: #e3e8ee; --blue: #1f5fa8; }
* { box-sizing: border-box; }
body { margin: 0; background: #f5f7f9; color: var(--ink); font: 16px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 20px 48px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 0 0 12px; }
p { margin: 0 0 10px; } .soft { color: var(--soft); font-size: 14px; }
section { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: 20px; margin-top: 18px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 14px; margin-top: 20px; }
.tile { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; }
.tile b { display: block; font-size: 27px; line-height: 1.2; } .tile.own { border-top: 4px solid var(--blue); }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 18px; } .pair section { min-width: 0; }
img { display: block; width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; } .scroll { overflow-x: auto; }
th, td { text-align: left; padding: 6px 10px; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
.cells td { text-align: center; border: 3px solid #fff; padding: 14px 8px; }
.cells td b { font-size: 22px; display: block; } .cells th { border: 0; font-weight: 400; color: var(--soft); }
.right { background: #dcebfa; } .wrong { background: #fbe6e4; } .below { margin-top: 12px; }
.bar { position: relative; height: 10px; background: #eef2f6; border-radius: 5px; min-width: 120px; }
.bar i, .bar s { position: absolute; top: 0; bottom: 0; border-radius: 5px; }
.bar i { background: #a9c8ea; } .bar s { width: 4px; background: var(--blue); }
@media (max-width: 700px) { .pair { grid-template-columns: 1fr; gap: 0; } main { padding: 20px 12px; }
  h1 { font-size: 21px; } section { padding: 14px; } td, th { padding: 6px 4px; } .wide { display: none; }
  table { font-size: 14px; } td .soft { display: block; font-size: 12px; } }
"""


def check_report(arguments: argparse.Namespace, **inputs: str) -> None:
    """Raise if the page cannot be drawn or written. Called before the work begins."""
    if arguments.report is None:
        return
    if find_spec("matplotlib") is None:
        raise UsageError("--report draws with matplotlib, which is not installed: pip install 'metrimax[plot]'")
    if is_standard_output(arguments.report):
        raise UsageError(f"--report {arguments.report}: expected a file, got standard output, where the results go")
    check_apart("the report", arguments.report, **inputs)
    check_writable(arguments.report)


def write_report(
    arguments: argparse.Namespace, data: Data, model: LinearModel, judged: Judged, *, title: str, remark: str = ""
) -> None:
    """Write the page."""
    write_bytes(arguments.report, page(data, model, judged, title=title, remark=remark).encode())
    note(arguments, f"report written to {arguments.report}")


def page(data: Data, model: LinearModel, judged: Judged, *, title: str, remark: str = "") -> str:
    """The page as text."""
    from metrimax import __version__
    from metrimax.cli import pictures  # matplotlib is slow to import, and may be missing

    one = len(judged.tables) == 1
    about = f"Trained for <b>{_text(model.measure or 'an unknown measure')}</b>. {data.n:,} examples"
    if one:
        about += f", {int(judged.truth.sum()):,} of them positive ({_text(judged.names[0])})"
    elif model.kind == "ranking":
        about += f" in {judged.counts['groups']:,} groups. Measures are means over groups"
    elif len(judged.tables):
        tp, fp, fn, tn = judged.tables.T
        varied = int(((tp + fn > 0) & (fp + tn > 0)).sum())
        of = "" if varied == len(judged.tables) else f"{varied} of "
        about += f". Measures are means over {of}{len(judged.tables)} labels"
        about += ": the others have no positives or no negatives here" if of else ""
    parts = [f"<h1>{_text(title)}</h1><p class='soft'>{about}. {_text(remark)}</p>", _tiles(model, judged)]
    if one:
        drawn = _section("Threshold", pictures.threshold(model, judged))
        parts.append(_pair(_cells(judged), drawn))
        drawn = _section("Precision and recall", pictures.precision_recall(judged))
        parts.append(_pair(drawn, _section("ROC", pictures.roc(judged))))
    elif len(judged.tables):
        parts.append(_labels(judged))
    parts.append(_measures(judged, "groups" if model.kind == "ranking" else "rows"))
    if model.n_features:
        drawn = _section("Largest coefficients", pictures.coefficients(model)) if model.coef.size else ""
        parts.append(_pair(drawn, _certificate(model)))
    parts.append(f"<p class='soft below'>Written by metrimax {_text(__version__)}.</p>")
    size = "<meta name='viewport' content='width=device-width, initial-scale=1'>"
    head = f"<meta charset='utf-8'>{size}<title>{_text(title)}</title><style>{_STYLE}</style>"
    body = "\n".join(parts)
    return f"<!doctype html>\n<html lang='en'><head>{head}</head>\n<body><main>\n{body}\n</main></body></html>\n"


def _pair(left: str, right: str) -> str:
    """Two sections side by side, one below the other on a phone."""
    return f"<div class='pair'>{left}{right}</div>" if left and right else left + right


def _number(value: object, style: str = "number") -> str:
    return f"<td class='{style}'>{_text(value)}</td>"


def _text(value: object) -> str:
    return html.escape(str(value))


def _section(heading: str, content: str) -> str:
    return f"<section><h2>{_text(heading)}</h2>{content}</section>" if content else ""


def _interval(judged: Judged, name: str) -> str:
    low, high = judged.intervals.get(name, (np.nan, np.nan))
    return f"{low:.3f} to {high:.3f}" if np.isfinite(low) else ""


def own_name(model: LinearModel, judged: Judged) -> str:
    """The reported name of the measure that the model was trained for."""
    first = [name for name in judged.values if name not in ("precision", "recall")]
    return first[0] if model.measure else "f1"


def _tiles(model: LinearModel, judged: Judged) -> str:
    own = own_name(model, judged)
    ranking = ("ndcg@10", "average_precision", "precision@1")
    names = dict.fromkeys([own, *(ranking if model.kind == "ranking" else ("precision", "recall", "f1", "roc_area"))])
    tiles = [
        f"<div class='tile{' own' if name == own else ''}'><span class='soft'>{_text(name)}</span>"
        f"<b>{judged.values[name]:.3f}</b><span class='soft'>{_interval(judged, name)}</span></div>"
        for name in names
        if name in judged.values
    ]
    return f"<div class='tiles'>{''.join(tiles[:5])}</div>"


def _cells(judged: Judged) -> str:
    tp, fp, fn, tn = (int(v) for v in judged.tables[0])
    name = _text(judged.names[0])
    rows = (
        f"<tr><td></td><th>called {name}</th><th>called other</th></tr>"
        f"<tr><th>is {name}</th><td class='right'><b>{tp:,}</b>found (tp)</td>"
        f"<td class='wrong'><b>{fn:,}</b>missed (fn)</td></tr>"
        f"<tr><th>is other</th><td class='wrong'><b>{fp:,}</b>false alarm (fp)</td>"
        f"<td class='right'><b>{tn:,}</b>left alone (tn)</td></tr>"
    )
    said = f"Of {tp + fp:,} called {name}, {tp:,} are. Of {tp + fn:,} that are {name}, {tp:,} were found."
    table = f"<div class='scroll'><table class='cells'>{rows}</table></div>"
    return _section("Contingency table", f"{table}<p class='soft below'>{said}</p>")


def _labels(judged: Judged) -> str:
    order = np.argsort(-(judged.tables[:, 0] + judged.tables[:, 2]), kind="stable")
    names = {"positives": "number", "tp": "number wide", "fp": "number wide", "fn": "number wide"}  # not on a phone
    names |= dict.fromkeys(("precision", "recall", "F1"), "number")
    rows = []
    for k in order[:MOST_LABELS]:
        tp, fp, fn, _ = (int(v) for v in judged.tables[k])
        shares = (tp, tp + fp), (tp, tp + fn), (2 * tp, 2 * tp + fp + fn)
        numbers = [f"{v:,}" for v in (tp + fn, tp, fp, fn)] + [f"{a / b:.3f}" if b else "-" for a, b in shares]
        cells = "".join(map(_number, numbers, names.values()))
        rows.append(f"<tr><td>{_text(judged.names[k])}</td>{cells}</tr>")
    heads = "".join(f"<th class='{style}'>{name}</th>" for name, style in names.items())
    table = f"<div class='scroll'><table><tr><th>label</th>{heads}</tr>{''.join(rows)}</table></div>"
    more = f"<p class='soft'>The {MOST_LABELS} most frequent of {len(order)}.</p>" if len(order) > MOST_LABELS else ""
    return _section("Label by label", table + more)


def _measures(judged: Judged, resampled: str) -> str:
    from metrimax.cli.evaluating import LEVEL, is_loss

    rows = []
    for name, value in judged.values.items():
        low, high, at = (100 * float(np.clip(v, 0, 1)) for v in (*judged.intervals.get(name, (value, value)), value))
        band = f"<i style='left:{low:.1f}%;width:{max(high - low, 0.5):.1f}%'></i>"
        bar = f"<div class='bar'>{band}<s style='left:calc({at:.1f}% - 2px)'></s></div>"
        mark = " <span class='soft'>(a loss: lower is better)</span>" if is_loss(name) else ""
        numbers = _number(f"{value:.4f}") + _number(_interval(judged, name))
        rows.append(f"<tr><td>{_text(name)}{mark}</td>{numbers}<td class='wide'>{bar}</td></tr>")
    head = "<th>measure</th><th class='number'>value</th>"
    head += f"<th class='number'>{LEVEL:.0%} interval</th><th class='wide'>from 0 to 1</th>"
    said = (
        f"Intervals come from resampling the {resampled} of this data: they show how the numbers vary with the sample, "
        "for this model."
    )
    table = f"<div class='scroll'><table><tr>{head}</tr>{''.join(rows)}</table></div>"
    return _section("Measures", f"{table}<p class='soft below'>{said}</p>")


def _certificate(model: LinearModel) -> str:
    labels = [own for own in model.training.get("labels", []) if isinstance(own, dict)]
    gaps = [own["gap"] for own in labels if isinstance(own.get("gap"), (int, float))]
    if not gaps or len(gaps) != len(labels):
        return _section("Certificate of the training", "<p>The model file has none.</p>")
    worst = labels[int(np.argmax(gaps))]
    names = {"objective": "objective", "bound": "proven lower bound", "gap": "duality gap", "iterations": "iterations"}
    names |= {"status": "status", "C": "C"}
    known = {title: (model.training | worst).get(name) for name, title in names.items()}
    shown = {title: f"{value:.6g}" if isinstance(value, float) else value for title, value in known.items()}
    lines = [f"<tr><td>{title}</td>{_number(value)}</tr>" for title, value in shown.items() if value is not None]
    which = "" if len(labels) == 1 else f" The label with the largest gap, of {len(labels)}, is shown."
    said = (
        "No linear rule has an objective below the bound. In units of the measure, no other has a regularised risk "
        f"lower by more than {max(gaps):.1e}.{which} The certificate says nothing about other data."
    )
    return _section("Certificate of the training", f"<p>{said}</p><table>{''.join(lines)}</table>")
