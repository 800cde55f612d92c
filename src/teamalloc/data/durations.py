"""Durations as people write them: 90s, 30m, 8h, 1h30m, 7d."""

from __future__ import annotations

import re

from teamalloc.errors import BadInput

_UNIT_S = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_PARTS = re.compile(
    r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?"
)


def parse_duration_s(text: str) -> float:
    """Seconds.

    Raises:
        BadInput: with the forms there are.
    """
    word = text.strip().lower()
    match = _PARTS.fullmatch(word)
    if not word or match is None:
        raise BadInput(
            f"{text!r} is not a duration.", remedy="Write it as 90s, 30m, 8h, 1h30m or 7d."
        )
    parts = zip(match.groups(), _UNIT_S.values(), strict=True)
    return sum(float(number) * unit for number, unit in parts if number)


def format_duration(seconds: float) -> str:
    """The shortest such word that is right to about two digits: ``34m``, ``1h10m``, ``45s``."""
    if seconds < 90:
        return f"{seconds:.0f}s" if seconds >= 10 else f"{seconds:.1f}s"
    if seconds < 600:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if seconds < 5400:
        return f"{seconds / 60:.0f}m"
    minutes = round(seconds / 60)
    if minutes < 48 * 60:
        hours, rest = divmod(minutes, 60)
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    days, rest = divmod(round(seconds / 3600), 24)
    return f"{days}d{rest}h" if rest else f"{days}d"
