"""The caps of everything that our server's processes remember, read from the code and the settings in force.

A memory whose cap has moved breaks the list, and one that is missing here breaks ``tests/bench/test_memories.py``.
"""

import dataclasses
import importlib
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any, NamedTuple

from bench.ours import Data
from muniment.database import connections, fair_queue
from muniment.directory.context import Directory
from muniment.directory.sign_in import line
from muniment.repository.api.callers import tokeninfo
from muniment.repository.bulk.exports import destination
from muniment.repository.search.analysis import analysis, compounds, excerpts
from muniment.repository.search.answering import cache
from muniment.repository.search.index.questions import answering, rarity
from muniment.repository.search.index.tantivy import engine
from muniment.repository.search.meaning import nearness
from muniment.repository.store.objects.types import object_types
from muniment.repository.store.permissions import acl_look_up, name_keys

SOURCES = Path(connections.__file__).parents[1]

REMEMBERING = ("OrderedDict(", "_REMEMBERED =", "= Cache(", "lambda: Cache(")
"""What a module with a memory of its own has in its text. ``lru_cache`` is found by itself."""

MODULES = (
    "directory/context.py",
    "directory/sign_in/line.py",
    "ground/caches.py",
    "repository/api/callers/pairs.py",
    "repository/api/callers/tokeninfo.py",
    "repository/bulk/exports/destination.py",
    "repository/search/analysis/analysis.py",
    "repository/search/analysis/compounds.py",
    "repository/search/analysis/excerpts.py",
    "repository/search/index/questions/rarity.py",
    "repository/search/index/questions/answering.py",
    "repository/search/index/tantivy/searching.py",
    "repository/search/meaning/nearness.py",
    "repository/store/objects/types/object_types.py",
    "repository/store/permissions/acl_look_up.py",
    "repository/store/permissions/name_keys.py",
    "repository/search/answering/cache.py",
    "database/fair_queue.py",
)
"""The modules with memories of their own that ``caps`` lists, and the one that defines what a memory is."""

_OF_THE_DIRECTORY = {
    "memory": "who may act for whom",
    "answers": "answers to tokeninfo and introspection",
    "clients": "public clients",
    "attempts": "what clients with a secret asked for",
}


class Cap(NamedTuple):
    """A memory and the most that one process keeps in it."""

    memory: str
    most: str


def caps(data: Data) -> list[Cap]:
    """List the memories of one process with their caps, as the data folder's settings have it."""
    settings = data.opened().settings
    return [
        *(Cap(name, f"{_limit(field) / 2**20:g} MiB") for field, name in _OF_THE_DIRECTORY.items()),
        Cap("who calls the directory by REST", f"{_limit('administration'):,}"),
        Cap("callers whose seconds are counted", f"{fair_queue._MOST_REMEMBERED:,} a kind of question"),
        Cap("documents of tokeninfo, read", f"{tokeninfo._REMEMBERED_BYTES / 1e6:g} MB"),
        Cap("search documents, read", f"{cache._BYTES / 1e6:g} MB"),
        Cap("search documents, bound to types", f"{cache._BYTES / 1e6:g} MB"),
        Cap("types of repositories", f"{object_types._CATALOGUES:,}"),
        Cap("ACLs that callers were granted", f"{cache._ACLS:,}"),
        Cap("queries as the engine takes them", f"{answering._PLAN_BYTES / 1e6:g} MB an index"),
        Cap("ACLs in queries of the engine", f"{answering._PERMITTED_ACLS:,} an index"),
        Cap("callers whose words were counted", f"{answering._CALLERS // answering._CALLER:,} an index"),
        Cap("words of such a caller", f"{rarity._WORDS:,}"),
        Cap("words of patterns of such a caller", f"{rarity._WORDS:,}"),
        Cap("queries as weighed for such a caller", f"{rarity._QUERY_BYTES / 1e3:g} kB"),
        Cap("completions for such a caller", f"{rarity._COMPLETIONS:,}"),
        Cap("words of a text whose compounds are known", f"{compounds._REMEMBERED:,} a language"),
        Cap("words that match a word of a query", f"{excerpts._REMEMBERED:,} a word"),
        Cap("questions as vectors, by meaning", f"{nearness._QUESTIONS:,}"),
        Cap("vectors of passages, by meaning", f"{settings.repository.meaning_vectors:,}"),
        Cap("names and passwords of HTTP Basic", f"{settings.repository.basic_pairs:,}"),
        Cap("names of ACLs, each with its caller's accessors", f"{acl_look_up._REMEMBERED:,} names and accessors"),
        Cap("contents that an import has brought in", f"{destination._REMEMBERED:,}"),
        Cap("keys of identities", f"{name_keys._REMEMBERED:,}"),
        Cap("addresses and accounts with wrong passwords", f"{line._REMEMBERED:,}"),
        Cap("waiting password checks", f"{settings.directory.hash_queue:,}"),
        Cap("folded characters", f"{analysis._REMEMBERED:,}"),
        Cap("pages of SQLite", _pages(data)),
        Cap("the index agent's writer", f"{engine._HEAP / 1e6:g} MB"),
        *(Cap(name, f"{most:,}") for name, most in _cached()),
    ]


def _limit(field: str) -> int:
    """Return the cap of a memory of the directory: bytes, or entries where each weighs one."""
    made: Any = {each.name: each.default_factory for each in dataclasses.fields(Directory)}[field]
    limit: int = made()._room
    return limit


def cached_modules() -> list[str]:
    """Name the modules that use ``lru_cache``."""
    return sorted(
        "muniment." + ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        for path in SOURCES.rglob("*.py")
        if "@lru_cache" in path.read_text()
    )


def _cached() -> Iterator[tuple[str, int]]:
    for name in cached_modules():
        module: Any = importlib.import_module(name)
        for function in vars(module).values():
            if isinstance(function, _lru_cache_wrapper) and function.__module__ == name:
                most = function.cache_parameters()["maxsize"]
                if most is not None:
                    yield f"{name.removeprefix('muniment.')}.{function.__name__}", most


def _pages(data: Data) -> str:
    """Ask a connection for its cap, in KiB; each half has a pool of connections."""
    database = connections.Database(data.opened().installation.database_url("repository"))
    try:
        if database.dialect != "sqlite":
            return "none"
        with database.read() as cx:
            kibibytes = -cx.exec_driver_sql("PRAGMA cache_size").scalar_one()
        return f"{kibibytes / 1000:g} MB a connection"
    finally:
        database.close()
