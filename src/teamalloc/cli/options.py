"""Options that several commands share, and the store they open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from teamalloc.errors import BadInput, StoreError

if TYPE_CHECKING:
    from teamalloc.data.store import RunStore

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="TEAMALLOC_STORE",
        show_envvar=True,
        metavar="URL",
        help="Run store: a SQLite file or a database URL. Default: a file in your data folder.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices", metavar="FILE", help="Your own dated prices (TOML), see docs/ingest.md."
    ),
]


@contextmanager
def existing_store(url: str | None) -> Iterator[RunStore | None]:
    """The store, or None where there is none yet: a command that only reads creates nothing."""
    from teamalloc.data.store import RunStore

    if not RunStore.exists(url):
        yield None
        return
    with RunStore.open(url, create=False) as store:
        yield store


@contextmanager
def needed_store(url: str | None) -> Iterator[RunStore]:
    """The store.

    Raises:
        StoreError: there is none yet.
    """
    with existing_store(url) as store:
        if store is None:
            raise StoreError(
                "there is no run store yet.", remedy="Ingest logs first: allocate ingest PATH."
            )
        yield store


def parse_tag(text: str) -> tuple[str, str]:
    """``key=value``."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise BadInput(f"{text!r} is no tag.", remedy="Write it as key=value.")
    return key, value


def parse_day(text: str) -> date:
    """``2026-12-01``."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{text!r} is no date.", remedy="Write it as 2026-12-01.") from None


def today() -> date:
    """The user's own day: its prices are the forecast's."""
    return datetime.now().astimezone().date()


def parse_moment(text: str) -> datetime:
    """``2026-12-01T14:30``, with a zone or in local time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{text!r} is no time.", remedy="Write it as 2026-12-01T14:30.") from None
    return moment.astimezone()
