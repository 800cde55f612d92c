"""What is known of each model before a fit: its strength, its published solo row, its price.

A tier is a model's rank by strength among those at hand. Strength is the published solo reward at
high effort where there is one; else it is guessed from the price of output, which follows the
published rewards of the priced models within about five points (0.43 + 0.07 ln $/M); else from the
price that the total costs of runs imply.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from teamalloc.data.evidence import Evidence, SoloRow
from teamalloc.data.team import parse_who
from teamalloc.models.encode import Floats
from teamalloc.models.families import Models

AT_ONE_USD, PER_LOG_USD, STRONG = 0.43, 0.07, 0.65
STRENGTH_EFFORTS = ("high", "xhigh", "medium", "max", "low")


def describe_models(
    who: Sequence[str],
    *,
    evidence: Evidence,
    output_usd_per_mtok: Mapping[str, float | None],
    implied_usd: Mapping[str, float] = MappingProxyType({}),
) -> Models:
    """Models with their tier and published rows.

    Args:
        who: ``model@effort`` words.
        evidence: published figures.
        output_usd_per_mtok: price of output for each model (without effort); None = unknown.
        implied_usd: for models without a price, US dollars for a token as total costs imply.
    """
    words = tuple(sorted(set(who)))
    models = sorted({parse_who(word)[0] for word in words})
    strength = {m: model_strength(m, evidence, output_usd_per_mtok.get(m)) for m in models}
    strength |= _from_costs([m for m in models if strength[m] is None], implied_usd)
    tier = _spread_by_rank(strength)
    implied = np.array([parse_who(word)[0] in implied_usd for word in words], dtype=bool)

    def usd(word: str) -> float | None:
        return output_usd_per_mtok.get(parse_who(word)[0])

    return Models(
        who=words,
        tier=np.array([tier[parse_who(word)[0]] for word in words]),
        solo_reward=_solo_reward(words, evidence),
        effort_reward=_effort_reward(words, evidence),
        solo_tokens=_solo(words, evidence, "tokens"),
        solo_s=_solo(words, evidence, "active_s"),
        implied=implied,
        priced=~implied & (np.array([usd(word) is not None for word in words], dtype=bool)),
    )


def model_strength(
    model: str, evidence: Evidence, output_usd_per_mtok: float | None
) -> float | None:
    """Published solo reward in [0, 1], or a guess from the price; None = nothing is known."""
    for effort in STRENGTH_EFFORTS:
        row = evidence.solo.get(f"{model}@{effort}")
        if row is not None:
            return row.reward
    if output_usd_per_mtok is None or output_usd_per_mtok <= 0:
        return None
    return AT_ONE_USD + PER_LOG_USD * math.log(output_usd_per_mtok)


def _from_costs(models: Sequence[str], implied_usd: Mapping[str, float]) -> dict[str, float | None]:
    """Strengths of models without a price; the dearest is taken for a strong one."""
    most = max(implied_usd.values(), default=0.0)
    return {
        model: STRONG + PER_LOG_USD * math.log(implied_usd[model] / most)
        if model in implied_usd
        else None
        for model in models
    }


def _spread_by_rank(strength: Mapping[str, float | None]) -> dict[str, float]:
    """Ranks spread over [-1, 1]; a model of unknown strength stands in the middle."""
    known = sorted((s, m) for m, s in strength.items() if s is not None)
    tier = dict.fromkeys(strength, 0.0)
    for rank, (_, model) in enumerate(known):
        tier[model] = 1.0 if len(known) == 1 else 2.0 * rank / (len(known) - 1) - 1.0
    return tier


def _solo(words: Sequence[str], evidence: Evidence, what: str) -> Floats:
    """(k,) log of the published tokens or seconds of one run."""
    values = []
    for word in words:
        row = evidence.solo_at(word)
        value = None if row is None else row.tokens.total if what == "tokens" else row.active_s
        values.append(math.nan if value is None else math.log(value))
    return np.array(values)


def _solo_reward(words: Sequence[str], evidence: Evidence) -> Floats:
    """(k,) published logits, if they can be compared: only where the effort of every model is known.

    Otherwise the published step from tier to tier is used (``families/saturating.py``), with
    ``_effort_reward`` for the models whose effort is known.
    """
    if any(parse_who(word)[1] is None for word in words):
        return np.full(len(words), math.nan)
    return np.array([_logit(evidence.solo.get(word)) for word in words])


def _effort_reward(words: Sequence[str], evidence: Evidence) -> Floats:
    """(k,) published logits above those of the same model at medium effort; 0 where not published."""
    rise = [_logit(evidence.solo.get(w)) - _logit(evidence.solo_at(parse_who(w)[0])) for w in words]
    return np.array([0.0 if math.isnan(r) else r for r in rise])


def _logit(row: SoloRow | None) -> float:
    return math.nan if row is None else math.log(row.reward / (1.0 - row.reward))
