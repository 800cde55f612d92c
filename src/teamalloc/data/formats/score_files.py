"""Scores that benchmarks write beside a trajectory: ProgramBench and SWE-bench.

A score file is looked for in the trajectory's own folder, and a batch's summary also one above:

    <run>/<instance>/<instance>.traj.json     the trajectory
    <run>/<instance>/<instance>.eval.json     ProgramBench: a status for every test
    <run>/<instance>/report.json              SWE-bench: resolved or not
    <run>/report.json                         SWE-bench: which instances were resolved
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from teamalloc.data.formats import OnReject, Reject

COMPANIONS = ("*.eval.json", "eval.json", "report.json", "preds.json", "exit_statuses_*.yaml")
"files beside trajectories that hold no run of their own"

_NOT_COUNTED = ("skipped", "ignored")


@dataclass(frozen=True, slots=True)
class Score:
    """A reward and the bytes it was read from."""

    reward: float
    "[0, 1]"
    source: bytes


def is_companion(path: Path) -> bool:
    """Whether a file is named like one that accompanies trajectories."""
    return any(path.match(pattern) for pattern in COMPANIONS)


def find_score(path: Path, stem: str, instance: str | None, on_reject: OnReject) -> Score | None:
    """The score of the trajectory ``path``; None if there is none.

    Args:
        stem: the trajectory's file name without its ending.
        instance: name of the benchmark's instance, None if unknown.
        on_reject: told of a score file that cannot be read or says nothing usable.
    """
    for candidate in _candidates(path, stem):
        try:
            body = candidate.read_bytes()
            reward = _reward(candidate, msgspec.json.decode(body), instance)
        except FileNotFoundError:
            continue
        except OSError as error:
            on_reject(Reject(candidate, f"cannot be read: {error.strerror or error}"))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            on_reject(Reject(candidate, f"no usable score: {error}"))
        else:
            if reward is not None:
                return Score(reward, body)
    return None


def _candidates(path: Path, stem: str) -> Iterator[Path]:
    folder = path.parent
    yield folder / f"{stem}.eval.json"
    # A file that does not name its instance can only mean the folder's one trajectory.
    if len(list(folder.glob("*.traj.json"))) == 1:
        yield folder / "eval.json"
    yield folder / "report.json"
    yield folder.parent / "report.json"


def _reward(path: Path, value: object, instance: str | None) -> float | None:
    """The reward in a decoded score file, None if it says nothing of this instance.

    Raises:
        ValueError: the file is no score file.
    """
    if not isinstance(value, Mapping):
        raise ValueError("not a JSON object")
    return _swe_bench(value, instance) if path.name == "report.json" else _program_bench(value)


def _swe_bench(report: Mapping[str, Any], instance: str | None) -> float | None:
    """1 if resolved, 0 if not; an instance that was submitted and is not listed was not."""
    if instance is None:
        return None
    own = report.get(instance)
    if isinstance(own, Mapping) and isinstance(own.get("resolved"), bool):
        return float(own["resolved"])
    for key, reward in (("resolved_ids", 1.0), ("submitted_ids", 0.0)):
        if isinstance(report.get(key), list) and instance in report[key]:
            return reward
    return None


def _program_bench(evaluation: Mapping[str, Any]) -> float:
    """Share of tests that passed; 0 if the evaluation itself failed (it did not build, say).

    Which tests are active stands in the benchmark's own data, not in this file. What can be told
    here: a test listed under two paths of one branch (``eval.tests.…`` and ``tests.…``) ran under
    one of them and is one test.

    Raises:
        ValueError: no test in it was counted.
    """
    if evaluation.get("error_code"):
        return 0.0
    results = evaluation.get("test_results")
    if not isinstance(results, list):
        raise ValueError("no test_results in it")
    if evaluation.get("test_results_omitted") or "test_results_policy" in evaluation:
        raise ValueError("it lists only some of the tests")
    status: dict[tuple[str, str], str] = {}
    for result in results:
        if not isinstance(result, Mapping) or result.get("status") in _NOT_COUNTED:
            continue
        name = str(result.get("name")).removeprefix("eval.")
        test = (str(result.get("branch")), name)
        if status.get(test, "not_run") == "not_run":
            status[test] = str(result.get("status"))
    if not status:
        raise ValueError("no test in it was run")
    return sum(found == "passed" for found in status.values()) / len(status)
