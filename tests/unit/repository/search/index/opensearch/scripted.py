"""A cluster that answers what a test tells it to, without a connection."""

from collections.abc import Mapping
from typing import Any

import msgspec

from muniment.repository.index_options import OpenSearchOptions
from muniment.repository.search.index.opensearch.client import RELEASE, Cluster

Answer = tuple[int, object]


class Scripted(Cluster):
    """``answers`` are of "METHOD path", each one's the same again and again; ``asked`` has bodies.

    A request without an answer gets 404.
    """

    def __init__(self, answers: Mapping[str, Answer], options: OpenSearchOptions | None = None) -> None:
        super().__init__(options or OpenSearchOptions(address="http://cluster"))
        about = {"version": {"distribution": "opensearch", "number": f"{RELEASE}.0.0"}}
        self.answers = {"GET /": (200, about), **answers}
        self.asked: list[tuple[str, Any]] = []
        self.signed_in: list[str] = []

    def _exchange(
        self,
        method: str,
        path: str,
        content: bytes | None,
        parameters: Mapping[str, object],
        headers: Mapping[str, str],
    ) -> tuple[int, bytes]:
        key = f"{method} {path}"
        self.asked.append((key, content))
        self.signed_in.append(headers.get("Authorization", ""))
        status, answer = self.answers.get(key, (404, {}))
        return status, msgspec.json.encode(answer)

    def count(self, key: str) -> int:
        return sum(asked == key for asked, _ in self.asked)
