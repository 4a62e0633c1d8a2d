"""Has a user made as many relations, or comments, as one user may make?"""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.repository.refusals import QuotaExceeded
from muniment.repository.store import named_locks
from muniment.repository.store.permissions.principals import Principals


def check(cx: Connection, maker_key: sa.Column[str], principals: Principals, most: int, what: str) -> None:
    """Raise QuotaExceeded if the caller, no administrator, has made ``most`` rows; ``what`` names them.

    Until the commit, no other transaction that calls this can add a row of the caller.
    """
    if principals.administrator:
        return
    named_locks.take(cx, f"{what} {principals.key}")
    own = sa.select(sa.literal(1)).where(maker_key == principals.key).limit(most).subquery()
    if cx.execute(sa.select(sa.func.count()).select_from(own)).scalar_one() >= most:
        raise QuotaExceeded(f"You have made {most} {what}, and one user may not make more.")
