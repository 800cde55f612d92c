"""The schema's history: alembic runs ``env.py``, which runs what is missing of ``versions``."""
