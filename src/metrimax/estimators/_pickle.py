"""The state of estimators in plain types, so that skops, which asks whether to trust each type, has little to ask."""

from __future__ import annotations

from typing import Any, cast

from metrimax.protocols import Record, Status


class PlainState:
    """Mixin: ``status_`` is stored by name and ``history_`` as tuples; loading restores their types."""

    def __getstate__(self) -> dict[str, Any]:
        state = dict(cast(dict[str, Any], super().__getstate__()))
        if "status_" in state:
            state["status_"] = _map(state["status_"], Status, lambda status: status.name)
        if "history_" in state:
            state["history_"] = _map(state["history_"], Record, tuple)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "status_" in state:
            state["status_"] = _map(state["status_"], str, lambda name: Status[name])
        if "history_" in state:
            state["history_"] = _map(state["history_"], tuple, lambda values: Record(*values))
        if (
            "threshold_" in state and "trained_intercept_" not in state
        ):  # an older version: its intercept_ is the trained one
            state["trained_intercept_"] = state["intercept_"]
            state["intercept_"] = state["intercept_"] - state["threshold_"]
        super().__setstate__(state)  # type: ignore[misc]


def _map(value: Any, kind: type, change: Any) -> Any:
    """Change every entry of a kind, in lists of lists."""
    if isinstance(value, kind):
        return change(value)
    return [_map(entry, kind, change) for entry in value] if isinstance(value, list) else value
