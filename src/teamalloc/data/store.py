"""The run store: every run that was read, and what was said about it since.

What was read and what was added by hand are kept apart, so that a log can be read again without
losing a reward. A run as others see it is put together when it is asked for: the record as read,
its edits over it, merged with those it was grouped with, and split where it was split.

    with RunStore.open() as store:
        with store.writing() as w:
            w.put(run, request_keys)
        store.set_reward("last", 0.8)
        runs = store.runs()
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import sqlalchemy as sa

from teamalloc.data.assembly import (
    batches,
    delete_rows,
    load,
    load_one,
    read_groups,
    read_outline,
    sweep,
    sweep_labels,
)
from teamalloc.data.database import Database, is_there
from teamalloc.data.grouping import chronological, split, turn_at
from teamalloc.data.outline import Item, find
from teamalloc.data.records import as_row, encode_run
from teamalloc.data.run import RewardSource, Run
from teamalloc.data.schema import (
    EDITS,
    FITS,
    GROUPS,
    LABELS,
    META,
    REQUEST_KEYS,
    RUNS,
    SPLITS,
    bring_up_to_date,
)
from teamalloc.errors import BadInput, StoreError

if TYPE_CHECKING:
    import pandas as pd

Change = Literal["added", "updated", "unchanged"]

_N_FITS = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RunStore:
    """Runs in a database; ``open`` makes one. Any method may raise ``StoreError``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, url: str | None = None, *, create: bool = True) -> Self:
        """Open the store at a URL or file; by default ``TEAMALLOC_STORE``, else the user's own.

        Raises:
            StoreError: locked, damaged, newer than this teamalloc, not writable, no home folder,
                or, without ``create``, not there.
            BadInput: the URL cannot be read.
        """
        database = Database(url, create=create)
        try:
            bring_up_to_date(database)
        except BaseException:  # whatever it is: nobody else could close it
            database.close()
            raise
        return cls(database)

    @classmethod
    def exists(cls, url: str | None = None) -> bool:
        """Whether there is a store to open; a database server is taken to be there.

        Raises:
            StoreError: there is no home folder to look in.
            BadInput: the URL cannot be read.
        """
        return is_there(url)

    def close(self) -> None:
        """Give the database back."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """File or address, without credentials."""
        return self._database.name

    # --- runs -------------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """One transaction: all of it is stored or, after any exception or a kill, nothing.

        Other writers wait meanwhile, so the store's own methods that write cannot be used inside.
        """
        with self._database.writing() as connection:
            yield Writer(connection)

    def runs(self) -> list[Run]:
        """All runs by start and id: edits over what was read, groups merged, splits applied."""
        with self._database.reading() as connection:
            return sorted(load(connection, read_outline(connection)), key=chronological)

    def run(self, word: str) -> Run:
        """The run that ``word`` means, as ``resolve`` finds it."""
        with self._database.reading() as connection:
            return load_one(connection, find(read_outline(connection), word))

    def resolve(self, word: str) -> str:
        """The run id that ``word`` means: a run or session id, a beginning of one, or "last".

        Raises:
            BadInput: none or more than one is meant; the message lists them, or what comes near.
        """
        with self._database.reading() as connection:
            return find(read_outline(connection), word).run_id

    def digest(self) -> str:
        """SHA-256 (hex) that changes when any run does; no run is decoded for it."""
        everything = (
            sa.select(RUNS.c.run_id, RUNS.c.content_digest),
            sa.select(EDITS.c.subject, EDITS.c.field, EDITS.c.value),
            sa.select(GROUPS.c.run_id, GROUPS.c.group_id),
            sa.select(SPLITS.c.run_id, SPLITS.c.at_turn),
        )
        with self._database.reading() as connection:
            rows = [sorted(map(list, connection.execute(query))) for query in everything]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    def labels(self) -> dict[str, str]:
        """Salted hash to the name it stands for: for the eyes of this user only."""
        with self._database.reading() as connection:
            return dict(connection.execute(sa.select(LABELS.c.label, LABELS.c.text)).all())

    def frame(self) -> pd.DataFrame:
        """One row a run, for analysis; money stays ``Decimal``, unknown is None."""
        import pandas as pd

        return pd.DataFrame([as_row(run) for run in self.runs()])

    # --- edits ------------------------------------------------------------------------------------

    def set_reward(self, word: str, reward: float, source: RewardSource = "user") -> str:
        """Grade a run in [0, 1]; return its id."""
        return self._edit(word, lambda w, subject: w.reward(subject, reward, source))

    def set_task(self, word: str, task: str) -> str:
        """Name the task of a run, by a name (kept as a salted hash) or a label; return its id."""
        return self._edit(word, lambda w, subject: w.task(subject, task))

    def confirm(self, word: str) -> str:
        """Say that a run with several prompts is one attempt; return its id."""
        return self._edit(word, lambda w, subject: w.edit(subject, "multi_turn", False))

    def _edit(self, word: str, edit: Callable[[Writer, str], None]) -> str:
        with self.writing() as w:
            item = find(read_outline(w.connection), word)
            edit(w, item.subject)
            return item.run_id

    def group(self, words: Sequence[str], task: str | None = None) -> str:
        """Merge runs into one, e.g. the sessions of one attempt; return its id.

        Edits of each stay with it; later ones are edits of the merged run.
        """
        with self.writing() as w:
            items = read_outline(w.connection)
            wholes = {i.whole.subject: i.whole for i in (_unsplit(items, word) for word in words)}
            read = [member for whole in wholes.values() for member in whole.members]
            if len(read) < 2:
                raise BadInput("give at least two different runs to group.")
            taken = set(read_groups(w.connection).values())
            new_id = min(wholes) + "+"
            while new_id in taken:
                new_id += "+"
            group_id = next((subject for subject in wholes if subject in taken), new_id)
            ids = [member.run_id for member in read]
            delete_rows(w.connection, GROUPS.c.run_id, ids)
            w.connection.execute(
                sa.insert(GROUPS), [{"run_id": run_id, "group_id": group_id} for run_id in ids]
            )
            if task is not None:
                w.task(group_id, task)
            merged = find(sweep(w.connection), ids[0])
            load_one(w.connection, merged)
            return merged.run_id

    def split(
        self, word: str, *, at_turn: int | None = None, at_time: datetime | None = None
    ) -> tuple[str, str]:
        """Make two runs of one and return their ids.

        The second begins with turn ``at_turn`` (the first turn is 0), or with the first turn that
        starts at ``at_time`` or later.
        """
        with self.writing() as w:
            run = load_one(w.connection, find(read_outline(w.connection), word))
            if at_turn is None and at_time is not None:
                at_turn = turn_at(run, at_time)
            if at_turn is None:
                raise BadInput("give a turn or a time to split at.")
            earlier, later = split(run, at_turn)
            w.connection.execute(sa.insert(SPLITS).values(run_id=run.run_id, at_turn=at_turn))
            return earlier.run_id, later.run_id

    def ungroup(self, word: str) -> list[str]:
        """Undo the last split of a run, else its merging; return the ids of what comes of it.

        What was said about the parts, or about the merged run, is forgotten.
        """
        with self.writing() as w:
            item = find(read_outline(w.connection), word)
            if item.split_from:
                delete_rows(w.connection, SPLITS.c.run_id, [item.split_from[-1]])
            elif len(item.whole.members) > 1:
                delete_rows(w.connection, GROUPS.c.group_id, [item.whole.subject])
            else:
                raise BadInput(f"run {item.run_id} is neither merged nor split.")
            read = set(item.whole.members)
            return [i.run_id for i in sweep(w.connection) if read & set(i.whole.members)]

    def forget(
        self,
        words: Sequence[str] = (),
        *,
        session: str | None = None,
        format: str | None = None,
        client: str | None = None,
        before: datetime | None = None,
    ) -> int:
        """Delete what was read for these runs and all that was said about them.

        With several conditions a run is deleted that meets all of them. A merged run goes with all
        its sessions. Labels that no run needs any more go too.

        Returns:
            How many runs that had been read were deleted.
        """
        conditions: list[sa.ColumnElement[bool]] = []
        if session is not None:
            conditions.append(RUNS.c.session_id == session)
        if format is not None:
            conditions.append(RUNS.c.format == format)
        if client is not None:
            conditions.append(RUNS.c.client == client)
        if before is not None:
            conditions.append(RUNS.c.started_us < _microseconds(before))
        if not words and not conditions:
            raise BadInput("say which runs to forget.")
        with self.writing() as w:
            ids = set(w.connection.scalars(sa.select(RUNS.c.run_id).where(*conditions)))
            if words:
                items = read_outline(w.connection)
                ids &= {i for word in words for i in _unsplit(items, word).whole.read_ids}
            delete_rows(w.connection, RUNS.c.run_id, ids)
            sweep(w.connection)
            sweep_labels(w.connection)
            return len(ids)

    # --- fits -------------------------------------------------------------------------------------

    def put_fit(self, key: str, body: bytes) -> None:
        """Keep fitted curves under a digest of what they came from; the last 8 are kept."""
        with self.writing() as w:
            newest = w.connection.scalar(sa.select(sa.func.max(FITS.c.seq))) or 0
            delete_rows(w.connection, FITS.c.key, [key])
            w.connection.execute(sa.insert(FITS).values(key=key, seq=newest + 1, body=body))
            kept = sa.select(FITS.c.seq).order_by(FITS.c.seq.desc()).limit(_N_FITS)
            oldest = min(w.connection.scalars(kept))
            w.connection.execute(sa.delete(FITS).where(FITS.c.seq < oldest))

    def fit(self, key: str) -> bytes | None:
        """The fitted curves under this key, None if there are none."""
        with self._database.reading() as connection:
            return connection.scalar(sa.select(FITS.c.body).where(FITS.c.key == key))


class Writer:
    """What can be done within one transaction, see ``RunStore.writing``."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection

    def put(self, run: Run, request_keys: Collection[str] = ()) -> Change:
        """Store a run as it was read, with the requests counted in it.

        Edits are not touched. A key that another run owns already stays with that run.
        """
        body = encode_run(run)
        row = {
            "session_id": run.source.session_id,
            "format": run.source.format,
            "client": run.client,
            "reader_version": run.source.reader_version,
            "content_digest": hashlib.sha256(body).hexdigest(),
            "started_us": None if run.started_at is None else _microseconds(run.started_at),
            "body": body,
        }
        this = RUNS.c.run_id == run.run_id
        stored = self.connection.scalar(sa.select(RUNS.c.content_digest).where(this))
        if stored == row["content_digest"]:
            return "unchanged"
        if stored is None:
            self.connection.execute(sa.insert(RUNS).values(run_id=run.run_id, **row))
        else:
            self.connection.execute(sa.update(RUNS).where(this).values(**row))
            delete_rows(self.connection, REQUEST_KEYS.c.run_id, [run.run_id])
        hashes = {_key_hash(key) for key in request_keys}
        if new := hashes - self._owners(hashes).keys():
            self.connection.execute(
                sa.insert(REQUEST_KEYS),
                [{"key_hash": key_hash, "run_id": run.run_id} for key_hash in sorted(new)],
            )
        return "added" if stored is None else "updated"

    def owned_elsewhere(self, keys: Collection[str], run_id: str) -> set[str]:
        """Those of these request keys that are counted in another run already."""
        hashes = {_key_hash(key): key for key in keys}
        owners = self._owners(hashes)
        return {hashes[key_hash] for key_hash, owner in owners.items() if owner != run_id}

    def _owners(self, hashes: Collection[int]) -> dict[int, str]:
        owners: dict[int, str] = {}
        for batch in batches(hashes):
            query = sa.select(REQUEST_KEYS.c.key_hash, REQUEST_KEYS.c.run_id)
            found = self.connection.execute(query.where(REQUEST_KEYS.c.key_hash.in_(batch)))
            owners.update(found.all())
        return owners

    def reward(self, run_id: str, reward: float, source: RewardSource) -> None:
        """Grade a run in [0, 1]; the last grade counts."""
        if not 0.0 <= reward <= 1.0:
            raise BadInput(f"a reward lies in [0, 1], not {reward!r}.")
        self.edit(run_id, "reward", [reward, source])

    def task(self, run_id: str, task: str) -> None:
        """Name the task of a run, by a name or by the label of one."""
        known = sa.select(LABELS.c.label).where(LABELS.c.label == task)
        is_label = self.connection.scalar(known) is not None
        self.edit(run_id, "task_id", task if is_label else self.salted("task", task))

    def edit(self, run_id: str, field: str, value: Any) -> None:
        """Lay a JSON value over a field of a run (or group, or part)."""
        this = (EDITS.c.subject == run_id, EDITS.c.field == field)
        self.connection.execute(sa.delete(EDITS).where(*this))
        row = {"subject": run_id, "field": field, "value": json.dumps(value)}
        self.connection.execute(sa.insert(EDITS).values(**row))

    def salted(self, kind: str, text: str) -> str:
        """A label that tells nothing of ``text`` outside this store: ``task-1a2b3c4d5e6f``."""
        text = text.encode("utf-8", "backslashreplace").decode()
        salt = self.connection.scalar(sa.select(META.c.value).where(META.c.key == "salt"))
        if salt is None:
            raise StoreError("the store has lost its salt.", remedy="Ingest into a new store.")
        digest = hmac.digest(bytes.fromhex(salt), f"{kind}\0{text}".encode(), "sha256")
        label = f"{kind}-{digest.hex()[:12]}"
        known = sa.select(LABELS.c.label).where(LABELS.c.label == label)
        if self.connection.scalar(known) is None:
            self.connection.execute(sa.insert(LABELS).values(label=label, kind=kind, text=text))
        return label


def _key_hash(key: str) -> int:
    digest = hashlib.blake2b(key.encode("utf-8", "backslashreplace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _microseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise BadInput(f"{moment.isoformat()} needs a time zone.")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _unsplit(items: Sequence[Item], word: str) -> Item:
    item = find(items, word)
    if item.split_from:
        raise BadInput(
            f"run {item.run_id} is part of {item.whole.run_id}, which was split.",
            remedy=f"First: `allocate runs ungroup {item.run_id}`.",
        )
    return item
