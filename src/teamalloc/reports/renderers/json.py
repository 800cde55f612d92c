"""The data of a report as JSON."""

from __future__ import annotations

import msgspec

from teamalloc.reports.report import Report


class Json:
    """For machines: stable key order, numbers in full."""

    name = "json"
    suffix = ".json"

    def render(self, report: Report) -> str:
        """The report's data, indented."""
        return msgspec.json.format(msgspec.json.encode(report.data), indent=2).decode() + "\n"
