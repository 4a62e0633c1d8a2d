"""Whoever has a hundred thousand grants and a million tokens is signed out at once; how long that takes is printed."""

import time

import pytest
import sqlalchemy as sa

from muniment.database.connections import Database, directory_tables
from muniment.directory.administration import decisions
from muniment.directory.oauth.sessions import SessionCount
from muniment.directory.refusals import DeadToken
from muniment.ground.clock import SECOND, Instant
from tests.office import Office

GRANTS, TOKENS = 100_000, 10


@pytest.mark.campaign
def test_a_million_tokens_end_in_one_commit(directory_db: Database, now: Instant) -> None:
    office = Office(directory_db, now)
    issued = office.issue(now)
    grants, tokens = (directory_tables.tables[name] for name in ("grants", "access_tokens"))
    rest = {"user_id": office.alice.id, "client_id": office.client.id, "resource_id": office.resource.id}
    rest |= {"refresh_expires": now + 3600 * SECOND, "created": now, "revoked": None}
    for first in range(0, GRANTS, 10_000):
        numbers = range(first + 1000, first + 11_000)
        with directory_db.begin() as cx:
            cx.execute(grants.insert(), [{"id": n, "refresh_digest": n.to_bytes(32, "big"), **rest} for n in numbers])
            dates = {"issued": now, "expires": now + 600 * SECOND}
            rows = [
                {"digest": (n * TOKENS + k).to_bytes(32, "little"), "id": f"{n}-{k}", "grant_id": n, **dates}
                for n in numbers
                for k in range(TOKENS)
            ]
            cx.execute(tokens.insert(), rows)
    began = time.perf_counter()
    with directory_db.begin() as cx:
        assert decisions.set_disabled(cx, office.alice, True, now) == SessionCount(GRANTS + 1, 0)
    print(f"{directory_db.dialect}: {GRANTS} grants with {GRANTS * TOKENS} tokens: {time.perf_counter() - began:.2f} s")
    with pytest.raises(DeadToken):
        office.info(issued.access_token, now)
    with directory_db.read() as cx:
        assert (
            cx.execute(sa.select(sa.func.count()).select_from(grants).where(grants.c.revoked.is_(None))).scalar() == 0
        )
