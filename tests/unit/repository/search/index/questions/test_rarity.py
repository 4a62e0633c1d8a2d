"""Which words and patterns are counted before a query is weighed?"""

from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.index.opensearch.queries import OpenSearchQueries
from muniment.repository.search.index.questions import layout
from muniment.repository.search.index.questions.rarity import Foresight


def test_only_patterns_that_are_ranked_are_counted() -> None:
    ranked, other = Pattern(("pum", Gap.RUN)), Pattern(("val", Gap.RUN))
    foresight, queries = Foresight([ranked]), OpenSearchQueries()
    for each in (ranked, other):
        unranked = queries.pattern(layout.ANYWHERE.words, each)
        assert foresight.by_forms(queries, layout.ANYWHERE.words, each, unranked) is unranked
    foresight.factor(layout.ANYWHERE.stems, ["pump"])
    assert list(foresight.sought) == [(True, ranked), (False, "pump")]
