"""Which indexes of a cluster are ours, and which are swept?"""

from pathlib import Path

import msgspec
import pytest

from muniment.ground.clock import SECOND
from muniment.repository.index_options import OpenSearchOptions
from muniment.repository.refusals import IndexUnavailable
from muniment.repository.search.index.opensearch import fields, generations
from muniment.repository.search.index.opensearch.generation import About
from muniment.repository.search.index.opensearch.generations import OpenSearchEngine
from muniment.repository.store.repositories import Repository
from tests.unit.repository.search.index.opensearch.scripted import Answer, Scripted

NOW = 1_000_000 * SECOND
JUST_NOW, LONG_AGO = NOW - 600 * SECOND, NOW - 7200 * SECOND
REPOSITORY = Repository(7, "demo", "00000000-0000-4000-8000-000000000000", "", NOW)


def held(name: str, made: int, *, owner: str = "us", format_: int = fields.FORMAT, **times: int) -> dict[str, Answer]:
    about = About(owner, int(name.split("-")[1]), format_, "English")
    created = {"creation_date": str(made * 1000 // SECOND)}
    return {
        f"GET /{name}/_mapping": (200, {name: {"mappings": {"_meta": msgspec.to_builtins(about)}}}),
        f"GET /{name}/_settings/index.creation_date": (200, {name: {"settings": {"index": created}}}),
        **{f"GET /{name}/_doc/{each}": (200, {"_source": {"at": at}}) for each, at in times.items()},
    }


def engine(
    monkeypatch: pytest.MonkeyPatch, folder: Path, answers: dict[str, Answer]
) -> tuple[OpenSearchEngine, Scripted]:
    names: dict[str, object] = {key.split("/")[1]: {} for key in answers if key.endswith("/_mapping")}
    listed = {"GET /muniment-*/_alias": (200, names), "GET /muniment-7-*/_alias": (200, names)}
    cluster = Scripted({**listed, **answers})
    monkeypatch.setattr(generations, "Cluster", lambda _: cluster)
    return OpenSearchEngine(folder, OpenSearchOptions(), lambda: "us", lambda: NOW), cluster


def deleted(cluster: Scripted) -> list[str]:
    return [key.removeprefix("DELETE /") for key, _ in cluster.asked if key.startswith("DELETE")]


def test_the_sweep_takes_what_nobody_can_be_reading_or_making(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answers = {
        **held("muniment-7-1", LONG_AGO, position=LONG_AGO, former=LONG_AGO),
        **held("muniment-7-2", LONG_AGO, position=LONG_AGO, former=JUST_NOW),
        **held("muniment-7-3", LONG_AGO, position=JUST_NOW),
        **held("muniment-7-4", LONG_AGO),
        **held("muniment-7-5", JUST_NOW),
        **held("muniment-7-6", LONG_AGO, format_=fields.FORMAT - 1, position=LONG_AGO),
        **held("muniment-7-7", LONG_AGO, owner="somebody else", position=LONG_AGO),
        **held("muniment-7-8", LONG_AGO, position=LONG_AGO),
    }
    current: dict[str, Answer] = {"GET /_alias/muniment-7": (200, {"muniment-7-8": {}})}
    swept, cluster = engine(monkeypatch, tmp_path, answers | current)
    for name in ("muniment-7-1", "muniment-7-4", "muniment-7-6"):
        cluster.answers[f"DELETE /{name}"] = (200, {})
    hits = {"_shards": {"total": 1, "successful": 1, "failed": 0}, "hits": {"hits": []}}
    cluster.answers["POST /muniment-7-8/_search"] = (200, hits)
    swept.sweep(NOW)
    assert deleted(cluster) == ["muniment-7-1", "muniment-7-4", "muniment-7-6"]


def test_an_index_that_cannot_be_deleted_now_holds_up_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As while the cluster makes a snapshot of it."""
    answers = {**held("muniment-7-1", LONG_AGO), **held("muniment-7-2", LONG_AGO)}
    swept, cluster = engine(monkeypatch, tmp_path, answers)
    busy = {"error": {"type": "snapshot_in_progress_exception"}}
    cluster.answers |= {"DELETE /muniment-7-1": (400, busy), "DELETE /muniment-7-2": (200, {})}
    swept.sweep(NOW)
    assert deleted(cluster) == ["muniment-7-1", "muniment-7-2"]


def test_a_generation_that_ceases_to_be_current_says_when(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    noted = f"PUT /muniment-7-1.w/_doc/{fields.FORMER}"
    answers: dict[str, Answer] = {
        **held("muniment-7-1", LONG_AGO),
        "GET /_alias/muniment-7": (200, {"muniment-7-1": {}}),
        noted: (200, {}),
        "POST /_aliases": (200, {}),
    }
    made, cluster = engine(monkeypatch, tmp_path, answers)
    made.index(REPOSITORY).switch("2")
    assert [key for key, _ in cluster.asked][-2:] == [noted, "POST /_aliases"]
    assert (noted, msgspec.json.encode({"at": NOW})) in cluster.asked


def test_an_alias_of_another_installation_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answers: dict[str, Answer] = {
        **held("muniment-7-1", LONG_AGO, owner="somebody else"),
        "GET /_alias/muniment-7": (200, {"muniment-7-1": {}}),
        "POST /_aliases": (200, {}),
    }
    made, cluster = engine(monkeypatch, tmp_path, answers)
    with pytest.raises(IndexUnavailable, match="belongs to another"):
        made.index(REPOSITORY).switch("2")
    assert not cluster.count("POST /_aliases")


def test_only_what_is_gone_or_foreign_is_passed_over_when_a_repository_goes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers: dict[str, Answer] = {
        **held("muniment-7-1", LONG_AGO, owner="somebody else"),
        **held("muniment-7-2", LONG_AGO, format_=fields.FORMAT - 1),
        **held("muniment-7-3", LONG_AGO),
        "DELETE /muniment-7-2": (200, {}),
    }
    made, cluster = engine(monkeypatch, tmp_path, answers)
    made.index(REPOSITORY).remove()
    assert deleted(cluster) == ["muniment-7-2", "muniment-7-3"]
    cluster.answers["GET /muniment-7-2/_mapping"] = (503, {})
    with pytest.raises(IndexUnavailable, match="answers 503"):
        made.index(REPOSITORY).remove()
