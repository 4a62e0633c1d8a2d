"""Measure us beside a bare endpoint and a bare engine in one run, print the ratios, keep them in docs/benchmarks.md.

python -m bench [seconds a round]
"""

import json
import os
import platform
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import argon2.low_level
import httpx
import tantivy

from bench import load
from muniment.repository.fulltext.embedded import Embedded

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
MARKS = ("<!-- make bench writes from here -->", "<!-- to here -->")
TEXTS = 1_000


def main(seconds: float) -> None:
    """Run every pair and write the page."""
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as scratch:
        folder = Path(scratch)
        texts = write_texts(folder / "texts")
        rows = [import_texts(folder, texts)]
        with serving(folder / "data", folder / "texts") as demo:
            rows += [tokeninfo(demo, seconds), password(demo, seconds), *searches(demo, folder / "data", seconds)]
    print()
    table = ["| Work | Ours | Beside | Theirs | Ratio |", "|---|---|---|---|---|"]
    table += ["| " + " | ".join(row) + " |" for row in rows]
    print("\n".join(table))
    keep(table)


def write_texts(folder: Path) -> list[str]:
    """Write small texts of invented words, drawn as often as words are in a language."""
    folder.mkdir(parents=True)
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghilmnoprstuv", k=chance.randint(3, 9))) for _ in range(20_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    texts = []
    for number in range(TEXTS):
        text = " ".join(["pump", *chance.choices(words, weights, k=150)])
        (folder / f"{number:05}.txt").write_text(text)
        texts.append(text)
    return texts


def import_texts(folder: Path, texts: list[str]) -> tuple[str, ...]:
    """Import the texts until they are searchable, beside adding them to a bare engine."""
    data = folder / "imported"
    muniment = [sys.executable, "-m", "muniment", "--data", str(data)]
    subprocess.run([*muniment, "init"], check=True, stdout=subprocess.DEVNULL)
    agent = subprocess.Popen([*muniment, "agent"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        ours = timed(
            lambda: subprocess.run(
                [*muniment, "import", str(folder / "texts")],
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
    finally:
        agent.send_signal(signal.SIGTERM)
        agent.wait(60)
    theirs = timed(lambda: bare_index(folder / "bare", texts))
    return row("import of 1,000 texts of 1 kB until searchable", TEXTS / ours, "bare tantivy-py", TEXTS / theirs, "/s")


def bare_index(folder: Path, texts: list[str]) -> None:
    """Add the texts to an engine that keeps nothing else."""
    folder.mkdir()
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", stored=True, tokenizer_name="en_stem")
    schema = builder.build()
    writer = tantivy.Index(schema, str(folder)).writer(128_000_000, 1)
    for text in texts:
        writer.add_document(tantivy.Document.from_dict({"body": text}, schema))
    writer.commit()
    writer.wait_merging_threads()


@contextmanager
def serving(data: Path, documents: Path) -> Iterator[dict[str, Any]]:
    """Serve the demo over the texts, and give what demo.json says."""
    port = free_port()
    command = [sys.executable, "-m", "muniment", "--data", str(data), "demo", "--port", str(port)]
    server = subprocess.Popen(
        [*command, "--project", str(documents), "--docs", str(documents)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(3000):
            if (data / "demo.json").exists() or server.poll() is not None:
                break
            time.sleep(0.1)
        yield json.loads((data / "demo.json").read_text())
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


def tokeninfo(demo: dict[str, Any], seconds: float) -> tuple[str, ...]:
    """Verify one token again and again, beside an endpoint that writes the same bytes."""
    address = f"{demo['base_url']}/{demo['names']['directory']['prefix']}/v1/authentication/oauth/tokeninfo"
    asked = json.dumps({"token": token(demo)["access_token"], "resource_id": demo["resource"]["id"]}).encode()
    reply = httpx.post(
        address, content=asked, headers={"Content-Type": "application/json"}, verify=demo["ca_file"]
    ).text
    port = free_port()
    tls = Path(demo["ca_file"]).parent
    command = [sys.executable, "-m", "uvicorn", "bench.bare:application", "--port", str(port), "--log-level", "error"]
    bare = subprocess.Popen(
        [*command, "--ssl-keyfile", str(tls / "server-key.pem"), "--ssl-certfile", str(tls / "server.pem")],
        env={**os.environ, "BENCH_REPLY": reply},
        cwd=ROOT,
    )
    try:
        wait_for(port)
        bare_address = f"https://127.0.0.1:{port}/"
        ours = rate(address, asked, b'"token_id"', demo, seconds)
        theirs = rate(bare_address, asked, b'"token_id"', demo, seconds)
    finally:
        bare.terminate()
        bare.wait()
    return row("tokeninfo, whole user object", ours, "bare ASGI endpoint, same bytes", theirs, "/s")


def password(demo: dict[str, Any], seconds: float) -> tuple[str, ...]:
    """Sign in again and again, beside as many threads of the same hash in a loop."""
    form = {
        "grant_type": "password",
        "client_id": demo["client_id"],
        "username": demo["username"],
        "password": demo["password"],
        "scope": f"resource:{demo['resource']['name']}",
    }
    body = str(httpx.QueryParams(form)).encode()
    address = f"{demo['base_url']}/{demo['names']['directory']['prefix']}/login"
    prepared = load.request("POST", address, body, Content_Type="application/x-www-form-urlencoded")
    ours = load.run(address, prepared, b"access_token", seconds=seconds, connections=4, ca_file=demo["ca_file"]).rate
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        argon2.low_level.hash_secret_raw(b"password", b"salt" * 4, 2, 19_456, 1, 32, argon2.low_level.Type.ID)
        count += 1
    return row("password grant", ours, "one thread of the same argon2id", count / (time.perf_counter() - started), "/s")


def searches(demo: dict[str, Any], data: Path, seconds: float) -> list[tuple[str, ...]]:
    """Search by AQL with total and excerpts over HTTPS, beside a query, count and excerpts in the engine alone."""
    names = demo["names"]
    document = (
        f'<search xmlns="{names["vocab_namespace"]}"><types><type>{names["document_type"]}</type></types>'
        '<expression-set operator="AND"><expressions><fulltext>pump</fulltext>'
        '<property-range name="r_full_content_size" operator="BETWEEN"><from>1</from><to>100000</to></property-range>'
        "</expressions></expression-set></search>"
    ).encode()
    address = (
        f"{demo['base_url']}/{names['repository']['prefix']}/repositories/{demo['repository']}"
        "/search?include-total=true&items-per-page=20"
    )
    prepared = load.request(
        "POST",
        address,
        document,
        Content_Type="application/xml",
        Accept="application/xml",
        Authorization=f"Bearer {token(demo)['access_token']}",
    )
    theirs = bare_search(data, seconds)
    rows = []
    for connections in (1, 8):
        ours = load.run(address, prepared, b"total>", seconds=seconds, connections=connections, ca_file=demo["ca_file"])
        rows.append(
            row(f"AQL search p50, {connections} clients", ours.p50, "tantivy-py in process", theirs, " ms", less=True)
        )
    return rows


def bare_search(data: Path, seconds: float) -> float:
    """The engine alone on the same index: a term, a count, 20 stored texts, 20 excerpts; the middle time in ms."""
    (folder,) = [meta.parent for meta in (data / "index").rglob("meta.json")]
    snapshot: Any = Embedded(folder).snapshot()
    schema, searcher = snapshot._schema, snapshot._searcher
    query = tantivy.Query.term_query(schema, "content", "pump", "freq")
    times: list[float] = []
    end = time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        found = searcher.search(query, 20)
        excerpts = tantivy.SnippetGenerator.create(searcher, query, schema, "content")
        for _, place in found.hits:
            excerpts.snippet_from_doc(searcher.doc(place)).to_html()
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


def rate(address: str, body: bytes, expected: bytes, demo: dict[str, Any], seconds: float) -> float:
    """Post the body over eight connections, and say how many answers a second came."""
    prepared = load.request("POST", address, body, Content_Type="application/json", Accept="application/json")
    return load.run(address, prepared, expected, seconds=seconds, connections=8, ca_file=demo["ca_file"]).rate


def token(demo: dict[str, Any]) -> dict[str, Any]:
    """Sign in once."""
    form = {name: demo[name] for name in ("client_id", "username", "password")}
    form |= {"grant_type": "password", "scope": f"resource:{demo['resource']['name']}"}
    answer = httpx.post(
        f"{demo['base_url']}/{demo['names']['directory']['prefix']}/login", data=form, verify=demo["ca_file"]
    )
    answer.raise_for_status()
    reply: dict[str, Any] = answer.json()
    return reply


def row(work: str, ours: float, beside: str, theirs: float, unit: str, *, less: bool = False) -> tuple[str, ...]:
    """Write one line of the table; where less is better the ratio says how many times the other's time we take."""
    figure = f"{ours / theirs:.2g}x" + (" the time" if less else "")
    line = (work, f"{ours:,.1f}{unit}", beside, f"{theirs:,.1f}{unit}", figure)
    print(*line, sep="  ", flush=True)
    return line


def keep(table: list[str]) -> None:
    """Put the table between the marks of docs/benchmarks.md."""
    page = PAGE.read_text()
    head, rest = page.split(MARKS[0])
    tail = rest.split(MARKS[1])[1]
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    said = f"Measured {when} on {machine}; tantivy {version('tantivy')}. One run: a difference under 1.3x is none."
    PAGE.write_text(f"{head}{MARKS[0]}\n{said}\n\n" + "\n".join(table) + f"\n{MARKS[1]}{tail}")


def timed(work: Callable[[], object]) -> float:
    """Say how long it took, in seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def free_port() -> int:
    """Find a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Wait until somebody listens on the port."""
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens on port {port}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 4.0)
