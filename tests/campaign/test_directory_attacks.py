"""Attacks on the directory that take many tries: telling users by time, and filling the memory with sign-ins."""

import asyncio
import itertools
import ssl
import statistics
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from muniment.database.connections import Database
from muniment.directory.entries import editing
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import InvalidGrant
from muniment.directory.sign_in.passwords import PasswordGate, hash_password
from muniment.ground.clock import SECOND, Instant
from tests.campaign.house import LOGIN
from tests.e2e.processes import ServedHouse
from tests.office import PASSWORD, Office
from tests.scenes import Person
from tests.waiting import until_on_loop

TIMINGS = 500
"""Of each of two kinds of refusal, taken in turn."""


def distance(one: list[float], other: list[float]) -> float:
    """Kolmogorov and Smirnov's: the largest difference between the two samples' distributions."""
    ranked = sorted([(value, 1 / len(one)) for value in one] + [(value, -1 / len(other)) for value in other])
    reached = largest = 0.0
    for _, step in ranked:
        reached += step
        largest = max(largest, abs(reached))
    return largest


@pytest.mark.campaign
def test_time_does_not_tell_who_exists(directory_db: Database, tmp_path: Path, now: Instant) -> None:
    """failures A2: an unknown user takes what a wrong password takes, with the default settings.

    Both take the same statements, read a row and write one. Processor time is what the server adds to a difference that
    an attacker could see, and no other program disturbs it.
    """
    office = Office(directory_db, now, DirectoryOptions(lockout_failures=0))
    with directory_db.begin() as cx:
        editing.set_password_hash(cx, office.alice, hash_password(PASSWORD), now)
    gate = PasswordGate(tmp_path / "slots", slots=1, queue=10, memory_kib=19_456, passes=2)
    took: dict[str, list[float]] = {"alice@People": [], "nobody@People": []}
    for number in range(TIMINGS + 50):
        for username in sorted(took, reverse=number % 2 == 0):
            now += SECOND  # the row that a refusal writes is another one each time
            began = time.process_time()
            attempt = office.begin(now, username)
            outcome = office.finish(
                attempt,
                gate.check(attempt.basis.password_hash, "wrong", attempt.basis.asker(username), now).result(30),
                now,
            )
            spent = time.process_time() - began
            assert isinstance(outcome, InvalidGrant)
            if number >= 50:
                took[username].append(spent * 1000)
    gate.close()
    known, unknown = took.values()
    medians = statistics.median(known), statistics.median(unknown)
    print(
        f"{directory_db.dialect}: {2 * TIMINGS} refusals: median {medians[0]:.3f} ms known, "
        f"{medians[1]:.3f} ms unknown, distance {distance(known, unknown):.3f}"
    )
    assert abs(medians[0] - medians[1]) < 0.05 * min(medians)
    assert distance(known, unknown) < 0.25


@pytest.mark.campaign
def test_five_hundred_sign_ins_at_a_time_stay_under_a_set_memory(tmp_path: Path) -> None:
    """failures A26: each check takes 64 MiB; as many run as there are slots, the others wait or come again."""
    house = ServedHouse(tmp_path)
    memory, slots, queue = 64, 2, 20
    given = (f"hash_memory_kib={memory << 10}", f"hash_slots={slots}", f"hash_queue={queue}")
    arguments = [word for one in given for word in ("--set", f"directory.{one}")]
    with house.serve(*arguments) as server:
        worker = next(pid for pid, files in server.children().items() if any("directory.db" in file for file in files))
        before = _peak(worker)
        answers = asyncio.run(_sign_ins(server.base, house.installation.tls / "ca.pem", house.world.client_id, 500))
        grown = _peak(worker) - before
        print(f"{Counter(answer.status_code for answer in answers)}, {grown >> 20} MiB more at the peak")
        assert grown < (slots * memory + 100) << 20
        assert {answer.status_code for answer in answers} == {400, 503}
        assert sum(answer.status_code == 400 for answer in answers) >= slots + queue
        assert all("Retry-After" in answer.headers for answer in answers if answer.status_code == 503)
        with server.client() as http:
            assert http.get("/health/ready").status_code == 200


HONEST, ATTACKERS = 10, 100
TRIES = 10
"""How often an honest user comes again, each time after what Retry-After says."""


@pytest.mark.campaign
@pytest.mark.parametrize("where", ["from other addresses", "from the attackers' address"])
def test_honest_users_sign_in_beside_a_hundred_connections_of_wrong_passwords(tmp_path: Path, where: str) -> None:
    """failures C5, failures A3: at least nine of ten sign in; the seconds they take are printed beside the bound of 5.

    The callers' addresses are told by a trusted proxy, as behind one application server.
    """
    house = ServedHouse(tmp_path)
    people = [house.world.person() for _ in range(HONEST)]
    house.world.close()
    settings = ("--set", "web.trusted_proxies=127.0.0.1")
    with house.serve(*settings) as server:
        scene = _Flood(server.base, house.installation.tls / "ca.pem", house.world.client_id)
        signed_in, tries, answers = asyncio.run(scene.run(people, shared=where != "from other addresses"))
    print(
        f"{where}: {len(signed_in)} of {HONEST} signed in beside {ATTACKERS} connections, "
        f"median {statistics.median(signed_in):.1f} s, longest {max(signed_in):.1f} s (bound 5 s); "
        f"{tries} tries; {dict(answers)} wrong passwords meanwhile"
    )
    assert len(signed_in) >= 9
    assert set(answers) <= {400, 503}
    assert answers[400] > ATTACKERS, "the attack went on all the time"


class _Flood:
    """A hundred connections that guess without pause, and honest users who obey Retry-After."""

    def __init__(self, base: str, ca_file: Path, client_id: str) -> None:
        self._base, self._trust = base, ssl.create_default_context(cafile=str(ca_file))
        self._form = {"grant_type": "password", "client_id": client_id, "scope": "resource:Demo+Files"}
        self._answers: Counter[int] = Counter()
        self._over = asyncio.Event()
        self._tries = 0

    async def run(self, people: list[Person], *, shared: bool) -> tuple[list[float], int, Counter[int]]:
        """Say how many seconds each honest sign-in took, in how many tries, and what the attackers were answered."""
        async with self._client(ATTACKERS) as attackers, self._client(HONEST) as honest:
            attack = [asyncio.create_task(self._guess(attackers, number)) for number in range(ATTACKERS)]
            await until_on_loop(lambda: self._answers[400] >= ATTACKERS, "the line is not as full as it gets")
            places = ("203.0.113.9" if shared else f"192.0.2.{number}" for number in range(len(people)))
            signing_in = [self._sign_in(honest, *pair) for pair in zip(people, places, strict=True)]
            took = await asyncio.gather(*signing_in)
            self._over.set()
            await asyncio.gather(*attack)
        return [seconds for seconds in took if seconds is not None], self._tries, self._answers

    def _client(self, connections: int) -> httpx.AsyncClient:
        limits = httpx.Limits(max_connections=connections)
        return httpx.AsyncClient(base_url=self._base, verify=self._trust, timeout=120, limits=limits, trust_env=False)

    async def _guess(self, http: httpx.AsyncClient, number: int) -> None:
        names = itertools.count()
        while not self._over.is_set():
            form = self._form | {"username": f"name-{number}-{next(names) % 50}@demo", "password": "wrong"}
            answer = await http.post(LOGIN, data=form, headers={"X-Forwarded-For": "203.0.113.9"})
            self._answers[answer.status_code] += 1

    async def _sign_in(self, http: httpx.AsyncClient, person: Person, address: str) -> float | None:
        began = time.perf_counter()
        for _ in range(TRIES):
            self._tries += 1
            form = self._form | {"username": person.id, "password": person.password}
            answer = await http.post(LOGIN, data=form, headers={"X-Forwarded-For": address})
            if answer.status_code == 200:
                return time.perf_counter() - began
            assert answer.status_code == 503, answer.text
            await asyncio.sleep(int(answer.headers["Retry-After"]))
        return None


async def _sign_ins(base: str, ca_file: Path, client_id: str, count: int) -> list[httpx.Response]:
    trust = ssl.create_default_context(cafile=str(ca_file))
    form = {"grant_type": "password", "client_id": client_id, "password": "x", "scope": "resource:Demo+Files"}
    limits = httpx.Limits(max_connections=count)
    async with httpx.AsyncClient(base_url=base, verify=trust, timeout=120, limits=limits, trust_env=False) as http:
        asking = (http.post(LOGIN, data=form | {"username": f"nobody-{number}@demo"}) for number in range(count))
        return await asyncio.gather(*asking)


def _peak(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
