"""What a writer makes of the answers of a cluster."""

from collections.abc import Mapping

import msgspec
import pytest

from muniment.repository.index_options import OpenSearchOptions
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.opensearch import fields
from muniment.repository.search.index.opensearch import writer as writing
from muniment.repository.search.index.opensearch.client import ClusterAway, ClusterBusy, Refused
from muniment.repository.search.index.opensearch.generation import About, Site
from muniment.repository.search.index.opensearch.writer import OpenSearchWriter
from muniment.repository.store.change_log.changes import Position
from tests.unit.repository.search.index.opensearch.scripted import Answer, Scripted

ABOUT = About("us", 7, fields.FORMAT, "English")
INDEX = "muniment-7-1"
POSITION = f"/{INDEX}.w/_doc/{fields.POSITION}"
HELD = {"_source": {"position": str(Position(0, 1)), "term": 4}, "_seq_no": 1, "_primary_term": 1}
WHOLE = {"_shards": {"total": 2, "successful": 2, "failed": 0}}

STARTED, AWAY = {"state": "STARTED"}, {"state": "UNASSIGNED"}


def writer(answers: Mapping[str, Answer]) -> tuple[OpenSearchWriter, Scripted]:
    cluster = Scripted(
        {
            f"GET /{INDEX}/_mapping": (200, {INDEX: {"mappings": {"_meta": msgspec.to_builtins(ABOUT)}}}),
            f"GET {POSITION}": (200, HELD),
            f"PUT {POSITION}": (200, {"_seq_no": 2, "_primary_term": 1}),
            f"POST /{INDEX}.w/_bulk": (200, {"items": [{"index": {"status": 200}}]}),
            f"POST /{INDEX}.w/_refresh": (200, WHOLE),
            **answers,
        }
    )
    return OpenSearchWriter(Site(cluster, OpenSearchOptions(), 7, "us", lambda: 0), "1", ABOUT), cluster


def kept(text: str = "pump") -> Document:
    return Document("0900000100000001", 1, 2, "document", 1, "marta@staff", {}, text)


@pytest.mark.parametrize(
    ("refreshed", "copies", "moves"),
    [
        ((4, 4, 0), [], True),
        ((4, 2, 0), [[STARTED], [STARTED]], True),
        ((4, 2, 0), [[STARTED, AWAY], [STARTED]], True),
        ((4, 2, 0), [[STARTED, STARTED], []], False),
        ((4, 2, 0), [[STARTED, STARTED], [AWAY]], False),
        ((4, 2, 0), [[STARTED, STARTED], [STARTED]], False),
        ((4, 3, 1), [[STARTED, STARTED], [STARTED]], False),
    ],
)
def test_the_position_moves_when_every_copy_that_is_somewhere_was_refreshed(
    refreshed: tuple[int, int, int], copies: list[list[dict[str, str]]], moves: bool
) -> None:
    """A replica that no node holds, as on a cluster of one, is no reason to wait."""
    made, _ = writer(
        {
            f"POST /{INDEX}.w/_refresh": (
                200,
                {"_shards": dict(zip(("total", "successful", "failed"), refreshed, strict=True))},
            ),
            f"GET /{INDEX}.w/_search_shards": (200, {"shards": copies}),
        }
    )
    if moves:
        made.apply([kept()], (), Position(0, 2))
    else:
        with pytest.raises(ClusterAway, match="A part of the index"):
            made.apply([kept()], (), Position(0, 2))
    assert made.position == Position(0, 2 if moves else 1)


NO_ROOM = {"items": [{"index": {"status": 429, "error": {"type": "rejected_execution_exception"}}}]}


@pytest.mark.parametrize("answer", [(429, {}), (200, NO_ROOM)])
@pytest.mark.parametrize(("largest_part", "error"), [(10, Refused), (2_000_000, ClusterBusy)])
def test_only_a_large_document_for_which_there_is_never_room_is_to_blame(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, largest_part: int, error: type[Exception]
) -> None:
    monkeypatch.setattr(writing, "_PATIENCE", -1.0)
    monkeypatch.setattr(writing, "_BULK_BYTES", largest_part)
    made, _ = writer({f"POST /{INDEX}.w/_bulk": answer})
    with pytest.raises(error):
        made.apply([kept()], (), Position(0, 2))


def test_no_document_larger_than_any_request_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_LARGEST_BYTES", 1000)
    made, cluster = writer({})
    with pytest.raises(Refused, match="at most"):
        made.apply([kept("pump " * 200)], (), Position(0, 2))
    assert not cluster.count(f"POST /{INDEX}.w/_bulk")


def test_a_document_is_refused_without_its_text() -> None:
    error = {"type": "mapper_parsing_exception", "reason": "failed on 'the secret text'"}
    made, _ = writer({f"POST /{INDEX}.w/_bulk": (200, {"items": [{"index": {"status": 400, "error": error}}]})})
    with pytest.raises(Refused, match=r"^OpenSearch refuses a document: mapper_parsing_exception\.$"):
        made.apply([kept()], (), Position(0, 2))
