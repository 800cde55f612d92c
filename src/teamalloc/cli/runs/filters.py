"""Which runs a command is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, time
from typing import Annotated

import typer

from teamalloc.cli.options import parse_day, parse_tag
from teamalloc.data.run import Run

Model = Annotated[str | None, typer.Option(metavar="NAME", help="An agent ran this model.")]
Role = Annotated[str | None, typer.Option(metavar="ROLE", help="An agent had this role.")]
Client = Annotated[str | None, typer.Option(metavar="NAME", help="Agent program.")]
Format = Annotated[str | None, typer.Option(metavar="NAME", help="Format it was read from.")]
Task = Annotated[str | None, typer.Option(metavar="NAME", help="Task id or its name.")]
Tag = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Has this tag.")]
Since = Annotated[str | None, typer.Option(metavar="DATE", help="Started on this day or later.")]
Until = Annotated[str | None, typer.Option(metavar="DATE", help="Started on this day or before.")]
NoReward = Annotated[bool, typer.Option("--no-reward", help="Not graded yet.")]


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that all must hold; None and empty = any."""

    model: str | None = None
    role: str | None = None
    client: str | None = None
    format: str | None = None
    task: str | None = None
    tags: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    no_reward: bool = False

    def apply(self, runs: Iterable[Run], labels: dict[str, str]) -> list[Run]:
        """The runs that keep all conditions, in order."""
        return [run for run in runs if all(test(run) for test in self._tests(labels))]

    def _tests(self, labels: dict[str, str]) -> list[Callable[[Run], bool]]:
        tests: list[Callable[[Run], bool]] = []
        if self.model is not None:
            tests.append(
                lambda run: (
                    any(self.model in a.served_models for a in run.agents) or self._leads(run)
                )
            )
        if self.role is not None:
            tests.append(lambda run: any(a.role == self.role for a in run.agents))
        if self.client is not None:
            tests.append(lambda run: run.client == self.client)
        if self.format is not None:
            tests.append(lambda run: run.source.format == self.format)
        if self.task is not None:
            tests.append(lambda run: self.task in (run.task_id, labels.get(run.task_id or "")))
        if self.tags:
            asked = {parse_tag(tag) for tag in self.tags}
            tests.append(lambda run: asked <= set(run.tags))
        if self.since is not None:
            first = datetime.combine(parse_day(self.since), time.min).astimezone()
            tests.append(lambda run: run.started_at is not None and run.started_at >= first)
        if self.until is not None:
            last = datetime.combine(parse_day(self.until), time.max).astimezone()
            tests.append(lambda run: run.started_at is not None and run.started_at <= last)
        if self.no_reward:
            tests.append(lambda run: run.reward is None)
        return tests

    def _leads(self, run: Run) -> bool:
        return run.team is not None and any(seat.model == self.model for seat in run.team.seats)
