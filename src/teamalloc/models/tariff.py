"""What an average token of a model costs, as the model is used here.

Caching makes a token of the same model ten times cheaper or dearer, so the price of a token
depends on the mix: which part is fresh input, read from a cache, written to one, output, and in
which context tier. The mix is taken from the user's runs, and where a model has few, from all
models together; a mix outlives prices, so that another day's prices need no new fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType

import numpy as np

from teamalloc.data.evidence import Evidence
from teamalloc.data.prices import PriceBook
from teamalloc.data.run import Run, Tokens
from teamalloc.data.team import parse_who
from teamalloc.models.encode import Floats

POOLED_RUNS = 2.0
"runs' worth of the mix of all models that a model's own mix is shrunk to"


@dataclass(frozen=True, slots=True)
class MixPart:
    """Tokens that are priced alike."""

    tokens: Tokens
    band: int = 0
    speed: str | None = None
    service_tier: str | None = None


Mix = tuple[MixPart, ...]


@dataclass(frozen=True, slots=True)
class Tariff:
    """Mixes by model, and of all models together."""

    by_model: Mapping[str, Mix]
    "model (without effort) -> its mix"
    n_agents: Mapping[str, int]
    "agents behind each mix"
    pooled: Mix
    "of all models, in the base tier"
    implied_usd: Mapping[str, float] = field(default_factory=dict)
    "model -> US dollars for an average token, as total costs imply; goes before any list price"

    def usd_per_token(self, who: Sequence[str], prices: PriceBook, *, on: date) -> Floats:
        """(k,) US dollars for an average token, implied or by the price of that day; nan = neither."""
        return np.array([self._one(parse_who(word)[0], prices, on) for word in who])

    def _one(self, model: str, prices: PriceBook, on: date) -> float:
        if model in self.implied_usd:
            return self.implied_usd[model]
        pooled = _price(model, self.pooled, prices, on)
        own = _price(model, self.by_model.get(model, ()), prices, on)
        if pooled is None:
            return float("nan")
        if own is None:
            return pooled
        weight = self.n_agents[model] / (self.n_agents[model] + POOLED_RUNS)
        return weight * own + (1.0 - weight) * pooled


def learn_tariff(
    runs: Iterable[Run],
    evidence: Evidence,
    *,
    implied_usd: Mapping[str, float] = MappingProxyType({}),
) -> Tariff:
    """Mixes of these runs; the published rows stand in where no run logs its tokens.

    Args:
        implied_usd: for models without a (true) list price, US dollars for an average token as
            the total costs of runs imply.
    """
    parts: dict[str, Counter[tuple[int, str | None, str | None]]] = {}
    tokens: dict[tuple[str, int, str | None, str | None], Tokens] = {}
    n_agents: Counter[str] = Counter()
    for run in runs:
        for agent in run.agents:
            n_agents.update({piece.model for piece in agent.usage if piece.model and piece.tokens})
            for piece in agent.usage:
                if piece.model is None or piece.tokens is None:
                    continue
                key = (piece.model, piece.context_band, piece.speed, piece.service_tier)
                parts.setdefault(piece.model, Counter())[key[1:]] += 1
                tokens[key] = tokens.get(key, Tokens()) + piece.tokens
    by_model = {
        model: tuple(MixPart(tokens[model, *key], *key) for key in sorted(keys, key=repr))
        for model, keys in sorted(parts.items())
    }
    total = sum((part.tokens for mix in by_model.values() for part in mix), Tokens())
    if total.total == 0:
        total = sum((row.tokens for row in evidence.solo.values()), Tokens())
    agents = dict(sorted(n_agents.items()))
    return Tariff(by_model, agents, (MixPart(total),), dict(sorted(implied_usd.items())))


def _price(model: str, mix: Mix, prices: PriceBook, on: date) -> float | None:
    """US dollars for an average token of this mix; None = no price, or no tokens."""
    cost, n = 0.0, 0
    for part in mix:
        rates = prices.rates(
            model, on=on, band=part.band, speed=part.speed, service_tier=part.service_tier
        )
        if rates is None:
            return None
        cost += float(rates.cost_usd(part.tokens))
        n += part.tokens.total
    return cost / n if n else None
