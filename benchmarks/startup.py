"""How long an answer takes as a whole process, beside a bare ``import pandas``.

    python benchmarks/startup.py [--store URL] [--repeat N]

Without ``--store`` the question goes to an empty store and the answer comes from the published
figures; give the URL of a fitted store to time the answer from own runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

QUESTION = ("--budget", "50", "--max-latency", "30m", "--json")
ANSWERED = (0, 3)
"exit codes of an answer and of a refusal: both take the whole way"


def main() -> None:
    options = _options()
    allocate = Path(sys.executable).with_name("allocate")
    with tempfile.TemporaryDirectory() as folder:
        store = options.store or f"sqlite:///{folder}/empty.db"
        commands = {
            f"allocate {' '.join(QUESTION)}": [str(allocate), *QUESTION, "--store", store],
            'python -c "import pandas"': [sys.executable, "-c", "import pandas"],
        }
        times_s = measure(commands, repeat=options.repeat)
    kind = "given store" if options.store else "empty store: answer from published figures"
    print(
        f"{kind}; {options.repeat} rounds, {os.cpu_count()} cores, Python {sys.version.split()[0]}"
    )
    print(table(times_s))


def measure(commands: dict[str, list[str]], *, repeat: int) -> dict[str, list[float]]:
    """Seconds of each run of each command; the commands take turns after one round uncounted."""
    times_s: dict[str, list[float]] = {name: [] for name in commands}
    for counted in (False, *[True] * repeat):
        for name, command in commands.items():
            seconds = wall_s(command)
            if counted:
                times_s[name].append(seconds)
    return times_s


def wall_s(command: Sequence[str]) -> float:
    """Seconds from start to exit; leaves with the command's own words if it fails."""
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode not in ANSWERED:
        sys.exit(f"{' '.join(command)} left with {done.returncode}:\n{done.stdout}{done.stderr}")
    return seconds


def table(times_s: dict[str, list[float]]) -> str:
    """Median, fastest and slowest, and the ratio of medians to the last command."""
    *_, peer = times_s.values()
    lines = [f"{'whole process, wall time':<50} {'median':>8} {'min':>8} {'max':>8} {'ratio':>7}"]
    for name, seconds in times_s.items():
        middle = median(seconds)
        lines.append(
            f"{name:<50} {middle:>6.3f} s {min(seconds):>6.3f} s {max(seconds):>6.3f} s"
            f" {middle / median(peer):>7.2f}"
        )
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--store", metavar="URL", help="a fitted store (default: an empty one)")
    parser.add_argument("--repeat", metavar="N", type=int, default=15, help="rounds (default 15)")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error("--repeat must be at least 1")
    return options


if __name__ == "__main__":
    main()
