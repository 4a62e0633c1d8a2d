"""The engine alone, in a process of its own. It holds the texts that Muniment holds, and answers the same questions.

python -m bench.engine build TEXTS FOLDER PROPERTIES
python -m bench.engine search FOLDER KIND QUERIES THREADS SECONDS EXCERPTS
python -m bench.engine complete FOLDER BEGINNINGS SECONDS
"""

import heapq
import json
import operator
import resource
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tantivy

from bench.ours import ACLS, READABLE, SIZES, SUBJECTS
from bench.page import ROOT
from bench.search_kinds import KINDS

_HEAP = 128_000_000


@dataclass(frozen=True)
class Searched:
    """What a round saw: searches a second, their middle time and CPU time in ms, and each query's total."""

    rate: float
    p50: float
    cpu: float
    totals: list[int]


def build(texts: Path, folder: Path, *, properties: bool = False) -> tuple[float, float]:
    """Build an index of the texts (a JSON list) in a process of its own; say its seconds and its CPU seconds.

    With ``properties`` it also keeps the properties by which searches are counted and ordered, and unstemmed words.
    """
    folder.mkdir(parents=True)
    took, used = _said("build", texts, folder, int(properties))
    return float(took), float(used)


def search(folder: Path, kind: str, queries: Path, threads: int, seconds: float, *, excerpts: bool) -> Searched:
    """Ask the queries of a kind in turn, on so many threads of a fresh process, with or without excerpts."""
    (said,) = _said("search", folder, kind, queries, threads, seconds, int(excerpts))
    return Searched(**json.loads(said))


def complete(folder: Path, beginnings: Path, seconds: float) -> Searched:
    """Complete the beginnings of words in turn, in a fresh process. A total is the number of words that begin so."""
    (said,) = _said("complete", folder, beginnings, seconds)
    return Searched(**json.loads(said))


def _said(*arguments: object) -> list[str]:
    command = [sys.executable, "-m", "bench.engine", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip().split("\t")


def _schema(*, properties: bool) -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    if properties:
        builder.add_text_field("plain", tokenizer_name="default")
        for name in ("subject", "title", "r_object_type"):
            builder.add_text_field(name, tokenizer_name="raw", index_option="basic", fast=True)
    builder.add_text_field("body", stored=True, tokenizer_name="en_stem")
    for name in ("acl", "type"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("size", indexed=True, fast=True)
    return builder.build()


def _build(texts: Path, folder: Path, *, properties: bool) -> None:
    every = json.loads(texts.read_text())
    began = time.perf_counter()
    used = time.process_time()
    schema = _schema(properties=properties)
    writer = tantivy.Index(schema, str(folder)).writer(_HEAP, 1)
    for number, text in enumerate(every):
        acl = number % ACLS
        values = {"body": text, "acl": f"acl-{acl}", "type": "document", "size": len(text.encode())}
        if properties:
            values |= {"plain": text, "subject": f"subject-{acl % SUBJECTS}", "title": f"volume-{acl:02d}"}
            values["r_object_type"] = "document"
        writer.add_document(tantivy.Document.from_dict(values, schema))
    writer.commit()
    writer.wait_merging_threads()
    print(time.perf_counter() - began, time.process_time() - used, sep="\t")


def _search(folder: Path, row: str, queries: Path, threads: int, seconds: float, *, excerpts: bool) -> None:
    (kind,) = [one for one in KINDS if one.row == row]
    index: Any = tantivy.Index.open(str(folder))
    schema, searcher = index.schema, index.searcher()
    asked: list[list[str]] = json.loads(queries.read_text())
    times: list[float] = []

    def one(words: list[str]) -> int:
        body = kind.engine(index, words)
        must = tantivy.Occur.Must
        document = tantivy.Query.term_query(schema, "type", "document", "basic")
        acl = tantivy.Query.term_set_query(schema, "acl", READABLE)
        size = tantivy.Query.range_query(schema, "size", tantivy.FieldType.Unsigned, *SIZES)
        query = tantivy.Query.boolean_query([(must, body), (must, document), (must, acl), (must, size)])
        if kind.sorts:
            found = searcher.search(query, 20, count=True, order_by_field=kind.sorts[0])
        else:
            found = searcher.search(query, 20, count=True)
        if kind.facets:
            searcher.aggregate(query, {name: {"terms": {"field": name, "size": 10}} for name in kind.facets})
        if excerpts:
            snippets = tantivy.SnippetGenerator.create(searcher, body, schema, "body")
            for _, place in found.hits:
                snippets.snippet_from_doc(searcher.doc(place)).to_html()
        return int(found.count)

    totals = [one(words) for words in asked]
    end = time.perf_counter() + seconds

    def ask(first: int) -> None:
        at = first
        while (began := time.perf_counter()) < end:
            one(asked[at % len(asked)])
            times.append(time.perf_counter() - began)
            at += 1

    used, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    callers = [threading.Thread(target=ask, args=(7 * number,)) for number in range(threads)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    took, spent = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu = 1000 * (spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime) / len(times)
    print(json.dumps({"rate": len(times) / took, "p50": 1000 * statistics.median(times), "cpu": cpu, "totals": totals}))


def _complete(folder: Path, beginnings: Path, seconds: float) -> None:
    index: Any = tantivy.Index.open(str(folder))
    schema, searcher = index.schema, index.searcher()
    asked: list[str] = json.loads(beginnings.read_text())
    acl = tantivy.Query.term_set_query(schema, "acl", READABLE)

    def one(beginning: str) -> int:
        counts = searcher.terms_with_prefix("plain", beginning, acl)
        heapq.nlargest(10, counts, key=operator.itemgetter(1))
        return len(counts)

    totals, times = [one(beginning) for beginning in asked], list[float]()
    end, used, began = time.perf_counter() + seconds, time.process_time(), time.perf_counter()
    while (start := time.perf_counter()) < end:
        one(asked[len(times) % len(asked)])
        times.append(time.perf_counter() - start)
    cpu = 1000 * (time.process_time() - used) / len(times)
    rate = len(times) / (time.perf_counter() - began)
    print(json.dumps({"rate": rate, "p50": 1000 * statistics.median(times), "cpu": cpu, "totals": totals}))


if __name__ == "__main__":
    task, *given = sys.argv[1:]
    if task == "build":
        _build(Path(given[0]), Path(given[1]), properties=bool(int(given[2])))
    elif task == "complete":
        _complete(Path(given[0]), Path(given[1]), float(given[2]))
    else:
        _search(Path(given[0]), given[1], Path(given[2]), int(given[3]), float(given[4]), excerpts=bool(int(given[5])))
