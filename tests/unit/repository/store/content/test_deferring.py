"""Within a common transaction, nothing is removed before it is settled (decision 0090)."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from muniment.database.connections import Database
from muniment.database.transactions import Transactions
from muniment.repository.store.content.deferring import DeferringStore
from muniment.repository.store.content.files import FileStore

pytestmark = pytest.mark.only("sqlite", "The store knows no database.")


def put(store: DeferringStore) -> str:
    return store.put([b"put"]).key


def put_all(store: DeferringStore) -> str:
    return store.put_all([b"put with others"])[0].key


def write(store: DeferringStore) -> str:
    writer = store.writer()
    writer.write(b"written")
    return writer.finish().key


@pytest.mark.parametrize("keep", [put, put_all, write])
@pytest.mark.parametrize("commits", [True, False])
def test_contents_follow_the_transaction(
    repository_db: Database, tmp_path: Path, keep: Callable[[DeferringStore], str], commits: bool
) -> None:
    behind = FileStore(tmp_path)
    store, transactions = DeferringStore(behind), Transactions(repository_db)
    former = store.put([b"former"])

    def exists(key: str) -> bool:
        return behind.verify(key, former.sha256) or any(key in str(file) for file in tmp_path.rglob("*"))

    async def ask() -> str:
        async with transactions.common("anna") as common:
            key = await transactions.off_loop(keep, store)
            assert await transactions.off_loop(store.remove, former.key)
            assert exists(former.key)
            assert exists(key)
            if commits:
                await common.commit()
        return key

    key = asyncio.run(ask())
    assert (exists(former.key), exists(key)) == (not commits, commits)
    assert store.remove(key)
    assert not exists(key)
