"""What can an ordinary user learn of hidden documents from scores, order, totals, facets and excerpts? Nothing.

The attack is that of Wang and others, "Side-Channel Attacks on Shared Search Indexes" (IEEE Symposium on Security and
Privacy 2017): the attacker puts a document of their own into the shared index for each word of a list, searches for the
word, and compares what comes back. Where the weight of a word counts everybody's documents, a word that stands in
hidden ones scores less.
"""

import math
import random
from collections import Counter
from collections.abc import Hashable, Sequence
from pathlib import Path

import pytest
import tantivy

from muniment.repository.aql.conditions import BoundQuery
from muniment.repository.aql.facets import BoundFacet
from muniment.repository.aql.tree import Either, Fulltext, Term, Wild
from muniment.repository.change_log.changes import Position
from muniment.repository.index.contract import Search, Visible
from muniment.repository.index.document import Document
from muniment.repository.index.tantivy import fields
from muniment.repository.index.tantivy.engine import TantivyIndex, TantivyWriter

WORDS = 64
EVERYBODY, OWN = 1, 2
ATTACKER = Visible(browse_acls=frozenset({OWN}), read_acls=frozenset({OWN}))
SUBJECT = BoundFacet("subject", "subject", "string", "string", "FREQUENCY", 5)


def word(number: int) -> str:
    return f"w{number}q"


def bits(observed: Sequence[Hashable], secret: Sequence[bool]) -> float:
    """Return how many bits of the secret the observations tell: their mutual information, for all words together."""
    both, alone, hidden = Counter(zip(observed, secret, strict=True)), Counter(observed), Counter(secret)
    count = len(secret)
    return sum(
        number * math.log2(number * count / (alone[value] * hidden[is_hidden]))
        for (value, is_hidden), number in both.items()
    )


@pytest.mark.parametrize("seed", range(3))
def test_scores_order_totals_facets_and_excerpts_tell_nothing_of_hidden_documents(tmp_path: Path, seed: int) -> None:
    """failures B1, failures B3."""
    chance = random.Random(seed)
    secret = [chance.random() < 0.5 for _ in range(WORDS)]
    words = [word(number) for number, is_hidden in enumerate(secret) if is_hidden]
    hidden = [
        document(1000 + number, f"{' '.join(chance.choices(words, k=7))} and of it", EVERYBODY, chance.choice(words))
        for number in range(200)
    ]
    own = [document(number, f"{word(number)} {'own ' * 9}", OWN, "own") for number in range(WORDS)]
    folder = tmp_path / "index"
    writer = TantivyWriter(folder)
    writer.apply([*hidden, *own], (), Position(0, 1))
    snapshot, observed = TantivyIndex(folder).snapshot(), dict[str, list[Hashable]]()
    for number in range(WORDS):
        condition = Fulltext(Either((Term(word(number)), Term("own"))))
        search = Search(BoundQuery((), condition), ATTACKER, 0, 5, total=True, facets=(SUBJECT,))
        answer = snapshot.search(search)
        assert answer.hits[0].object_id == own[number].key
        scores = tuple(f"{hit.score:.4f}" for hit in answer.hits)
        observed.setdefault("scores", []).append(scores)
        observed.setdefault("totals", []).append(answer.total)
        observed.setdefault("facets", []).append(answer.facets)
        excerpts = tuple(hit.excerpt.replace(word(number), "w") for hit in answer.hits[:1])
        observed.setdefault("excerpts", []).append(excerpts)
        beginning = Search(BoundQuery((), Fulltext(Wild(f"{word(number)[:2]}*"))), ATTACKER, 0, 100)
        observed.setdefault("order", []).append(
            [hit.object_id for hit in snapshot.search(beginning).hits].index(own[number].key)
            - [each.key for each in own if word(number)[:2] in each.text].index(own[number].key)
        )
    told = {channel: bits(values, secret) for channel, values in observed.items()}
    plain = bits(_plain_scores(folder), secret)
    entropy = bits(secret, secret)
    print(f"bits of {entropy:.0f}: the engine's own scores {plain:.0f}, ours {told}")
    assert plain > 0.95 * entropy, "the attack succeeds where scores count everybody's documents"
    assert told == dict.fromkeys(("scores", "totals", "facets", "excerpts", "order"), 0.0)
    writer.close()


def document(number: int, text: str, acl: int, subject: str) -> Document:
    values = {"subject": (subject,), "title": ("a title",)}
    return Document(f"{number:016x}", number, 5, "document", acl, "nobody", {**values}, text)


def _plain_scores(folder: Path) -> list[Hashable]:
    """Search as the attacker with the engine's own scores."""
    index = tantivy.Index.open(str(folder))
    searcher, schema = index.searcher(), fields.schema()
    observed: list[Hashable] = []
    for number in range(WORDS):
        own = tantivy.Query.const_score_query(tantivy.Query.term_query(schema, fields.ACL, str(OWN), "basic"), 0.0)
        sought = tantivy.Query.term_query(schema, fields.ANYWHERE.words, word(number), "freq")
        both = tantivy.Query.boolean_query([(tantivy.Occur.Must, own), (tantivy.Occur.Must, sought)])
        observed.append(tuple(f"{score:.4f}" for score, _ in searcher.search(both, 5).hits))
    return observed
