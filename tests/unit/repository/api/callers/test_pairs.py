"""A name and password that were right are remembered for a while: one grant each, and never past a pause."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from muniment.repository.api.callers import pairs as remembering
from muniment.repository.api.callers.credentials import Pair
from muniment.repository.api.callers.pairs import AccessToken, Pairs, PairSignIn
from muniment.repository.refusals import DirectoryUnavailable, NotSignedIn


class Directory:
    """A directory that knows one password of everybody, and counts. Nobody has a role at its ``closed`` resources."""

    def __init__(self, password: str = "right") -> None:
        self.password = password
        self.closed: set[str] = set()
        self.sign_ins = 0
        self.living: list[str] = []
        self.seconds = 3600.0
        self.open = asyncio.Event()
        self.open.set()
        self.unavailable = False

    async def sign_in(self, shown: PairSignIn) -> AccessToken:
        self.sign_ins += 1
        token = f"{shown.pair.account} {self.sign_ins}"
        await self.open.wait()
        if shown.pair.password != self.password or shown.resource_id in self.closed:
            raise NotSignedIn("no")
        self.living.append(token)
        return AccessToken(token, self.seconds)

    async def end(self, token: str) -> None:
        if self.unavailable:
            raise DirectoryUnavailable("no")
        self.living.remove(token)


class Scene:
    """Pairs at a directory, with a clock that stands still."""

    def __init__(self, **options: Any) -> None:
        self.now = 0.0
        self.directory = Directory()
        self.pairs = Pairs(self.directory.sign_in, self.directory.end, clock=lambda: self.now, **options)

    async def token(self, account: str = "marta@staff", password: str = "right", address: str = "192.0.2.1") -> str:
        return (await self.pairs.token(shown(account, password, address)))[0]

    async def settle(self) -> None:
        """Let the ends of grants happen that were begun."""
        while self.pairs._ending:
            await asyncio.gather(*self.pairs._ending)


def shown(
    account: str = "marta@staff", password: str = "right", address: str = "192.0.2.1", resource: str = "r"
) -> PairSignIn:
    return PairSignIn(Pair(account, password), resource, "demo", address)


def play(act: Callable[[Scene], Awaitable[None]], **options: Any) -> None:
    """Let something happen in a scene; nothing is left over."""

    async def run() -> None:
        scene = Scene(**options)
        await act(scene)
        await scene.pairs.close()
        assert not scene.pairs._memories
        assert not scene.pairs._of_account
        assert not scene.pairs._under_way
        assert scene.directory.unavailable or not scene.directory.living

    asyncio.run(run())


def test_a_right_pair_is_checked_once() -> None:
    async def act(scene: Scene) -> None:
        first = await scene.pairs.token(shown())
        assert first == ("marta@staff 1", True)
        for _ in range(1000):
            assert await scene.pairs.token(shown()) == ("marta@staff 1", False)
        assert await scene.token("MARTA@Staff") == first[0]
        assert scene.directory.sign_ins == 1

    play(act)


@pytest.mark.parametrize(
    "other", [shown("boris@staff"), shown(address="192.0.2.2"), shown(resource="other"), shown(password="right ")]
)
def test_another_account_address_resource_or_password_is_another_pair(other: PairSignIn) -> None:
    async def act(scene: Scene) -> None:
        await scene.token()
        scene.directory.password = other.pair.password
        assert await scene.pairs.token(other) == (f"{other.pair.account} 2", True)
        assert len(scene.pairs) == 2

    play(act)


def test_a_wrong_password_is_asked_about_each_time_and_never_remembered() -> None:
    async def act(scene: Scene) -> None:
        for _ in range(3):
            with pytest.raises(NotSignedIn):
                await scene.token(password="wrong")
        assert scene.directory.sign_ins == 3
        assert len(scene.pairs) == 0

    play(act)


def test_a_wrong_password_makes_the_right_one_from_there_be_asked_about_again() -> None:
    """So nobody guesses past a pause: a pair that was forgotten is decided by the directory."""

    async def act(scene: Scene) -> None:
        await scene.token()
        await scene.token(address="192.0.2.2")
        await scene.token("boris@staff")
        with pytest.raises(NotSignedIn):
            await scene.token("Marta@Staff", "wrong")
        await scene.settle()
        assert scene.directory.living == ["marta@staff 2", "boris@staff 3"]
        assert await scene.token() == "marta@staff 5"

    play(act)


def test_a_right_password_stays_remembered_when_another_resource_refuses_it() -> None:
    async def act(scene: Scene) -> None:
        token = await scene.token()
        scene.directory.closed.add("other")
        with pytest.raises(NotSignedIn):
            await scene.pairs.token(shown("Marta@Staff", resource="other"))
        await scene.settle()
        assert scene.directory.living == [token]
        assert scene.pairs.knows(shown())
        with pytest.raises(NotSignedIn):
            await scene.pairs.token(shown(password="wrong", resource="other"))
        await scene.settle()
        assert scene.directory.living == []
        assert not scene.pairs.knows(shown())

    play(act)


def test_many_at_one_time_share_a_sign_in() -> None:
    async def act(scene: Scene) -> None:
        scene.directory.open.clear()
        asking = [asyncio.create_task(scene.pairs.token(shown())) for _ in range(50)]
        wrong = [asyncio.create_task(scene.token(password="wrong", address="192.0.2.9")) for _ in range(50)]
        await asyncio.sleep(0)
        asking[0].cancel()
        await asyncio.sleep(0)
        scene.directory.open.set()
        answers = await asyncio.gather(*asking[1:])
        assert set(answers) == {("marta@staff 1", False)}
        refusals = await asyncio.gather(*wrong, return_exceptions=True)
        assert {type(refusal) for refusal in refusals} == {NotSignedIn}
        assert scene.directory.sign_ins == 2

    play(act)


def test_a_pair_is_forgotten_when_it_is_not_used() -> None:
    async def act(scene: Scene) -> None:
        await scene.token()
        scene.now = 30
        await scene.token("boris@staff")
        scene.now = 59
        await scene.token()
        scene.now = 89
        scene.pairs.forget_unused()
        await scene.settle()
        assert scene.directory.living == ["marta@staff 1", "boris@staff 2"]
        scene.now = 90
        scene.pairs.forget_unused()
        await scene.settle()
        assert scene.directory.living == ["marta@staff 1"]
        scene.now = 119
        assert await scene.token() == "marta@staff 3"

    play(act, seconds=60)


def test_an_access_token_that_has_expired_means_a_new_sign_in() -> None:
    async def act(scene: Scene) -> None:
        scene.directory.seconds = 10
        await scene.token()
        scene.now = 9
        assert await scene.token() == "marta@staff 1"
        scene.now = 10
        assert await scene.token() == "marta@staff 2"
        await scene.settle()
        assert scene.directory.living == ["marta@staff 2"]

    play(act)


def test_a_new_pair_takes_the_place_of_the_least_recently_used() -> None:
    async def act(scene: Scene) -> None:
        for name in ("a@x", "b@x", "c@x"):
            await scene.token(name)
        await scene.token("a@x")
        await scene.token("d@x")
        await scene.settle()
        assert scene.directory.living == ["a@x 1", "c@x 3", "d@x 4"]

    play(act, most=3)


def test_one_account_pushes_out_no_others() -> None:
    async def act(scene: Scene) -> None:
        await scene.token("boris@staff")
        for number in range(50):
            await scene.token(address=f"192.0.2.{number}")
        await scene.settle()
        assert len(scene.directory.living) == 1 + remembering._OF_ACCOUNT
        assert "boris@staff 1" in scene.directory.living

    play(act, most=20)


def test_a_pair_is_forgotten_with_the_token_that_was_refused_and_no_other() -> None:
    async def act(scene: Scene) -> None:
        token = await scene.token()
        scene.pairs.forget(shown(), "an earlier token")
        assert await scene.token() == token
        scene.pairs.forget(shown(), token)
        scene.pairs.forget(shown(), token)
        assert await scene.token() == "marta@staff 2"

    play(act)


def test_a_grant_that_cannot_be_ended_disturbs_nobody() -> None:
    async def act(scene: Scene) -> None:
        token = await scene.token()
        scene.directory.unavailable = True
        scene.pairs.forget(shown(), token)
        await scene.settle()
        assert await scene.token() == "marta@staff 2"

    play(act)


def test_a_sign_in_under_way_when_the_server_stops_leaves_no_grant() -> None:
    async def act(scene: Scene) -> None:
        scene.directory.open.clear()
        asking = asyncio.create_task(scene.pairs.token(shown()))
        await asyncio.sleep(0)
        closing = asyncio.create_task(scene.pairs.close())
        await asyncio.sleep(0)
        scene.directory.open.set()
        await asyncio.gather(asking, closing)
        await scene.settle()
        assert scene.directory.sign_ins == 1
        assert not scene.directory.living

    play(act)


def test_neither_name_nor_password_is_kept() -> None:
    async def act(scene: Scene) -> None:
        await scene.token("marta@staff", "right")
        ((digest, known),) = scene.pairs._memories.items()
        kept = repr((digest, known.account, known.password, known.place, scene.pairs._of_account))
        assert "right" not in kept
        assert "marta" not in kept
        assert len(digest) == 64
        other = Pairs(scene.directory.sign_in, scene.directory.end)
        assert other._digest_of(shown()) != digest

    play(act)
