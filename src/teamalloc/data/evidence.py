"""Published figures: read from ``evidence.toml``, where each has its citation and setting."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from teamalloc.data.run import Tokens
from teamalloc.data.team import parse_who

PriorTable = Mapping[str, tuple[float, float]]
"parameter -> (mean, standard deviation)"


@dataclass(frozen=True, slots=True)
class SoloRow:
    """One model alone at one effort."""

    model: str
    "as in the price book"
    effort: str
    "reasoning effort"
    reward: float
    "mean reward, [0, 1]"
    tokens: Tokens
    "mean tokens of one run (whole numbers)"
    active_s: float | None
    "mean seconds of one run; None = not published"
    n_runs: int
    "runs behind the means"

    @property
    def who(self) -> str:
        """``model@effort``."""
        return f"{self.model}@{self.effort}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One published statement about teams."""

    id: str
    setting: str
    says: str
    citation: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """All published figures and the prior they allow."""

    version: int
    "of the file"
    digest: str
    "SHA-256 (hex) of the file"
    solo: Mapping[str, SoloRow]
    "by ``model@effort``"
    study_models: tuple[str, ...]
    "models of the study, candidates only where there is nothing else"
    solo_citation: str
    "where the solo rows come from"
    figures: tuple[Figure, ...]
    prior: Mapping[str, PriorTable]
    "for each target"

    def solo_at(self, who: str) -> SoloRow | None:
        """The row of this model at this effort; the medium one where the effort is not known."""
        model, effort = parse_who(who)
        return self.solo.get(f"{model}@{effort or 'medium'}")


@cache
def load_evidence() -> Evidence:
    """The figures shipped with the package."""
    raw = files("teamalloc.data").joinpath("evidence.toml").read_bytes()
    data = tomllib.loads(raw.decode())
    solo = {}
    for row in data["solo"]["rows"]:
        cached = row["cached_tok"]
        read = SoloRow(
            model=row["model"],
            effort=row["effort"],
            reward=row["reward"],
            tokens=Tokens(row["input_tok"] - cached, cached, 0, 0, row["output_tok"]),
            active_s=row.get("active_s"),
            n_runs=row["n_runs"],
        )
        solo[read.who] = read
    prior = {
        target: {name: (float(mean), float(sd)) for name, (mean, sd) in table.items()}
        for target, table in data["prior"].items()
    }
    figures = tuple(Figure(**figure) for figure in data["figure"])
    digest = hashlib.sha256(raw).hexdigest()
    return Evidence(
        version=data["version"],
        digest=digest,
        solo=solo,
        study_models=tuple(data["study"]["models"]),
        solo_citation=data["solo"]["citation"],
        figures=figures,
        prior=prior,
    )
