"""``allocate fit``: fit the curves and show how good they are."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from teamalloc.cli.options import AsJson, Prices, Store, needed_store, parse_tag, today

HELP = """Fit the curves and show how far to trust them.

For each target: the error on held-out tasks and on held-out teams beside that of a constant, and
how often the 80 and 90 % intervals held. Fitting is done by `allocate` as well when it is needed.

\b
Examples:
  allocate fit
  allocate fit --like repo=parser --json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fit", help=HELP)(fit)


def fit(
    like: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Learn only from runs with this tag."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the folds.")] = 0,
    prices: Prices = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Fit, check and show."""
    from teamalloc.data.prices import PriceBook
    from teamalloc.models.check import check_fit
    from teamalloc.models.keep import fitted, has_tags
    from teamalloc.reports.fit_sections import fit_report
    from teamalloc.reports.renderers import renderers

    tags = [parse_tag(tag) for tag in like or []]
    book = PriceBook.load(prices)
    on = today()
    with needed_store(store) as opened:
        forecaster = fitted(opened, prices=book, on=on, like=tags, seed=seed)
        runs = [run for run in opened.runs() if has_tags(run, tags)]
    checks = check_fit(runs, prices=book, on=on, seed=seed)
    report = fit_report(forecaster, checks)
    sys.stdout.write(renderers()["json" if as_json else "terminal"].render(report))
