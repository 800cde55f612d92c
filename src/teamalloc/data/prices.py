"""What tokens cost: a model's price on the day of the request.

Three lists are asked in this order, and the first that prices the model on that day at that speed
and service tier answers alone: the user's price file (``price_rows`` describes it), our own
``prices.toml``, the installed list (``price_package``). An unknown price is None, never 0 and never
another model's.
"""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib import resources
from pathlib import Path

from teamalloc.data.model_names import normalise_model
from teamalloc.data.price_package import PricePackage
from teamalloc.data.price_rows import PriceRows, base_to_none, read_price_rows
from teamalloc.data.rates import Enquiry, Ladder, Rates, step_of
from teamalloc.data.run import Tokens
from teamalloc.errors import BadLog

__all__ = ["PRICES_VARIABLE", "PriceBook", "Rates", "normalise_model"]

PRICES_VARIABLE = "TEAMALLOC_PRICES"
_MIDDAY = time(12, tzinfo=UTC)


class PriceBook:
    """Every price teamalloc knows. Models may be given in any spelling, as the log has them."""

    def __init__(self, user: PriceRows, own: PriceRows, *, digest_of: bytes = b"") -> None:
        self._user = user
        self._own = own
        self._package = PricePackage()
        version = self._package.version.encode()
        self._digest = hashlib.sha256(version + b"\0" + digest_of).hexdigest()
        self._ladders: dict[Enquiry, Ladder | None] = {}

    @classmethod
    def load(cls, user_file: Path | None = None) -> PriceBook:
        """Read the price files.

        Args:
            user_file: the user's own prices; None = the file that ``TEAMALLOC_PRICES`` names, else
                ``prices.toml`` in the user's configuration folder if there is one.

        Raises:
            BadLog: the file cannot be read or a price in it is wrong.
        """
        path, text = _user_file(user_file)
        own_text = resources.files("teamalloc.data").joinpath("prices.toml").read_bytes()
        return cls(
            read_price_rows(path, text),
            read_price_rows(Path("prices.toml"), own_text),
            digest_of=text + b"\0" + own_text,
        )

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the price files and the version of the installed list."""
        return self._digest

    def cost_usd(
        self,
        model: str,
        tokens: Tokens,
        *,
        at: datetime | None,
        speed: str | None = None,
        service_tier: str | None = None,
    ) -> Decimal | None:
        """US dollars for ONE request; None = unknown.

        A context tier is decided by the prompt of one request and then holds for all of it, so
        the tokens of several requests must not be added first.

        Args:
            model: as served, in any spelling.
            tokens: of this request.
            at: when it was answered (with zone); without it only a price of the user's file that
                has no dates is known.
            speed: as served; None, "standard" and "default" are the base.
            service_tier: as served; None, "standard", "default" and "auto" are the base.
        """
        ladder = self._ladder(model, at, speed, service_tier)
        if ladder is None:
            return None
        return ladder[step_of(ladder, tokens.prompt)].cost_usd(tokens)

    def band(self, model: str, tokens: Tokens, *, at: datetime | None) -> int:
        """Where the context tier of this request starts (tokens); 0 = base tier or unknown price."""
        ladder = self._ladder(model, at, None, None)
        return 0 if ladder is None else step_of(ladder, tokens.prompt)

    def rates(
        self,
        model: str,
        *,
        on: date,
        band: int = 0,
        speed: str | None = None,
        service_tier: str | None = None,
    ) -> Rates | None:
        """Rates on a day (at noon UTC, for models whose price changes by the hour).

        Args:
            band: as ``band`` gave it, perhaps under another day's price list; what counts is the
                context tier it lies in.
        """
        midday = datetime.combine(on, _MIDDAY)
        ladder = self._ladder(model, midday, speed, service_tier)
        if ladder is None:
            return None
        return ladder[max((start for start in ladder if start <= band), default=0)]

    def _ladder(
        self, model: str, at: datetime | None, speed: str | None, service_tier: str | None
    ) -> Ladder | None:
        # Prices change on the hour at the most often: one answer serves all requests of an hour.
        hour = at and at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        enquiry = Enquiry(model, hour, base_to_none(speed), base_to_none(service_tier))
        if enquiry not in self._ladders:
            self._ladders[enquiry] = self._ask(enquiry)
        return self._ladders[enquiry]

    def _ask(self, enquiry: Enquiry) -> Ladder | None:
        ladder = self._user.ladder(enquiry)
        if ladder is None and enquiry.at is not None:
            ladder = self._own.ladder(enquiry)
            if ladder is None:
                ladder = self._package.ladder(enquiry)
        return ladder


def _user_file(given: Path | None) -> tuple[Path, bytes]:
    """The user's price file and its content; no file reads as an empty one."""
    named = os.environ.get(PRICES_VARIABLE)
    path = given if given is not None else Path(named) if named else None
    try:
        if path is not None:
            return path, path.read_bytes()
        path = _default_file()
        return path, path.read_bytes() if path.is_file() else b""
    except OSError as error:
        raise BadLog(
            path or PRICES_VARIABLE,
            f"the price file cannot be read: {error.strerror or error}.",
        ) from error


def _default_file() -> Path:
    import platformdirs

    return platformdirs.user_config_path("teamalloc", appauthor=False) / "prices.toml"
