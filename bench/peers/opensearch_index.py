"""Our documents in OpenSearch: its mapping, texts in bulk and one by one, and its search for what ours is asked."""

import json
from collections.abc import Sequence
from typing import Any

import httpx

from bench import ours
from bench.load import Request, WrongAnswers
from bench.peers.opensearch import OpenSearch

_JSON = ("Content-Type", "application/json")
_AT_A_TIME = 1000


PROPERTIES = ("subject", "title", "r_object_type")
"""The properties by which searches are counted and ordered."""


def make(peer: OpenSearch, index: str, *, properties: bool = False) -> None:
    """Make an index: one shard, no replica, a translog that is synced before an answer.

    With ``properties`` it also keeps ``PROPERTIES``, and unstemmed words.
    """
    keyword = {"type": "keyword"}
    more = {"fields": {"plain": {"type": "text", "analyzer": "standard"}}} if properties else {}
    mapping = {
        "settings": {
            "number_of_shards": 1,
            "number_of_replicas": 0,
            "translog.durability": "request",
        },
        "mappings": {
            "dynamic": "strict",
            "properties": {
                "body": {"type": "text", "analyzer": "english", "index_options": "offsets", **more},
                "acl": keyword,
                "type": keyword,
                "name": keyword,
                "size": {"type": "long"},
                **dict.fromkeys(PROPERTIES if properties else (), keyword),
            },
        },
    }
    httpx.put(f"{peer.base}/{index}", json=mapping, timeout=120).raise_for_status()


def bulk(peer: OpenSearch, index: str, texts: Sequence[str], *, properties: bool = False) -> None:
    """Make an index, index the texts by ``_bulk``, and wait until all of them are found."""
    make(peer, index, properties=properties)
    with httpx.Client(base_url=peer.base, timeout=120) as http:
        for start in range(0, len(texts), _AT_A_TIME):
            lines = []
            for number, text in enumerate(texts[start : start + _AT_A_TIME], start):
                lines += ['{"index":{}}', json.dumps(_document(number, text, properties=properties))]
            headers = {"Content-Type": "application/x-ndjson"}
            answer = http.post(f"/{index}/_bulk", content="\n".join(lines) + "\n", headers=headers)
            if answer.raise_for_status().json()["errors"]:
                raise WrongAnswers(f"OpenSearch refused some texts: {answer.text[:300]}")
        http.post(f"/{index}/_refresh").raise_for_status()
        count = http.get(f"/{index}/_count").raise_for_status().json()["count"]
        if count != len(texts):
            raise WrongAnswers(f"OpenSearch holds {count} of {len(texts)} texts")


def post(peer: OpenSearch, index: str, number: int, text: str) -> Request:
    """Prepare to index one text."""
    return Request("POST", f"{peer.base}/{index}/_doc", json.dumps(_document(number, text)), (_JSON,))


def search(peer: OpenSearch, clause: dict[str, Any], facets: Sequence[str] = (), sorts: Sequence[str] = ()) -> Request:
    """Prepare a search by the clause, with the filters, the total and the excerpts of ours, facets and order too."""
    document = {
        "size": 20,
        "track_total_hits": True,
        "_source": ["name", "size"],
        "query": {
            "bool": {
                "must": [clause],
                "filter": [
                    {"term": {"type": "document"}},
                    {"terms": {"acl": ours.READABLE}},
                    {"range": {"size": {"gte": ours.SIZES[0], "lte": ours.SIZES[1]}}},
                ],
            }
        },
        "highlight": {
            "require_field_match": False,
            "fields": {"body": {"number_of_fragments": 1, "fragment_size": 200, "no_match_size": 200}},
        },
        "aggs": {name: {"terms": {"field": name, "size": 10}} for name in facets},
        **({"sort": [{name: "desc"} for name in sorts]} if sorts else {}),
    }
    return Request("POST", f"{peer.base}/bench/_search", json.dumps(document), (_JSON,))


def total(request: Request) -> int:
    """Look into the answer to a search: as many hits as its total allows, an excerpt in each; give the total."""
    answer = httpx.post(request.address, content=request.body, headers=dict(request.headers), timeout=60)
    hits = answer.raise_for_status().json()["hits"]
    found = int(hits["total"]["value"])
    if len(hits["hits"]) != min(20, found) or not all("highlight" in one for one in hits["hits"]):
        raise WrongAnswers(f"OpenSearch: {found} hits, {len(hits['hits'])} given, or one without a highlight")
    return found


def _document(number: int, text: str, *, properties: bool = False) -> dict[str, object]:
    acl = number % ours.ACLS
    values = (f"subject-{acl % ours.SUBJECTS}", f"volume-{acl:02d}", "document")
    return {
        **(dict(zip(PROPERTIES, values, strict=True)) if properties else {}),
        "body": text,
        "acl": f"acl-{acl}",
        "type": "document",
        "name": f"passage-{number}.txt",
        "size": len(text.encode()),
    }
