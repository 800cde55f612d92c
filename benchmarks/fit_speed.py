"""How long a fit takes: 1,000 runs on 200 tasks, beside a pandas group-by of the same rows.

.venv/bin/python benchmarks/fit_speed.py --runs 1000 --tasks 200
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from datetime import date
from decimal import Decimal

import numpy as np

from teamalloc import PriceBook, Run, fit_forecaster, parse_team
from teamalloc.data.run import Source
from teamalloc.data.team import STAGES, Seat, TeamConfig

MODELS = ("gpt-5.6-luna", "gpt-5.6-terra", "gpt-5.6-sol")


def planted_runs(n: int, n_tasks: int, seed: int = 0) -> list[Run]:
    """Runs of random teams whose cost and time grow with their size."""
    rng = np.random.default_rng(seed)
    size = 0.4 * rng.standard_normal(n_tasks)
    runs = []
    for i in range(n):
        task = int(rng.integers(n_tasks))
        helpers = tuple(
            Seat(stage, str(rng.choice(MODELS)), int(rng.integers(1, 5)))
            for stage in STAGES
            if rng.random() < 0.4
        )
        team = TeamConfig(Seat("lead", str(rng.choice(MODELS))), helpers)
        many = 1 + sum(seat.count for seat in helpers)
        cost = np.exp(size[task] + 0.3 * rng.standard_normal()) * many
        runs.append(
            Run(
                run_id=f"run-{i}",
                team=team,
                source=Source("planted", 1, f"s{i}", ""),
                task_id=f"task-{task}",
                total_reported_usd=Decimal(repr(round(float(cost), 6))),
                reward=float(rng.beta(3, 2)),
                reward_source="file",
                active_s=float(600 * np.exp(size[task] + 0.2 * rng.standard_normal()) * many**0.5),
                assigned=True,
            )
        )
    return runs


def seconds(job: Callable[[], object], repeat: int) -> float:
    """The best of some repetitions."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Measure and print."""
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    runs, prices = planted_runs(options.runs, options.tasks), PriceBook.load()
    assert parse_team(str(runs[0].team)) == runs[0].team
    frame = pd.DataFrame({"task": [r.task_id for r in runs], "reward": [r.reward for r in runs]})
    fit = seconds(lambda: fit_forecaster(runs, prices=prices, on=date(2026, 12, 1)), options.repeat)
    peer = seconds(lambda: frame.groupby("task").reward.mean(), options.repeat)
    print(f"{options.runs} runs, {options.tasks} tasks")
    print(f"fit of three curves   {fit:8.3f} s")
    print(f"pandas group-by mean  {peer:8.4f} s   ratio {fit / peer:,.0f}")


if __name__ == "__main__":
    main()
