"""JSON with a digest, so that changes are noticed, and without duplicate entries."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

SEAL = "sha256"
"""The entry with the digest of all others."""


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """The entries with their digest added."""
    return content | {SEAL: _digest(content)}


def unsealed(content: dict[str, Any]) -> dict[str, Any]:
    """The entries without the digest; ValueError if it does not match them."""
    rest = {key: value for key, value in content.items() if key != SEAL}
    if content.get(SEAL) != _digest(rest):
        raise ValueError(f"its checksum ({SEAL}) is not that of its content")
    return rest


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def parse_json(text: bytes | str) -> Any:
    """Parse JSON; ValueError or RecursionError for anything that two readers may understand differently."""
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_different)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not allowed")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not allowed")
    return value


def _different(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the entry {twice!r:.100} is there twice")
    return made
