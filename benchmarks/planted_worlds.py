"""Answers against the truth of planted worlds: how often a limit breaks, how much reward is missed.

    TEAMALLOC_SHARED=FOLDER .venv/bin/python benchmarks/planted_worlds.py --runs 40 --seeds 1000-1047

The simulator (make_log.py, worlds.py) is read from FOLDER/worlds; without it nothing is measured. A
world's log goes through the CSV map docs/maps/worlds.toml into a run store, and each of its six
pairs of limits is asked as the command asks. A chosen team is simulated 5,000 times: it breaks a
limit materially if it keeps one of them in less than 85 % of its runs where 90 % was asked.
Normalised regret is (oracle - chosen) / (oracle - average feasible team), at least 1 if a limit is
broken. Set beside it: the best team in the log whose own cost and time kept both limits.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from teamalloc import PriceBook, Problem, Question, RunStore, answer, ingest, parse_team
from teamalloc.data.team import TeamConfig

DRAWS = 5000
ASKED, MATERIAL = 0.9, 0.85
TIERS = ("luna", "terra", "sol")
MAP = Path(__file__).parent.parent / "docs" / "maps" / "worlds.toml"
DAY = date(2026, 12, 1)
NO_LIMIT_S = 1e17


@dataclass
class Tally:
    """Answers of one method."""

    regret: list[float] = field(default_factory=list)
    broken: list[bool] = field(default_factory=list)
    refused: int = 0

    def row(self, name: str) -> str:
        n = len(self.regret)
        error = float(np.std(self.regret)) / max(n, 1) ** 0.5
        return (
            f"{name:24} {n:6} {self.refused:8} {np.mean(self.regret):7.3f} +- {error:.3f} "
            f"{100 * np.mean(self.broken):10.1f} %"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seeds", default="1000-1047", help="development seeds: 1000-1047")
    parser.add_argument("--designs", default="designed,random")
    parser.add_argument("--no-tokens", action="store_true", help="log total cost only")
    parser.add_argument("--no-prices", action="store_true", help="models without any known price")
    options = parser.parse_args()
    shared = os.environ.get("TEAMALLOC_SHARED")
    if not shared or not (Path(shared) / "worlds" / "worlds.py").exists():
        print("not measured: TEAMALLOC_SHARED names no folder with worlds/worlds.py")
        return
    sys.path.insert(0, str(Path(shared) / "worlds"))
    first, _, last = options.seeds.partition("-")
    tallies: dict[str, Tally] = defaultdict(Tally)
    for seed in range(int(first), int(last or first) + 1):
        for design in options.designs.split(","):
            measure(seed, design, options, tallies)
        print(f"\rworld {seed}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{options.runs} runs, {options.designs}, worlds {options.seeds}")
    print(f"{'method':24} {'asked':>6} {'refused':>8} {'regret':>17} {'limit broken':>13}")
    for name, tally in tallies.items():
        print(tally.row(name))


def measure(seed: int, design: str, options: argparse.Namespace, tallies: dict[str, Tally]) -> None:
    """One world, one log, six pairs of limits."""
    import make_log
    import worlds

    world = worlds.World(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_log.main(seed, design, options.runs, str(folder))
        prices = PriceBook.load(None if options.no_prices else price_file(folder))
        with RunStore.open(str(folder / "runs.sqlite")) as store:
            ingest(
                [folder / "runs.csv"],
                store=store,
                prices=prices,
                table_map=map_file(folder, options.no_tokens or options.no_prices),
            )
            records = store.runs()
            for budget, latency, oracle, average in world.scenarios():
                limit = None if latency > NO_LIMIT_S else latency
                problem = Problem(budget_usd=float(budget), latency_s=limit)
                found = answer(
                    Question(problem), store=store, prices=prices, today=DAY
                ).recommendation
                scale = (oracle, oracle - average)
                refused = found.verdict == "infeasible"
                score(world, found.best.team, budget, latency, scale, tallies["teamalloc"], refused)
                if not refused:
                    score(
                        world,
                        found.best.team,
                        budget,
                        latency,
                        scale,
                        tallies["  answers only"],
                        False,
                    )
                seen = best_seen(records, budget, latency)
                score(world, seen, budget, latency, scale, tallies["best team in the log"], False)


def price_file(folder: Path) -> Path:
    """The world's prices as a price file."""
    with (folder / "prices.csv").open() as file:
        rows = [
            f'[[price]]\nmodel = "{row["model"]}"\ninput = {row["usd_per_token_unit"]}\n'
            f"output = {row['usd_per_token_unit']}\n"
            for row in csv.DictReader(file)
        ]
    path = folder / "prices.toml"
    path.write_text("\n".join(rows))
    return path


def map_file(folder: Path, no_tokens: bool) -> Path:
    """The shipped column map, or the same without tokens."""
    if not no_tokens:
        return MAP
    path = folder / "map.toml"
    path.write_text(MAP.read_text().split("[tokens]")[0])
    return path


def best_seen(runs: list[Any], budget: float, latency: float) -> str:
    """The team with the highest mean reward among runs that kept both limits, else the cheapest."""
    rewards = defaultdict(list)
    for run in runs:
        if float(run.cost_usd) <= budget and run.active_s <= latency:
            rewards[str(run.team)].append(run.reward)
    if not rewards:
        return str(min(runs, key=lambda run: run.cost_usd).team)
    return max(sorted(rewards), key=lambda team: float(np.mean(rewards[team])))


def score(
    world: Any,
    team: str,
    budget: float,
    latency: float,
    scale: tuple[float, float],
    tally: Tally,
    refused: bool,
) -> None:
    """Compare a team with the truth."""
    cell = cell_of(world, parse_team(team))
    kept = p_kept(world, cell, budget, latency)
    oracle, span = scale
    regret = (oracle - float(world.R[cell])) / span
    broken = kept < MATERIAL
    tally.regret.append(max(regret, 1.0) if broken else regret)
    tally.broken.append(broken)
    tally.refused += refused


def cell_of(world: Any, team: TeamConfig) -> int:
    """The world's number of a team."""
    row = [TIERS.index(team.lead.model)]
    for stage in ("planner", "implementer", "verifier"):
        seats = [seat for seat in team.helpers if seat.role == stage]
        row += [seats[0].count, TIERS.index(seats[0].model)] if seats else [0, 0]
    row.append(int(team.mode == "async"))
    return int(np.flatnonzero((world.grid == row).all(1))[0])


def p_kept(world: Any, cell: int, budget: float, latency: float) -> float:
    """The smaller of the two probabilities of keeping a limit, by simulation."""
    rng = np.random.default_rng([world.seed, cell])
    teams = np.repeat(world.grid[[cell]], DRAWS, axis=0)
    at = np.full(DRAWS, cell)
    _, cost, seconds = world.draw(
        rng, teams, world.lc[at], world.ll[at], rng.integers(0, 200, DRAWS)
    )
    return float(min(np.mean(cost <= budget), np.mean(seconds <= latency)))


if __name__ == "__main__":
    main()
