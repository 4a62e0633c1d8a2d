"""A judged set is read whole, or the mistake in it is named with its file and line."""

from pathlib import Path

import pytest

from bench.quality.judged import BadSet, Document, read, read_all

DOCUMENTS = '{"id": "d1", "title": "Herons", "author": "Ana", "text": "About herons."}\n{"id": "d2", "text": ""}\n'
QUERIES = '{"id": "q1", "text": "herons"}\n{"id": "q2", "text": "owls"}\n'
JUDGEMENTS = "q1\td1\t3\nq1\td2\t0\nq2\td2\t-1\n"


def written(folder: Path, documents: str = DOCUMENTS, queries: str = QUERIES, judgements: str = JUDGEMENTS) -> Path:
    folder.mkdir()
    (folder / "docs.jsonl").write_text(documents, "utf-8")
    (folder / "queries.jsonl").write_text(queries, "utf-8")
    (folder / "qrels.tsv").write_text(judgements, "utf-8")
    return folder


def test_a_set_is_read_and_a_query_without_a_relevant_document_is_counted_apart(tmp_path: Path) -> None:
    found = read(written(tmp_path / "birds"))
    assert found.name == "birds"
    assert found.documents == [Document("d1", "About herons.", "Herons", "Ana"), Document("d2", "")]
    assert [query.id for query in found.queries] == ["q1"]
    assert (found.relevance, found.unjudged) == ({"q1": {"d1": 3}}, 1)


@pytest.mark.parametrize(
    ("changed", "place", "why"),
    [
        ({"documents": DOCUMENTS + "{"}, "docs.jsonl:3", "Input data was truncated"),
        ({"documents": DOCUMENTS + "\n"}, "docs.jsonl:3", "Input data was truncated"),
        ({"documents": DOCUMENTS + '{"id": "d3"}'}, "docs.jsonl:3", "missing required field `text`"),
        ({"documents": DOCUMENTS + '{"id": 3, "text": ""}'}, "docs.jsonl:3", "Expected `str`, got `int`"),
        ({"documents": DOCUMENTS + '{"id": " ", "text": ""}'}, "docs.jsonl:3", "`$.id`"),
        ({"documents": DOCUMENTS * 2}, "docs.jsonl:3", "the id 'd1' occurred before"),
        ({"queries": '{"id": "q1", "text": ""}'}, "queries.jsonl:1", "`$.text`"),
        ({"judgements": JUDGEMENTS + "q1 d1 1\n"}, "qrels.tsv:4", "between tabs"),
        ({"judgements": "q9\td1\t1\n"}, "qrels.tsv:1", "queries.jsonl has no query 'q9'"),
        ({"judgements": "q1\td9\t1\n"}, "qrels.tsv:1", "docs.jsonl has no document 'd9'"),
        ({"judgements": "q1\td1\t1\nq1\td1\t2\n"}, "qrels.tsv:2", "was judged for the query 'q1' before"),
        ({"judgements": "q1\td1\thigh\n"}, "qrels.tsv:1", "'high' is no whole number"),
        ({"judgements": "q1\td1\t0\n"}, "qrels.tsv", "no document is relevant for any query"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_line(
    tmp_path: Path, changed: dict[str, str], place: str, why: str
) -> None:
    folder = written(tmp_path / "set", **changed)
    with pytest.raises(BadSet) as refusal:
        read(folder)
    assert str(refusal.value).startswith(f"{folder / place}:")
    assert why in str(refusal.value)


def test_a_file_that_is_missing_or_not_in_utf_8_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path / "set")
    (folder / "docs.jsonl").write_bytes(DOCUMENTS.encode() + b'{"id": "d3", "text": "\xe9"}\n')
    with pytest.raises(BadSet, match=r"docs\.jsonl:3: this is not in UTF-8"):
        read(folder)
    (folder / "queries.jsonl").unlink()
    (folder / "docs.jsonl").write_text(DOCUMENTS, "utf-8")
    with pytest.raises(BadSet, match=r"queries\.jsonl: No such file"):
        read(folder)


def test_every_folder_with_documents_is_a_set_and_none_at_all_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(BadSet, match="holds no judged set"):
        read_all(tmp_path)
    with pytest.raises(BadSet, match="is no folder"):
        read_all(tmp_path / "absent")
    for name in ("b", "a"):
        written(tmp_path / name)
    (tmp_path / "notes").mkdir()
    assert [one.name for one in read_all(tmp_path)] == ["a", "b"]


def test_a_part_of_a_set_keeps_what_is_relevant_for_its_queries(tmp_path: Path) -> None:
    documents = "".join(f'{{"id": "{number}", "text": "t"}}\n' for number in range(9))
    whole = read(written(tmp_path / "set", documents, judgements="q1\t8\t1\nq2\t7\t1\n"))
    part = whole.part(queries=1, documents=2)
    assert [query.id for query in part.queries] == ["q1"]
    assert [document.id for document in part.documents] == ["0", "1", "8"]
    assert part.relevance == {"q1": {"8": 1}}
