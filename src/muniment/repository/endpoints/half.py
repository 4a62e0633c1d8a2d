"""What every endpoint of the repository has at hand, and how each begins: who calls which repository."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from muniment.db import Instant
from muniment.repository import repositories
from muniment.repository.acls import Principals
from muniment.repository.callers import Callers
from muniment.repository.content import ContentStore
from muniment.repository.fulltext.index import Index
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import (
    DirectoryUnavailable,
    NotOfferedYet,
    NotPermitted,
    NotSignedIn,
    UnknownRepository,
)
from muniment.repository.repositories import Repository
from muniment.web.answers import Said, Table
from muniment.web.decisions import Desk

BELOW = "/repositories/{repository}"
"""What the path template of every address below a repository begins with, after the prefix."""

SEARCHES = 2
"""Searches of one process under way at one time; more would only wait for each other, and let nobody else work."""

POSITION = "Muniment-Position"
"""Header of a write's answer: the position of its change in the change log."""


@dataclass(frozen=True)
class RepositoryHalf:
    """The repository as its endpoints see it; ``indexes`` opens a repository's index, ``clock`` says the time.

    ``searching`` is held by each search while it works off the loop. ``repositories`` are those asked for so far, by
    name: what a row of theirs says never changes. ``links`` says until when those that this process named are kept.
    """

    desk: Desk
    options: RepositoryOptions
    callers: Callers
    store: ContentStore
    indexes: Callable[[Repository], Index]
    clock: Callable[[], Instant]
    searching: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SEARCHES))
    repositories: dict[str, Repository] = field(default_factory=dict)
    links: dict[str, Instant] = field(default_factory=dict)


Answering: TypeAlias = Callable[[Request, RepositoryHalf], Awaitable[Response]]


class Address(NamedTuple):
    """One address: its path template after the prefix, its methods, and how it says no."""

    path: str
    methods: Mapping[str, Answering]
    table: Table


ENTERING: Table = {
    NotSignedIn: Said(401, "E_NOT_SIGNED_IN"),
    DirectoryUnavailable: Said(503, "E_DIRECTORY_UNAVAILABLE"),
    UnknownRepository: Said(404, "E_UNKNOWN_REPOSITORY"),
    NotPermitted: Said(403, "E_NOT_PERMITTED"),
    NotOfferedYet: Said(400, "E_NOT_OFFERED_YET"),
}
"""How every address below a repository says what ``entered`` refuses, and what is not to be had."""


async def entered(request: Request, half: RepositoryHalf) -> tuple[Repository, Principals]:
    """Say which repository the address names and who calls: step 1 of every request below a repository.

    Raises UnknownRepository, NotSignedIn, DirectoryUnavailable.
    """
    name = request.path_params["repository"]
    repository = half.repositories.get(name)
    if repository is None:
        repository = half.repositories[name] = await half.desk.read(repositories.named, name)
    return repository, await half.callers.identify(request.headers.get("authorization"), repository)


def base_address(request: Request, half: RepositoryHalf) -> str:
    """Spell what every address of the repository half begins with, without a slash at the end."""
    base = str(request.scope.get("muniment.base") or request.base_url).rstrip("/")
    return f"{base}/{half.options.names.prefix}"


def address(request: Request, half: RepositoryHalf, repository: Repository) -> str:
    """Spell the repository's own address."""
    return f"{base_address(request, half)}/repositories/{quote(repository.name, safe='')}"
