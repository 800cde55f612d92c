"""The price list that is installed with teamalloc: genai-prices, read offline.

It is asked for *rates*, never for costs, so that one law (``Rates.cost_usd``) bills every request:
its own calculation wants cached tokens counted twice, bills an unknown service tier as the
standard one, and refuses a name with a provider in front of it.
"""

from __future__ import annotations

import importlib.metadata
from datetime import UTC
from decimal import Decimal
from typing import Any

from teamalloc.data.model_names import normalise_model
from teamalloc.data.rates import Enquiry, Ladder, fill_rates

_DISTRIBUTION = "genai-prices"
_RATE_OF_KEY = {
    "fresh_input": "input_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write_5m": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "output": "output_mtok",
}


class PricePackage:
    """The installed list. The package is imported when the first price is asked for."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Any, bool]] = {}

    @property
    def version(self) -> str:
        """Version of the installed list."""
        return importlib.metadata.version(_DISTRIBUTION)

    def ladder(self, enquiry: Enquiry) -> Ladder | None:
        """Rates by context tier, None where the list has no price for exactly this."""
        if enquiry.at is None:
            return None
        model, own_variants = self._find(enquiry.model)
        if model is None:
            return None
        name = normalise_model(enquiry.model)
        speed = enquiry.speed
        if name.startswith("claude") and name.endswith("-fast"):
            speed = "fast"
        at = enquiry.at.astimezone(UTC)
        context: dict[str, str] = {}
        if speed is not None:
            context["speed"] = speed
        if enquiry.service_tier is not None:
            batch = enquiry.service_tier == "batch"
            context["processing" if batch else "service_tier"] = enquiry.service_tier
        if context:
            # Two of them at once are priced nowhere, and an unlisted one must not pass as standard.
            listed = own_variants and any(
                variant.when == context
                and (variant.constraint is None or variant.constraint.active(at))
                for variant in model.price_variants or ()
            )
            if not listed:
                return None
        return _ladder(name, model.get_prices(at, context or None).__dict__)

    def _find(self, raw: str) -> tuple[Any, bool]:
        """The package's record of a model, and whether its variants are its own provider's."""
        if raw not in self._found:
            self._found[raw] = _look_up(raw)
        return self._found[raw]


def _look_up(raw: str) -> tuple[Any, bool]:
    from genai_prices import data_snapshot

    snapshot = data_snapshot.get_snapshot()
    name = raw.strip().lower()
    prefix, slash, rest = name.partition("/")
    normal = normalise_model(raw)
    if ":" in normal:
        return None, False  # ":free" and the like: matching the bare name would bill list price
    asked: list[tuple[str, str | None]] = []
    if "anthropic." in name:
        asked.append((name.rsplit("/", 1)[-1], "aws"))  # a regional profile costs 10 % more
    elif slash and prefix not in ("openai", "anthropic", "models"):
        asked.append((rest, prefix))
    asked += [(name.rsplit("/", 1)[-1], None), (normal, None)]
    for ref, provider_id in asked:
        try:
            provider, model = snapshot.find_provider_model(ref, None, provider_id, None)
        except LookupError:
            continue
        return model, any(model is own for own in provider.models)
    return None, False


def _ladder(name: str, prices: dict[str, Any]) -> Ladder | None:
    listed = {kind: prices.get(key) for kind, key in _RATE_OF_KEY.items()}
    if listed["fresh_input"] is None or listed["output"] is None:
        return None
    starts = {0} | {tier.start for price in listed.values() for tier in getattr(price, "tiers", ())}
    return {start: fill_rates(name, **_at_step(listed, start)) for start in sorted(starts)}


def _at_step(listed: dict[str, Any], start: int) -> dict[str, Any]:
    """Each kind's rate for prompts just above ``start`` tokens."""
    rates: dict[str, Decimal | None] = {}
    for kind, price in listed.items():
        if price is not None and not isinstance(price, Decimal):
            reached = [tier.price for tier in price.tiers if tier.start <= start and start > 0]
            price = reached[-1] if reached else price.base
        rates[kind] = price
    return rates
