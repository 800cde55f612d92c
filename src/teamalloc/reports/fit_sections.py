"""A fit as a report: what it learned from, and its checks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from teamalloc.models.check import Check
from teamalloc.models.forecast import Forecaster
from teamalloc.reports.report import Facts, Report, Section, Table, Text


def fit_report(forecaster: Forecaster, checks: Sequence[Check]) -> Report:
    """What `allocate fit` shows."""
    title = (
        f"{forecaster.n_usable} of {forecaster.n_runs} runs, {forecaster.n_tasks} tasks and "
        f"{len(forecaster.records)} teams in the fit."
    )
    rows = tuple(_row(check) for check in checks)
    head = ("target", "held out", "runs>", "error>", "constant>", "in 80 %>", "in 90 %>")
    blocks = (
        Table(head, rows),
        Text(
            "error: points for reward, log for cost and latency; constant: the mean of the others."
        ),
    )
    sections = [Section("Held out", blocks), Section("Curves", (_curves(forecaster),))]
    if forecaster.left_out:
        left = tuple((f"{n} runs", reason) for reason, n in forecaster.left_out)
        sections.append(Section("Left out", (Facts(left),)))
    return Report(title, tuple(sections), _data(forecaster, checks))


def _row(check: Check) -> tuple[str, ...]:
    return (
        check.target,
        f"{check.n_units} {check.held_out}",
        str(check.n_runs),
        _number(check.error),
        _number(check.error_of_constant),
        _share(check.coverage_80),
        _share(check.coverage_90),
    )


def _curves(forecaster: Forecaster) -> Table:
    head = ("target", "runs>", "assigned>", "task spread>", "prior width>", "upper tail>")
    rows = tuple(
        (
            target,
            str(curve.support.n_runs),
            str(curve.support.n_assigned),
            f"{curve.s_task:.2f}",
            f"{curve.tau:.2f}",
            f"{curve.upper:.2f}",
        )
        for target, curve in forecaster.curves.items()
    )
    return Table(head, rows)


def _data(forecaster: Forecaster, checks: Sequence[Check]) -> dict[str, object]:
    return {
        "n_runs": forecaster.n_runs,
        "n_usable": forecaster.n_usable,
        "n_tasks": forecaster.n_tasks,
        "n_teams": len(forecaster.records),
        "digest": forecaster.digest,
        "prices_on": forecaster.price_date.isoformat(),
        "left_out": [{"reason": reason, "n_runs": n} for reason, n in forecaster.left_out],
        "checks": [msgspec.to_builtins(check) for check in checks],
        "curves": {
            target: {
                "support": msgspec.to_builtins(curve.support),
                "theta": dict(zip(curve.names, (float(t) for t in curve.theta), strict=True)),
                "s_task": curve.s_task,
                "s_team": curve.s_team,
                "tau": curve.tau,
                "upper": curve.upper,
                "lower": curve.lower,
            }
            for target, curve in forecaster.curves.items()
        },
    }


def _number(value: float | None) -> str:
    return "too few" if value is None else f"{value:.3g}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f} %"
