"""Which files to read, and with which reader."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from teamalloc.data.formats import Format, Reject
from teamalloc.errors import BadInput

HEAD_BYTES = 64 << 10
"what a reader is shown of a file to tell whether it is in its format"

LOG_SUFFIXES = (".jsonl", ".json", ".ndjson", ".csv", ".tsv", ".db", ".eval", ".zst")
"of files in a folder; one given by name may be called anything"

Progress = Callable[[Path, int], None]


@dataclass(slots=True)
class Found:
    """The files of one ingest."""

    by_format: dict[str, list[Path]] = field(default_factory=dict)
    "sorted files for each reader, in the readers' own order"
    rejects: list[Reject] = field(default_factory=list)
    skipped: list[Reject] = field(default_factory=list)
    "logs of a kind that is not read yet"


def find_logs(
    paths: Iterable[Path],
    readers: Mapping[str, Format],
    *,
    forced: bool = False,
    progress: Progress | None = None,
) -> Found:
    """Look through files and folders for logs.

    Args:
        paths: files and folders; links to folders are followed, each folder once.
        readers: in the order in which they are asked.
        forced: the user named the format: there is one reader, and a file given by name need not
            look like its format.
        progress: called for each file looked at, with its size in bytes.

    Raises:
        BadInput: a path does not exist, or a folder holds no log at all.
    """
    found = Found({name: [] for name in readers})
    noted: dict[Path, bool] = {}
    "files looked at, and whether there is anything to say of them"
    for path in paths:
        if path.is_dir():
            said = 0
            for file in _files(path):
                real = file.resolve()
                if real not in noted:
                    noted[real] = _take(file, found, readers, progress)
                said += noted[real]
            if not said:
                _refuse_empty(path, readers)
        elif path.exists():
            if not noted.get(path.resolve()):
                noted[path.resolve()] = _take(
                    path, found, readers, progress, named=True, forced=forced
                )
        else:
            raise BadInput(f"there is no {path}.", remedy="Give a log file or a folder of logs.")
    for files in found.by_format.values():
        files.sort()
    return found


def _refuse_empty(folder: Path, readers: Mapping[str, Format]) -> None:
    raise BadInput(
        f"no agent log in {folder}.",
        remedy=f"Looked for {', '.join(readers)} in files ending in {', '.join(LOG_SUFFIXES)}.",
    )


def _files(folder: Path) -> Iterator[Path]:
    """Every file that may be a log, sorted; a folder that is reached twice is walked once."""
    walked: set[tuple[int, int]] = set()
    for root, folders, names in os.walk(folder, followlinks=True):
        status = Path(root).stat()
        if (status.st_dev, status.st_ino) in walked:
            folders.clear()
            continue
        walked.add((status.st_dev, status.st_ino))
        folders.sort()
        for name in sorted(names):
            if name.lower().endswith(LOG_SUFFIXES) and Path(root, name).is_file():
                yield Path(root, name)


def _take(
    path: Path,
    found: Found,
    readers: Mapping[str, Format],
    progress: Progress | None,
    *,
    named: bool = False,
    forced: bool = False,
) -> bool:
    """Sort one file in; return False if there is nothing to say of it."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        found.rejects.append(Reject(path, f"cannot be read: {error.strerror or error}"))
        return True
    if progress is not None:
        progress(path, size)
    for name, reader in readers.items():
        if forced or reader.sniff(path, head):
            found.by_format[name].append(path)
            return True
    if (kind := foreign_kind(path, head)) is not None:
        note = Reject(path, f"{kind}: not read yet")
        (found.rejects if named else found.skipped).append(note)
    elif named:
        found.rejects.append(Reject(path, _why_not(path, head, readers)))
    elif path.suffix == ".jsonl" and _is_binary(head):
        found.rejects.append(Reject(path, "not text, whatever its name says"))
    else:
        return False
    return True


def _is_binary(head: bytes) -> bool:
    return any(byte < 9 or 13 < byte < 27 for byte in head[:1024])


def _why_not(path: Path, head: bytes, readers: Mapping[str, Format]) -> str:
    looked_for = ", ".join(readers)
    if not head:
        return "the file is empty"
    if _is_binary(head):
        return "not text, and no log format that is known"
    if path.suffix.lower() in (".csv", ".tsv"):
        if "table" in readers:
            return "a table without any of the columns that the map names"
        return "a table needs a column map (--map map.toml)"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return f"JSON of an unknown kind (looked for {looked_for})"
    return f"not a log (looked for {looked_for})"


# --- logs that other programs write and that no reader here takes -----------------------------------

_EVENT_STREAMS: Sequence[tuple[str, str, Sequence[str]]] = (
    ("claude -p event stream", "session_id", ("system", "assistant", "stream_event", "result")),
    ("claude -p event stream", "session_id", ("user", "rate_limit_event")),
    ("codex exec event stream", "thread_id", ("thread.started",)),
    ("codex exec event stream", "item", ("item.started", "item.updated", "item.completed")),
    ("codex exec event stream", "type", ("turn.started", "turn.completed", "turn.failed")),
    ("opencode event stream", "sessionID", ("step_start", "step_finish", "tool_use", "text")),
    ("pi session", "version", ("session",)),
)
"what it is, a key that every such row has, and values of its type"

_TELLING_KEYS: Mapping[str, Sequence[str]] = {
    "OpenTelemetry export": ("resourceSpans", "resourceLogs", "resourceMetrics"),
    "ATIF trajectory": ("_atif_header",),
    "Inspect log": ("eval", "plan"),
    "Harbor result": ("trial_name", "agent_info"),
    "Harbor job result": ("n_total_trials",),
    "Terminal-Bench result": ("is_resolved", "failure_mode"),
    "ProgramBench evaluation": ("test_results", "executable_hash"),
    "Langfuse export": ("observations",),
    "LiteLLM spend log": ("spend", "call_type"),
    "OpenHands output": ("instance_id", "test_result"),
    "OpenHands resolver output": ("issue_type", "git_patch"),
}


def foreign_kind(path: Path, head: bytes) -> str | None:
    """What program wrote this, if it is a log of a known kind that is not read here."""
    if head.startswith(b"SQLite format 3\0"):
        return "opencode database" if path.name == "opencode.db" else None
    if head.startswith(b"PK\x03\x04") and path.suffix == ".eval":
        return "Inspect log"
    if head.startswith(b"generation_id,created_at,"):
        return "OpenRouter activity table"
    if head.startswith(b"\x28\xb5\x2f\xfd") and path.name.startswith("rollout-"):
        return "compressed Codex rollout"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    rows = _rows(text)
    if not rows:
        return _kind_of_document(text)
    for row in rows:
        if (kind := _kind_of_row(row)) is not None:
            return kind
    return None


def _rows(text: bytes) -> list[dict[str, Any]]:
    """The first complete lines that are JSON objects."""
    rows = []
    for line in text.split(b"\n")[:8]:
        try:
            row = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            break
        if isinstance(row, dict):
            rows.append(row)
    return rows


def _kind_of_row(row: Mapping[str, Any]) -> str | None:
    kind = row.get("type")
    for name, key, types in _EVENT_STREAMS:
        if kind in types and key in row:
            return name
    if "schema_version" in row and str(row["schema_version"]).startswith("ATIF"):
        return "ATIF trajectory"
    if kind is None:
        for name, keys in _TELLING_KEYS.items():
            if name.startswith(("OpenTelemetry", "Harbor job")):
                if any(key in row for key in keys):
                    return name
            elif all(key in row for key in keys):
                return name
    return None


def _kind_of_document(text: bytes) -> str | None:
    """The same for one JSON document over many lines, of which only the head may be here."""
    if not text.startswith((b"{", b"[")):
        return None
    if b'"schema_version": "ATIF' in text or b'"schema_version":"ATIF' in text:
        return "ATIF trajectory"
    if b'"type": "result"' in text and b'"total_cost_usd"' in text:
        return "claude -p result"
    for name, keys in _TELLING_KEYS.items():
        if all(f'"{key}"'.encode() in text for key in keys):
            return name
    return None
