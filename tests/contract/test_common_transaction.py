"""A process that is killed within a common transaction keeps nothing of it, and holds nobody up (decision 0090)."""

import subprocess
import sys

import sqlalchemy as sa

from muniment.database.connections import Database

SCRIPT = """
import asyncio, sys, time
import sqlalchemy as sa
from muniment.database.connections import Database
from muniment.database.transactions import Transactions

async def run():
    transactions = Transactions(Database(sys.argv[1]))
    async with transactions.common("anna"):
        for number in (1, 2):
            await transactions.write(lambda cx: cx.execute(sa.text(f"INSERT INTO killed VALUES ({number})")))
        print("half-way", flush=True)
        time.sleep(60)

asyncio.run(run())
"""


def test_a_killed_process_keeps_nothing_of_a_common_transaction(repository_db: Database) -> None:
    with repository_db.begin() as cx:
        cx.execute(sa.text("CREATE TABLE killed (number INTEGER PRIMARY KEY)"))
    url = repository_db.engine.url.render_as_string(hide_password=False)
    with subprocess.Popen([sys.executable, "-c", SCRIPT, url], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half-way\n"
        process.kill()
    with repository_db.begin() as cx:
        assert cx.execute(sa.text("SELECT count(*) FROM killed")).scalar_one() == 0
        cx.execute(sa.text("INSERT INTO killed VALUES (1)"))
        cx.execute(sa.text("DROP TABLE killed"))
