"""The report as JSON. Fields only grow; times are seconds since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from takeback.show.report_values import FileTold, Report
from takeback.surfaces.wording.json_shapes import file_diff


def shape(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = _shape(report)
    return {"report": 1, **found}


def _shape(found: Any) -> Any:
    """Named values by their names, others in order."""
    if isinstance(found, FileTold):
        return {**file_diff(found.diff), "masked": found.masked, "more_lines": found.more_lines}
    if hasattr(found, "_fields"):
        return {name: _shape(value) for name, value in found._asdict().items()}
    if isinstance(found, Mapping):
        return {name: _shape(value) for name, value in found.items()}
    if isinstance(found, (tuple, list)):
        return [_shape(each) for each in found]
    return found
