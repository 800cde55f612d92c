"""Which models may lead and help: those the user has run, those asked for, else the study's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from teamalloc.allocator.space import SearchSpace
from teamalloc.data.team import TeamConfig, parse_who

HELPER_EFFORT = "medium"
"effort of helpers where no run tells how they are used"
MOST_CELLS = 300_000
"a grid beyond this loses its least used helpers, so that an answer stays quick"


@dataclass(frozen=True, slots=True)
class Candidates:
    """Models for a search."""

    leads: tuple[str, ...]
    helpers: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    "helpers left out to keep the search small, most used first"


def candidates(
    models: Sequence[str],
    teams: Sequence[tuple[TeamConfig, int]],
    *,
    leads: Sequence[str] = (),
    helpers: Sequence[str] = (),
    strength: Mapping[str, float] = MappingProxyType({}),
) -> Candidates:
    """Models to search over.

    Every model may lead at every effort that is known of it; it helps at the effort at which it
    has helped most. A helper asked for does not lead on that account.

    Args:
        models: ``model@effort`` words of the curves.
        teams: teams that were run, with their number of runs.
        leads: words asked for.
        helpers: words asked for, as helpers only.
        strength: published solo reward by word.
    """
    seen: Counter[str] = Counter()
    helped: Counter[str] = Counter()
    for team, n in teams:
        for seat in team.seats:
            seen[seat.who] += n
            if seat.role != "lead":
                helped[seat.who] += n
    only_helps = {parse_who(w)[0] for w in helpers} - {parse_who(w)[0] for w in (*seen, *leads)}
    may_lead = [who for who in models if parse_who(who)[0] not in only_helps]
    if not teams and leads:
        asked = {parse_who(who)[0] for who in leads}
        may_lead = [who for who in models if parse_who(who)[0] in asked]
    names = sorted({parse_who(who)[0] for who in models})
    usual = [_usual(name, models, helped, seen) for name in names]
    usual.sort(key=lambda who: (-helped[who], -seen[who], who))
    named = [who for who in helpers if who in models]
    order = [*dict.fromkeys([*named, *usual])]
    return _small_enough(sorted(may_lead), order, seen, strength)


def _usual(name: str, models: Sequence[str], helped: Counter[str], seen: Counter[str]) -> str:
    """How a model mostly helps; one that never helped, how it mostly runs."""
    own = [who for who in models if parse_who(who)[0] == name]
    middle = f"{name}@{HELPER_EFFORT}"
    return min(own, key=lambda who: (-helped[who], -seen[who], who != middle, who))


def _small_enough(
    leads: Sequence[str], helpers: Sequence[str], seen: Counter[str], strength: Mapping[str, float]
) -> Candidates:
    """Of a grid that is too big, first lead efforts that were never run go, then rare helpers.

    One effort of each model stays even so: the strongest, as the alternative to a team.
    """
    strongest = {
        max((w for w in leads if parse_who(w)[0] == name), key=lambda w: (strength.get(w, 0.0), w))
        for name in {parse_who(who)[0] for who in leads}
    }
    few = [who for who in leads if who in seen or who in strongest]
    kept_leads = leads if len(SearchSpace.of(leads, helpers)) <= MOST_CELLS else few
    kept = list(helpers)
    while len(kept) > 1 and len(SearchSpace.of(kept_leads, kept)) > MOST_CELLS:
        kept.pop()
    return Candidates(tuple(kept_leads), tuple(sorted(kept)), tuple(helpers[len(kept) :]))
