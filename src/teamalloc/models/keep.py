"""Fitted curves in the run store: fitted once, found again by what they were fitted from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import date

from teamalloc.data.evidence import load_evidence
from teamalloc.data.prices import PriceBook
from teamalloc.data.run import Run
from teamalloc.data.store import RunStore
from teamalloc.errors import StoreError
from teamalloc.models.fit import fit_forecaster
from teamalloc.models.forecast import Forecaster
from teamalloc.models.saved import VERSION, decode_forecaster, encode_forecaster

Tag = tuple[str, str]


def fitted(
    store: RunStore | None,
    *,
    prices: PriceBook,
    on: date,
    like: Sequence[Tag] = (),
    more_models: Sequence[str] = (),
    seed: int = 0,
    keep: bool = True,
) -> Forecaster:
    """The curves for the runs in a store, from the store if it has them.

    Args:
        store: None = there is none yet: published figures only.
        prices: today's and yesterday's.
        on: day whose prices the forecast uses.
        like: only runs with all these tags.
        more_models: ``model@effort`` words to know besides those in the runs.
        seed: of the fit.
        keep: store what was fitted or repriced.
    """
    key = fit_key(store, prices=prices, like=like, more_models=more_models, seed=seed)
    body = None if store is None else store.fit(key)
    if body is not None:
        found = decode_forecaster(body)
        if found.price_date == on:
            return found
        found = found.repriced(prices, on)
    else:
        runs = [] if store is None else [run for run in store.runs() if has_tags(run, like)]
        found = fit_forecaster(
            runs, prices=prices, on=on, more_models=more_models, seed=seed, digest=key
        )
    if store is not None and keep:
        keep_body(store, key, encode_forecaster(found))
    return found


def keep_body(store: RunStore, key: str, body: bytes) -> None:
    """Keep what was computed; a store that cannot be written now still gives its answers."""
    with suppress(StoreError):
        store.put_fit(key, body)


def fit_key(
    store: RunStore | None,
    *,
    prices: PriceBook,
    like: Sequence[Tag] = (),
    more_models: Sequence[str] = (),
    seed: int = 0,
) -> str:
    """SHA-256 (hex) of everything a fit depends on but the day of the prices."""
    parts = [
        f"curves {VERSION}",
        "no store" if store is None else store.digest(),
        load_evidence().digest,
        prices.digest,
        repr(sorted(like)),
        repr(sorted(more_models)),
        str(seed),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def has_tags(run: Run, tags: Sequence[Tag]) -> bool:
    """Whether a run carries all these tags."""
    return set(tags) <= set(run.tags)
