"""The tables of the store and their version.

A schema is only ever made or changed by the migrations beside this file, the first version
included; alembic is loaded for that alone. To change a table: change it here, add a migration that
does the same to a store that exists, and set ``SCHEMA`` to its name.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import sqlalchemy as sa

from teamalloc.data.database import STORE_VARIABLE, Database
from teamalloc.errors import StoreError

SCHEMA = "0001"
"name of the newest migration"

_tables = sa.MetaData()

RUNS = sa.Table(
    "runs",
    _tables,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("format", sa.Text, nullable=False),
    sa.Column("client", sa.Text),
    sa.Column("reader_version", sa.Integer, nullable=False),
    sa.Column("content_digest", sa.Text, nullable=False),
    sa.Column("started_us", sa.BigInteger),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"what was read, unchanged; started_us: microseconds since 1970 in UTC; body: JSON of the Run"

REQUEST_KEYS = sa.Table(
    "request_keys",
    _tables,
    sa.Column("key_hash", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("run_id", sa.ForeignKey(RUNS.c.run_id, ondelete="CASCADE"), nullable=False),
    sa.Index("request_keys_of_run", "run_id"),
)
"which run a request is counted in"

EDITS = sa.Table(
    "edits",
    _tables,
    sa.Column("subject", sa.Text, primary_key=True),
    sa.Column("field", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
"what was said about a run afterwards (JSON); subject: a run, a group or a part of a split run"

GROUPS = sa.Table(
    "groups",
    _tables,
    sa.Column("run_id", sa.ForeignKey(RUNS.c.run_id, ondelete="CASCADE"), primary_key=True),
    sa.Column("group_id", sa.Text, nullable=False),
)
"runs with the same group are one"

SPLITS = sa.Table(
    "splits",
    _tables,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("at_turn", sa.Integer, nullable=False),
)
"run_id: a run, a merged run or a part"

LABELS = sa.Table(
    "labels",
    _tables,
    sa.Column("label", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
)
"salted hash to the name it stands for; never exported unless asked for"

META = sa.Table(
    "meta",
    _tables,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
"salt (hex), written_by (version of teamalloc that made this schema)"

FITS = sa.Table(
    "fits",
    _tables,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
"fitted curves by digest of what they were fitted from; seq: order of fitting"

_ALEMBIC = sa.Table("alembic_version", sa.MetaData(), sa.Column("version_num", sa.Text))


def bring_up_to_date(database: Database) -> None:
    """Make the tables in a new database, upgrade those of an older one.

    Raises:
        StoreError: written by a newer teamalloc, or a database of something else.
    """
    with database.reading() as connection:
        found = _found(connection)
    if found == SCHEMA:
        return
    database.write_ahead()
    with database.writing() as connection:
        found = _found(connection)  # again: another process may have been quicker
        if found != SCHEMA:
            _migrate(connection, found, database.name)


def _found(connection: sa.Connection) -> str | None:
    """The schema's version; None = a new database, "" = tables that are not ours."""
    tables = sa.inspect(connection).get_table_names()
    if _ALEMBIC.name in tables:
        return connection.scalar(sa.select(_ALEMBIC.c.version_num)) or ""
    return "" if tables else None


def _migrate(connection: sa.Connection, found: str | None, name: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    folder = str(Path(__file__).with_name("migrations"))
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise _not_ours(connection, found, name)
    command.upgrade(config, "head")
    connection.execute(sa.delete(META).where(META.c.key == "written_by"))
    connection.execute(sa.insert(META).values(key="written_by", value=version("teamalloc")))


def _not_ours(connection: sa.Connection, found: str, name: str) -> StoreError:
    if not found or not sa.inspect(connection).has_table(META.name):
        return StoreError(
            f"the store {name} is a database of something else.",
            remedy=f"Name another with --store URL or {STORE_VARIABLE}.",
        )
    by = connection.scalar(sa.select(META.c.value).where(META.c.key == "written_by"))
    return StoreError(
        f"the store {name} was written by teamalloc {by or 'of a later version'} "
        f"(schema {found}); this is {version('teamalloc')}.",
        remedy=f"Run: pip install --upgrade 'teamalloc{f'>={by}' if by else ''}'.",
    )
