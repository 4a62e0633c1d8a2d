"""Which transaction goes first, if two would each decide without seeing what the other writes?"""

import hashlib

import sqlalchemy as sa
from sqlalchemy.engine import Connection


def take(cx: Connection, name: str) -> None:
    """Hold the lock until the transaction ends; wait if another holds it. SQLite, with its one writer, needs none."""
    if cx.dialect.name == "postgresql":
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
        cx.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))
