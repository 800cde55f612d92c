"""The first schema, and the salt of this store's labels."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make all tables."""
    runs = op.create_table(
        "runs",
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("format", sa.Text, nullable=False),
        sa.Column("client", sa.Text),
        sa.Column("reader_version", sa.Integer, nullable=False),
        sa.Column("content_digest", sa.Text, nullable=False),
        sa.Column("started_us", sa.BigInteger),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "request_keys",
        sa.Column("key_hash", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("run_id", sa.ForeignKey(runs.c.run_id, ondelete="CASCADE"), nullable=False),
        sa.Index("request_keys_of_run", "run_id"),
    )
    op.create_table(
        "edits",
        sa.Column("subject", sa.Text, primary_key=True),
        sa.Column("field", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "groups",
        sa.Column("run_id", sa.ForeignKey(runs.c.run_id, ondelete="CASCADE"), primary_key=True),
        sa.Column("group_id", sa.Text, nullable=False),
    )
    op.create_table(
        "splits",
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column("at_turn", sa.Integer, nullable=False),
    )
    op.create_table(
        "labels",
        sa.Column("label", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    meta = op.create_table(
        "meta",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "fits",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.bulk_insert(meta, [{"key": "salt", "value": secrets.token_hex(16)}])
