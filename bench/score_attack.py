"""What does an ordinary user learn of hidden documents from a shared index of ours, the bare engine or OpenSearch?

The attack is that of Wang and others, "Side-Channel Attacks on Shared Search Indexes" (IEEE Symposium on Security and
Privacy 2017). The attacker puts a document of their own into the shared index for each word of a list, searches for the
word, and compares what comes back. Where the weight of a word counts everybody's documents, a word that stands in
hidden ones scores less.

``python -m bench.score_attack`` prints how many bits each channel tells. In OpenSearch a filter narrows the attacker's
searches to their own documents, as its users do.
"""

import math
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import tantivy

from bench.peers import Missing, opensearch
from muniment.repository.search.aql.conditions import BoundQuery
from muniment.repository.search.aql.spelling.facets import BoundFacet
from muniment.repository.search.aql.tree import Either, Fulltext, Term, Wild
from muniment.repository.search.index.contract import Search, Snapshot, Visible
from muniment.repository.search.index.document import Document
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.tantivy import fields
from muniment.repository.search.index.tantivy.engine import TantivyIndex, TantivyWriter
from muniment.repository.store.change_log.changes import Position

WORDS = 64
"""How many words the attacker asks about, each of which stands in hidden documents or does not."""

CHANNELS = ("scores", "order", "totals", "facets", "excerpts", "suggestions")

EVERYBODY, OWN = 1, 2
"""The ACL of the hidden documents, and that of the attacker's own."""

ATTACKER = Visible(browse_acls=frozenset({OWN}), read_acls=frozenset({OWN}))

_SUBJECT = BoundFacet("subject", "subject", "string", "string", "FREQUENCY", 5)

Observed = Mapping[str, Sequence[Hashable]]
"""What the attacker saw for each word, by channel."""


class SharedIndex(NamedTuple):
    """The documents of an index that the attacker shares, and the secret: which words hidden documents hold."""

    secret: list[bool]
    hidden: list[Document]
    own: list[Document]


def shared_index(seed: int) -> SharedIndex:
    """Make 200 hidden documents with half of the words, and one document of the attacker for each word."""
    chance = random.Random(seed)
    secret = [chance.random() < 0.5 for _ in range(WORDS)]
    words = [word(number) for number, is_hidden in enumerate(secret) if is_hidden]
    hidden = [
        _document(1000 + number, f"{' '.join(chance.choices(words, k=7))} and of it", EVERYBODY, chance.choice(words))
        for number in range(200)
    ]
    own = [_document(number, f"{word(number)} {'own ' * 9}", OWN, "own") for number in range(WORDS)]
    return SharedIndex(secret, hidden, own)


def word(number: int) -> str:
    """Return a word of the attacker's list."""
    return f"w{number}q"


def bits(observed: Sequence[Hashable], secret: Sequence[bool]) -> float:
    """Return how many bits of the secret the observations tell: their mutual information, for all words together."""
    both, alone, hidden = Counter(zip(observed, secret, strict=True)), Counter(observed), Counter(secret)
    count = len(secret)
    return sum(
        number * math.log2(number * count / (alone[value] * hidden[is_hidden]))
        for (value, is_hidden), number in both.items()
    )


def write(folder: Path, shared: SharedIndex) -> None:
    """Make the built-in index of these documents."""
    writer = TantivyWriter(folder)
    writer.apply([*shared.hidden, *shared.own], (), Position(0, 1))
    writer.close()


def attack_ours(snapshot: Snapshot, own: Sequence[Document]) -> Observed:
    """Search an index of ours as the attacker. It counts only what its caller may see."""
    observed = dict[str, list[Hashable]]()
    for number in range(WORDS):
        condition = Fulltext(Either((Term(word(number)), Term("own"))))
        answer = snapshot.search(Search(BoundQuery((), condition), ATTACKER, 0, 5, total=True, facets=(_SUBJECT,)))
        if answer.hits[0].object_id != own[number].key:
            raise AssertionError("the attacker's own document is the best hit")
        beginning = Search(BoundQuery((), Fulltext(Wild(f"{word(number)[:2]}*"))), ATTACKER, 0, 100)
        alike = [each.key for each in own if word(number)[:2] in each.text]
        completions = snapshot.completions(Search(BoundQuery(), ATTACKER, 0, 1), word(number)[:-1], 50)
        seen: Mapping[str, Hashable] = {
            "scores": tuple(f"{hit.score:.4f}" for hit in answer.hits),
            "order": [hit.object_id for hit in snapshot.search(beginning).hits].index(own[number].key)
            - alike.index(own[number].key),
            "totals": answer.total,
            "facets": answer.facets,
            "excerpts": tuple(hit.excerpt.replace(word(number), "w") for hit in answer.hits[:1]),
            "suggestions": (
                tuple((each.word == word(number), each.hits) for each in completions if each.word == word(number)),
                word(number) in [each.word for each in snapshot.corrections(ATTACKER, f"{word(number)}x")],
            ),
        }
        for channel, value in seen.items():
            observed.setdefault(channel, []).append(value)
    return observed


def attack_engine(folder: Path) -> Observed:
    """Search as the attacker with the engine's own scores."""
    index = tantivy.Index.open(str(folder))
    searcher, schema = index.searcher(), fields.SCHEMA
    observed: list[Hashable] = []
    for number in range(WORDS):
        own = tantivy.Query.const_score_query(tantivy.Query.term_query(schema, layout.ACL, str(OWN), "basic"), 0.0)
        sought = tantivy.Query.term_query(schema, layout.ANYWHERE.words, word(number), "freq")
        both = tantivy.Query.boolean_query([(tantivy.Occur.Must, own), (tantivy.Occur.Must, sought)])
        observed.append(tuple(f"{score:.4f}" for score, _ in searcher.search(both, 5).hits))
    return {"scores": observed}


def attack_opensearch(base: str, shared: SharedIndex) -> Observed:
    """Search OpenSearch as the attacker. A filter lets only the attacker's own documents through."""
    with httpx.Client(base_url=base, timeout=60) as http:
        kinds = {"text": {"type": "text"}, "acl": {"type": "keyword"}, "subject": {"type": "keyword"}}
        settings = {"number_of_shards": 1, "number_of_replicas": 0}
        http.put("/shared", json={"settings": settings, "mappings": {"properties": kinds}}).raise_for_status()
        lines: list[object] = []
        for each in (*shared.hidden, *shared.own):
            lines += [{"index": {"_id": each.key}}, _source(each)]
        body = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        headers = {"Content-Type": "application/x-ndjson"}
        http.post("/shared/_bulk?refresh=true", content=body, headers=headers).raise_for_status()
        observed = dict[str, list[Hashable]]()
        for number in range(WORDS):
            answer = http.post("/shared/_search", json=_opensearch_query(word(number))).raise_for_status().json()
            for channel, value in _opensearch_seen(answer, word(number)).items():
                observed.setdefault(channel, []).append(value)
    return observed


def main() -> int:
    """Print the bits that each channel tells, of ours, of the bare engine and of OpenSearch."""
    shared = shared_index(0)
    with tempfile.TemporaryDirectory(prefix="muniment-attack-") as scratch:
        folder = Path(scratch) / "index"
        write(folder, shared)
        sides = {
            "ours": attack_ours(TantivyIndex(folder).snapshot(), shared.own),
            "the engine's own scores": attack_engine(folder),
        }
        try:
            with opensearch.serving(Path(scratch)) as node:
                sides["OpenSearch, filtered"] = attack_opensearch(node.base, shared)
        except Missing as error:
            print(f"Skipped: OpenSearch. {error}", file=sys.stderr)
    print(f"Bits of {bits(shared.secret, shared.secret):.0f} that an attacker learns of {WORDS} words:\n")
    print(f"| Channel | {' | '.join(sides)} |")
    print(f"|---|{'---|' * len(sides)}")
    for channel in CHANNELS:
        cells = [f"{bits(side[channel], shared.secret):.1f}" if channel in side else "" for side in sides.values()]
        print(f"| {channel} | {' | '.join(cells)} |")
    return 0


def _document(number: int, text: str, acl: int, subject: str) -> Document:
    values = {"subject": (subject,), "title": ("a title",)}
    return Document(f"{number:016x}", number, 5, "document", acl, "nobody", {**values}, text)


def _source(document: Document) -> dict[str, object]:
    return {"text": document.text, "acl": str(document.acl), "subject": document.values["subject"][0]}


def _opensearch_query(sought: str) -> dict[str, object]:
    return {
        "size": 5,
        "track_total_hits": True,
        "query": {"bool": {"must": {"match": {"text": sought}}, "filter": {"term": {"acl": str(OWN)}}}},
        "aggs": {"subject": {"terms": {"field": "subject"}}},
        "highlight": {"fields": {"text": {}}},
        "suggest": {
            "like": {
                "text": f"{sought}x",
                "term": {"field": "text", "suggest_mode": "always", "min_word_length": 2, "size": 20},
            }
        },
    }


def _opensearch_seen(answer: Mapping[str, Any], sought: str) -> Mapping[str, Hashable]:
    hits = answer["hits"]["hits"]
    options = [option for entry in answer["suggest"]["like"] for option in entry["options"] if option["text"] == sought]
    return {
        "scores": tuple(f"{hit['_score']:.4f}" for hit in hits),
        "totals": answer["hits"]["total"]["value"],
        "facets": tuple((one["key"], one["doc_count"]) for one in answer["aggregations"]["subject"]["buckets"]),
        "excerpts": tuple(str(hit.get("highlight")).replace(sought, "w") for hit in hits),
        "suggestions": tuple(
            (option["text"] == sought, option["freq"] > 1) for option in options if option["text"] == sought
        ),
    }


if __name__ == "__main__":
    sys.exit(main())
