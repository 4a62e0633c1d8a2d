"""Steps 1 to 7 of the tour against real processes over TLS: by the product's own demo, by httpx, and by curl."""

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import feedparser
import httpx
import pytest

from tests.e2e.processes import ENVIRONMENT, QUICK, alive, contents_of
from tests.servers import free_port
from tests.waiting import until

WORD = "Zwetschgenbaum"


def _start_time(process: int) -> int:
    """Return when a process was started, in clock ticks after the machine."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])


class Demo:
    """``muniment demo`` in a process of its own, with a few documents that all hold one word."""

    def __init__(self, root: Path) -> None:
        self.data = root / "data"
        self.docs = root / "Field Notes"
        self.facts_file = self.data / "demo.json"
        self.printed = root / "printed"
        self.log = root / "log"
        self.port = free_port()

    def start(self, begun: Callable[[], bool] | None = None) -> None:
        """Start it and wait for its values, or for something else."""
        settings = [word for setting in QUICK for word in ("--set", setting)]
        command = [sys.executable, "-m", "muniment", "--data", str(self.data), *settings, "demo"]
        with self.printed.open("wb") as printed, self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), "--docs", str(self.docs)],
                stdout=printed,
                stderr=log,
                env=ENVIRONMENT,
                start_new_session=True,
            )
        self.wait_for(begun or self.facts_file.exists)
        if begun is None:
            self.read_facts()

    def wait_for(self, happens: Callable[[], bool]) -> None:
        """Wait until something is true; it must not end before."""
        until(lambda: happens() or self.process.poll() is not None, self.log.read_text, 120)
        assert self.process.poll() is None, self.log.read_text()

    def read_facts(self) -> None:
        """Read its values."""
        self.facts: dict[str, Any] = json.loads(self.facts_file.read_bytes())

    def has_said_all(self) -> bool:
        """Whether it has written its values and printed the tour."""
        return self.facts_file.exists() and "These values are in" in self.printed.read_text()

    def imports(self) -> bool:
        """Whether it has begun to import its documents, and is not done."""
        return any((self.data / "content" / "packs").glob("*")) and not self.facts_file.exists()

    def children(self) -> list[int]:
        """Name its processes, in the order in which they were started. Their ids do not tell it: ids are used again."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return sorted(map(int, children), key=_start_time)

    def stop(self) -> None:
        """Stop it gracefully."""
        self.process.send_signal(signal.SIGINT)
        try:
            assert self.process.wait(60) == 0
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(10)

    def client(self) -> httpx.Client:
        trust = ssl.create_default_context(cafile=self.facts["ca_file"])
        return httpx.Client(base_url=self.facts["base_url"], verify=trust, timeout=60, trust_env=False)

    def sign_in(self, http: httpx.Client, who: dict[str, str] | None = None) -> httpx.Response:
        person = who or self.facts
        return http.post(
            "/dirws/login",
            data={
                "grant_type": "password",
                "client_id": self.facts["client_id"],
                "username": person["username"],
                "password": person["password"],
                "scope": "resource:" + self.facts["resource"]["name"].replace(" ", "+"),
            },
        )

    @property
    def repository(self) -> str:
        return f"/rest/repositories/{quote(self.facts['repository'])}"

    @property
    def document(self) -> str:
        names = self.facts["names"]
        return (
            f'<search xmlns="{names["vocab_namespace"]}"><types><type>{names["sysobject_type"]}</type></types>'
            f'<expression-set operator="AND"><expressions><fulltext>{WORD}</fulltext>'
            '<property name="object_name" operator="BEGINS_WITH">note</property>'
            '<property-range name="r_full_content_size" operator="BETWEEN"><from>1</from><to>1000000</to>'
            "</property-range></expressions></expression-set></search>"
        )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    made = Demo(tmp_path_factory.mktemp("tour"))
    made.docs.mkdir()
    for number in range(30):
        (made.docs / f"note{number}.txt").write_text(f"Under the {WORD} lies stone number {number}.\n" * 3)
    made.start()
    yield made
    made.stop()


def test_the_values_are_for_their_owner_alone_and_whole(demo: Demo) -> None:
    assert demo.facts_file.stat().st_mode & 0o777 == 0o600
    people = [demo.facts, demo.facts["reader"], demo.facts["outsider"], demo.facts["admin"]]
    assert len({person["username"] for person in people}) == 4
    assert all(len(person["password"]) >= 16 for person in people)
    assert demo.facts["resource"]["name"].count(" ") >= 1
    assert {"vocab_namespace", "relevance_namespace", "linkrel_base", "document_type", "sysobject_type"} <= set(
        demo.facts["names"]
    )


def test_no_password_is_in_the_data_folder_or_the_log(demo: Demo) -> None:
    passwords = [demo.facts[who]["password"] for who in ("reader", "outsider", "admin")] + [demo.facts["password"]]
    files = {file: content for file, content in contents_of(demo.data) if file != demo.facts_file}
    for file, content in {**files, demo.log: demo.log.read_bytes()}.items():
        assert not [password for password in passwords if password.encode() in content], file


def test_the_demo_has_the_homes_of_its_people_and_a_cabinet_for_what_is_passing(demo: Demo) -> None:
    with demo.client() as http:
        for person in (demo.facts, demo.facts["reader"]):
            http.headers["Authorization"] = f"Bearer {demo.sign_in(http, person).json()['access_token']}"
            name = person["username"].partition("@")[0]
            home = http.get(f"{demo.repository}/users/{name}/home")
            assert (home.status_code, home.json()["properties"]["object_name"]) == (200, name)
            cabinets = http.get(f"{demo.repository}/cabinets", params={"filter": "object_name='Temp'"}).json()
            (temp,) = [entry["content"]["src"] for entry in cabinets["entries"]]
            made = http.post(
                f"{temp}/documents".replace("/cabinets/", "/folders/"), json={"properties": {"object_name": name}}
            )
            assert made.status_code == 201, made.text
            assert http.get(made.headers["Location"]).status_code == 200


def test_the_tour(demo: Demo) -> None:
    with demo.client() as http:
        granted = demo.sign_in(http)
        assert granted.status_code == 200, granted.text
        form = {
            "grant_type": "refresh_token",
            "client_id": demo.facts["client_id"],
            "refresh_token": granted.json()["refresh_token"],
        }
        refreshed = http.post("/dirws/login", data=form).json()
        assert "refresh_token" not in refreshed
        token = refreshed["access_token"]
        http.headers["Authorization"] = f"Bearer {token}"

        made = http.post(
            f"{demo.repository}/objects",
            json={"properties": {"r_object_type": "article", "object_name": "note of today", "topics": ["trees"]}},
        )
        assert made.status_code == 201, made.text
        assert http.get(made.headers["location"]).status_code == 200
        object_id = made.json()["properties"]["r_object_id"]
        address = f"{demo.repository}/objects/{object_id}"
        content = f"A {WORD} blooms.".encode()
        kept = http.post(f"{address}/contents", content=content, headers={"Content-Type": "text/plain"})
        assert kept.status_code in {200, 201}, kept.text
        assert http.get(f"{address}/content-media").content == content
        assert http.get(address, headers={"Accept": "application/xml"}).headers["content-type"].endswith("xml")

        xml = {"Content-Type": "application/xml", "Accept": "application/xml"}

        def post_search() -> httpx.Response:
            answer = http.post(
                f"{demo.repository}/search?include-total=true", content=demo.document.encode(), headers=xml
            )
            assert answer.status_code == 200, answer.text
            return answer

        until(lambda: object_id in post_search().text, "what was made is not found")
        found = post_search()
        feed = feedparser.parse(found.content)
        assert len(feed.entries) == 31
        assert "dm:total>31<" in found.text
        entry = next(entry for entry in feed.entries if entry.id == object_id)
        assert entry.title == "note of today"
        assert entry.author == demo.facts["username"].partition("@")[0]
        assert WORD in entry.summary
        assert {link.rel for link in entry.links} >= {"edit"}
        assert http.get(next(link.href for link in entry.links if link.rel == "edit")).status_code == 200

        page = http.post(f"{demo.repository}/search?items-per-page=10", content=demo.document.encode(), headers=xml)
        seen = {entry.id for entry in feedparser.parse(page.content).entries}
        following = next(link.href for link in feedparser.parse(page.content).feed.links if link.rel == "next")
        second = http.get(following, headers={"Accept": "application/atom+xml"})
        assert second.status_code == 200
        assert len({entry.id for entry in feedparser.parse(second.content).entries} - seen) == 10

        by_keyword = http.get(f"{demo.repository}/search", params={"q": f"{WORD} AND trees", "include-total": "true"})
        assert by_keyword.status_code == 200

        links = http.get(demo.repository).json()["links"]
        relation = f"{demo.facts['names']['linkrel_base']}/search"
        (search_template,) = [link["hreftemplate"] for link in links if link["rel"] == relation]
        template = "search{?collections,facet,include-total,inline,items-per-page,locations,object-type,page,q,sort,"
        assert search_template.endswith(template + "timezone,view}")

        oauth = "/dirws/v1/authentication/oauth"
        verified = {"token": token, "resource_id": demo.facts["resource"]["id"]}
        for path in (f"{oauth}/tokeninfo", "/dirws/v1/authentication/tokeninfo"):
            told = http.post(path, json=verified)
            assert told.status_code == 200
            assert told.json()["user"]["id"] == demo.facts["username"]

        assert http.delete(address).status_code == 204
        ended = http.delete(f"{oauth}/{token}")
        assert ended.status_code == 204
        assert ended.content == b""
        assert "access-control-allow-origin" in ended.headers
        assert http.post(f"{oauth}/tokeninfo", json=verified).status_code == 410
        refused = http.post(f"{demo.repository}/search", content=demo.document.encode(), headers=xml)
        assert refused.status_code == 401
        assert [line.split()[0] for line in refused.headers.get_list("www-authenticate")] == ["Basic", "Bearer"]
        assert http.post("/dirws/login", data=form).status_code == 400


def test_the_reader_sees_fewer_and_the_outsider_nothing(demo: Demo) -> None:
    def total(http: httpx.Client) -> int:
        found = http.get(f"{demo.repository}/search", params={"q": WORD, "include-total": "true"})
        assert found.status_code == 200, found.text
        return int(found.json()["total"])

    totals = []
    for who in (None, demo.facts["reader"]):
        with demo.client() as http:
            token = demo.sign_in(http, who).json()["access_token"]
            http.headers["Authorization"] = f"Bearer {token}"
            totals.append(total(http))
    assert 0 < totals[1] < totals[0]
    with demo.client() as http:
        assert demo.sign_in(http, demo.facts["outsider"]).status_code == 400


def test_the_curl_tour_that_is_printed_can_be_pasted(demo: Demo) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    script = demo.printed.read_text().partition("# 1. Get in")[2].rpartition("These values are in")[0]
    assert demo.facts["password"] in script
    done = subprocess.run(
        ["bash", "-eu"], input=script, capture_output=True, text=True, timeout=60, env=ENVIRONMENT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "HTTP/1.1 204" in done.stdout
    assert f'"{demo.facts["username"]}"' in done.stdout
    assert "<dm:total>0<" not in done.stdout
    assert '"total":0,' not in done.stdout
    with demo.client() as http:
        name, password = demo.facts["username"], demo.facts["password"]
        for typed, expected in ((name, 200), (name.partition("@")[0], 200), (f"{name}x", 401)):
            assert http.get(demo.repository, auth=(typed, password)).status_code == expected


def test_the_tour_command_performs_it_and_shortens_tokens(demo: Demo) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "muniment", "--data", str(demo.data), "tour"],
        capture_output=True,
        text=True,
        timeout=120,
        env=ENVIRONMENT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The tour is done" in done.stdout
    assert demo.facts["password"] not in done.stdout
    assert "password=..." in done.stdout


def test_search_on_the_command_line_asks_as_administrator_or_as_a_user(demo: Demo) -> None:
    def search(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        # No port is named: the command finds the server by its lock file.
        command = [sys.executable, "-m", "muniment", "--data", str(demo.data)]
        return subprocess.run(
            [*command, "search", *words, WORD],
            capture_output=True,
            text=True,
            timeout=60,
            env=ENVIRONMENT | environment,
            check=False,
        )

    reader = demo.facts["reader"]
    as_reader = ("--user", reader["username"], "--client", demo.facts["client_id"])
    everything = search()
    assert everything.returncode == 0, everything.stderr
    fewer = search(*as_reader, MUNIMENT_PASSWORD=reader["password"])
    assert fewer.returncode == 0, fewer.stderr
    totals = [int(said.stdout.split(" found")[0]) for said in (everything, fewer)]
    assert totals[0] > totals[1] > 0
    assert WORD in everything.stdout
    wrong = search(*as_reader, MUNIMENT_PASSWORD="wrong")
    assert wrong.returncode == 3
    assert "Traceback" not in wrong.stderr
    assert reader["password"] not in wrong.stderr + fewer.stdout


@pytest.mark.parametrize("example", ["directory_client.py", "repository_client.py"])
def test_the_examples_run(demo: Demo, example: str) -> None:
    file = Path(__file__).parents[2] / "examples" / example
    done = subprocess.run(
        [sys.executable, str(file), str(demo.facts_file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "410" in done.stdout or "documents hold" in done.stdout


@pytest.mark.campaign
def test_started_again_it_keeps_its_passwords_and_its_documents(tmp_path: Path, demo: Demo) -> None:
    again = Demo(tmp_path)
    shutil.copytree(demo.docs, again.docs)
    again.start()
    first = again.facts
    children = Path(f"/proc/{again.process.pid}/task/{again.process.pid}/children").read_text().split()
    os.kill(again.process.pid, signal.SIGKILL)
    again.process.wait(10)
    until(lambda: not any(alive(int(child)) for child in children))
    again.facts_file.unlink()
    again.start()
    try:
        assert again.facts == first
        assert "0 imported, 0 replaced, 30 unchanged" in again.printed.read_text()
    finally:
        again.stop()


@pytest.mark.parametrize(
    "when", ["while it fills the repository", pytest.param("once it is done", marks=pytest.mark.campaign)]
)
def test_the_server_outlives_the_demos_own_process(tmp_path: Path, when: str) -> None:
    filling = when.startswith("while")
    made = Demo(tmp_path)
    made.docs.mkdir()
    for number in range(400 if filling else 3):
        (made.docs / f"note{number}.txt").write_text(f"Under the {WORD} lies stone number {number}.\n" * 3)
    made.start(made.imports if filling else made.has_said_all)
    try:
        # The roles are forked in this order: workers, agent, extraction, and the demo's own process at last.
        *others, own = made.children()
        os.kill(own, signal.SIGKILL)
        made.wait_for(lambda: made.facts_file.exists() and len(made.children()) == len(others) + 1)
        made.read_facts()
        assert [process for process in made.children() if process in others] == others
        with made.client() as http:
            assert made.sign_in(http).status_code == 200
        assert made.printed.read_text().count("These values are in") == 1
    finally:
        made.stop()
