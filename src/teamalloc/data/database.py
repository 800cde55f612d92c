"""Where the runs are kept: from a URL to an open SQLAlchemy engine; foreign errors become ours.

Everything that differs between SQLite and PostgreSQL is in this file. A store is named in messages
without user, password or options.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from teamalloc.errors import BadInput, StoreError

STORE_VARIABLE = "TEAMALLOC_STORE"
"environment variable with the URL or file of the store"

BUSY_S = 5.0
"how long to wait for another process that is writing, in seconds"

_ELSEWHERE = f"Name another with --store URL or {STORE_VARIABLE}."
_POSTGRES_LOCK = 0x7EA3A110C  # any number, the same in every teamalloc


class Database:
    """An engine and the name of its database; ``reading`` and ``writing`` are transactions."""

    def __init__(self, url: str | None = None, *, create: bool = True) -> None:
        place = _place(url)
        self.name = _without_credentials(place)
        "for messages"
        self._secrets = [f'"{place.username}"', place.password]
        with self.errors():
            if place.get_backend_name() == "sqlite":
                _prepare_file(place.database, create=create)
            self.engine = _engine(place)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """All reads inside see the same state."""
        with self.errors(), self.engine.connect() as connection:
            if self.engine.dialect.name == "postgresql":
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """One transaction, one writer at a time; rolled back on any exception, Ctrl-C included."""
        with self.errors(), self.engine.connect() as connection:
            connection.execution_options(teamalloc_writes=True)
            with connection.begin():
                if self.engine.dialect.name == "postgresql":
                    connection.execute(sa.text(f"SET LOCAL lock_timeout = '{BUSY_S:.0f}s'"))
                    connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_POSTGRES_LOCK})"))
                yield connection

    def write_ahead(self) -> None:
        """Let SQLite keep a write-ahead log, so that readers and the writer need not wait.

        The file remembers it. Where it cannot be had now (someone else is just opening the new
        file) the store works without.
        """
        if self.engine.dialect.name == "sqlite":
            connection = self.engine.raw_connection()
            with suppress(sqlite3.OperationalError):
                connection.cursor().execute("PRAGMA journal_mode = WAL")
            connection.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Map what SQLAlchemy and the drivers raise to ``StoreError``."""
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise self._translated(error) from error
        except sa.exc.SQLAlchemyError as error:
            raise StoreError(f"the store {self.name} failed: {error}.") from error

    def _translated(self, error: sa.exc.DBAPIError) -> StoreError:
        code = getattr(error.orig, "sqlite_errorname", None)
        code = code or getattr(error.orig, "sqlstate", None) or ""
        for start, (what, remedy) in _KINDS.items():
            if code.startswith(start):
                return StoreError(f"the store {self.name} {what}.", remedy=remedy)
        reason = " ".join(str(error.orig).split())
        for secret in filter(None, self._secrets):
            reason = reason.replace(secret, "***")
        return StoreError(f"the store {self.name} failed: {reason}.", remedy=_ELSEWHERE)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def is_there(url: str | None) -> bool:
    """Whether the file of a SQLite store exists; any other database is taken to be there."""
    place = _place(url)
    if place.get_backend_name() != "sqlite" or not place.database:
        return True
    return Path(place.database).exists()


def _place(url: str | None) -> sa.URL:
    """The URL to open; a bare path is a SQLite file, None the default."""
    text = url or os.environ.get(STORE_VARIABLE) or str(_default_file())
    if "://" not in text:
        try:
            return sa.URL.create("sqlite", database=str(Path(text).expanduser()))
        except RuntimeError:
            raise StoreError(f"no home folder for the store {text}.", remedy=_ELSEWHERE) from None
    try:
        place = sa.make_url(text.replace("postgres://", "postgresql://", 1))
        if "@" in f"{place.host}{place.database}" and place.get_backend_name() != "sqlite":
            raise ValueError("a part of the password was taken for the host or database")
    except (sa.exc.ArgumentError, ValueError):
        # The text may hold a password: neither it nor the error is shown.
        raise BadInput(
            "the URL of the store cannot be read.",
            remedy="Write postgresql://user:password@host/database, with %40 for @ and %2F for / "
            "in the password.",
        ) from None
    drivers = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
    if place.get_backend_name() not in drivers:
        raise BadInput(
            f"runs cannot be kept in {place.get_backend_name()!r}.",
            remedy="Use a SQLite file or PostgreSQL.",
        )
    return place.set(drivername=drivers[place.get_backend_name()])


def _default_file() -> Path:
    import platformdirs

    folder = Path(platformdirs.user_data_dir("teamalloc", appauthor=False))
    home = Path("~")
    with suppress(RuntimeError):  # stays "~", as does the folder, unless XDG_DATA_HOME is set
        home = home.expanduser()
    if not folder.is_absolute() or (home in folder.parents and not home.is_dir()):
        raise StoreError("there is no home folder to keep runs in.", remedy=_ELSEWHERE)
    return folder / "runs.sqlite"


def _without_credentials(place: sa.URL) -> str:
    if place.get_backend_name() == "sqlite":
        return place.database or ":memory:"
    port = f":{place.port}" if place.port else ""
    return f"{place.get_backend_name()}://{place.host or ''}{port}/{place.database or ''}"


def _prepare_file(database: str | None, *, create: bool) -> None:
    """Make the file, for this user only from its first moment, and the folder it lies in."""
    if not database or database == ":memory:":
        return
    path = Path(database)
    if path.exists():
        return
    if not create:
        raise StoreError(f"there is no store {path}.", remedy="`allocate ingest` makes one.")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(
            f"cannot make the store {path}: {error.strerror}.", remedy=_ELSEWHERE
        ) from error


def _engine(place: sa.URL) -> sa.Engine:
    if place.get_backend_name() == "sqlite":
        engine = sa.create_engine(place, connect_args={"timeout": BUSY_S})
        sa.event.listen(engine, "connect", _on_sqlite_connect)
        sa.event.listen(engine, "begin", _on_sqlite_begin)
        return engine
    try:
        return sa.create_engine(place, connect_args={"connect_timeout": 10})
    except ModuleNotFoundError as error:
        raise StoreError(
            f"PostgreSQL needs {error.name}.", remedy="Run: pip install 'teamalloc[postgres]'."
        ) from error


def _on_sqlite_connect(driver: Any, _record: Any) -> None:
    driver.isolation_level = None  # the driver would begin late; we begin ourselves, below
    driver.execute("PRAGMA foreign_keys = ON")
    driver.execute("PRAGMA synchronous = NORMAL")


def _on_sqlite_begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("teamalloc_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


# By the beginning of SQLite's error name, or of PostgreSQL's SQLSTATE: what is wrong, what to do.
_LOCKED = ("is locked by another process", "Wait until that one ends, then try again.")
_READ_ONLY = ("is read-only", f"Change the rights of the file and its folder. {_ELSEWHERE}")
_FULL = ("has no room left: the disk is full", f"Make room. {_ELSEWHERE}")
_KINDS: dict[str, tuple[str, str]] = {
    "SQLITE_NOTADB": ("is not a database", f"Is this the right file? {_ELSEWHERE}"),
    "SQLITE_CORRUPT": (
        "is damaged",
        "Move the file away and ingest the logs again (the sqlite3 shell's .recover may save "
        "rewards set by hand).",
    ),
    "SQLITE_BUSY": _LOCKED,
    "SQLITE_LOCKED": _LOCKED,
    "SQLITE_READONLY": _READ_ONLY,
    "SQLITE_PERM": _READ_ONLY,
    "SQLITE_CANTOPEN": ("cannot be opened", f"Check its folder and rights. {_ELSEWHERE}"),
    "SQLITE_FULL": _FULL,
    "SQLITE_IOERR": ("cannot be read or written: disk error", _ELSEWHERE),
    "55P03": _LOCKED,
    "25006": _READ_ONLY,
    "42501": ("may not be used by this user", "Ask for the rights."),
    "53100": _FULL,
    "28": ("refuses this user or password", "Check the URL of the store."),
    "3D": ("does not exist", "Make the database first."),
}
