"""The svmlight format once more, in plain Python: slow, and independent of the compiled reader."""

from __future__ import annotations

import math
import re

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
HIGHEST = 2**31 - 2


class Bad(ValueError):
    """No svmlight text; the line, from 1."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}")
        self.line = line


def _number(token: bytes) -> float:
    if not NUMBER.fullmatch(token):
        raise ValueError
    value = float(token)
    if not math.isfinite(value):
        raise ValueError
    return value


def _whole(token: bytes, most: int) -> int:
    if not re.fullmatch(rb"-?\d+", token, re.ASCII) or len(token) > 4000:
        raise ValueError
    value = int(token)
    if abs(value) > most:
        raise ValueError
    return value


def _example(text: bytes) -> tuple[list[float], int | None, list[tuple[int, float]]]:
    tokens = re.split(rb"[ \t]+", text.strip(b" \t"))
    labels = [] if b":" in tokens[0] else [_number(part) for part in tokens.pop(0).split(b",")]
    qid = None
    while tokens and tokens[0].startswith(b"qid:"):
        if qid is not None:
            raise ValueError
        qid = _whole(tokens.pop(0)[4:], 2**63 - 1)
    features: list[tuple[int, float]] = []
    for token in tokens:
        index, colon, value = token.partition(b":")
        if not colon or not index.isdigit():
            raise ValueError
        number = _whole(index, HIGHEST)
        if features and number <= features[-1][0]:
            raise ValueError
        features.append((number, _number(value)))
    return labels, qid, features


def read(data: bytes) -> list[tuple[list[float], int | None, list[tuple[int, float]]]]:
    """The examples; `Bad` with the line of the first error."""
    examples, lines = [], []
    for number, line in enumerate(data.split(b"\n"), start=1):
        text = line.removesuffix(b"\r").partition(b"#")[0]
        if not text.strip(b" \t"):
            continue
        try:
            examples.append(_example(text))
        except ValueError:
            raise Bad(number) from None
        lines.append(number)
    several = any(len(labels) > 1 for labels, _, _ in examples)
    without = [line for line, (labels, _, _) in zip(lines, examples, strict=True) if not labels]
    if without and len(without) < len(examples) and not several:
        raise Bad(without[0])
    no_qid = [line for line, (_, qid, _) in zip(lines, examples, strict=True) if qid is None]
    if no_qid and len(no_qid) < len(examples):
        raise Bad(no_qid[0])
    return examples
