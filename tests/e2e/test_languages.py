"""A served repository has texts in several languages; docs/aql.md, "Several languages" (decision 0094)."""

from pathlib import Path

import pytest

from muniment.ground import clock
from tests.clock import Clock
from tests.conftest import Fresh
from tests.e2e.processes import Server, initialised, muniment
from tests.scenes import Loop, Site, World
from tests.servers import free_port
from tests.waiting import until

GERMAN = "Die Häuser der Stadt stehen seit vielen Jahren am Ufer des großen Flusses."
ENGLISH = "The houses of the town have been standing near the great river for many years."


@pytest.mark.campaign
def test_texts_are_found_by_the_stems_of_their_languages_once_the_setting_names_them(
    fresh: Fresh, tmp_path: Path, loop: Loop
) -> None:
    data, port = tmp_path / "data", free_port()
    data.mkdir(mode=0o700)
    directory, repository = fresh("directory"), fresh("repository")
    (data / "muniment.toml").write_text(f'directory_database = "{directory}"\nrepository_database = "{repository}"\n')
    world = World(data, directory, repository, Clock(clock.now()))
    site = Site(world, "neutral", loop)
    bearer = site.bearer()
    german, english = (site.create(f"{at}.txt", text.encode()) for at, text in enumerate((GERMAN, ENGLISH)))
    site.close()
    world.close()

    with Server(data, port) as server, server.client() as http:
        http.headers.update(bearer)

        def hits(q: str, **parameters: str) -> list[str] | None:
            answer = http.get(site.search_address, params={"q": q} | parameters, headers={"Accept": "application/json"})
            entries = answer.json().get("entries", []) if answer.status_code == 200 else None
            return entries if entries is None else [entry["id"].rpartition("/")[2] for entry in entries]

        until(lambda: hits("Häuser", words="all") == [german])
        assert hits("Haus", words="all") == []

    with Server(data, port, "--set", "repository.languages=German,French") as server, server.client() as http:
        http.headers.update(bearer)
        until(lambda: hits("Haus", words="all") == [german], lambda: server.log_text)
        assert hits("house", words="all") == [english]
        assert hits("Haus", words="all", **{"query-locale": "de_DE"}) == [german]
        assert hits("Haus", words="all", **{"query-locale": "en"}) == []
        paper = {"properties": {"object_name": "Die Verträge", "language_code": "de"}}
        made = http.post(f"{site.repository}/objects", json=paper)
        assert made.status_code == 201, made.text
        until(lambda: len(hits("Vertrag", words="all") or []) == 1)
        assert hits("de", words="all") == [], "the code is no keyword"
        assert not server.has_logged("differences")
    checked = muniment(data, "--set", "repository.languages=German,French", "index", "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_language_without_stems_is_refused_at_the_start(tmp_path: Path) -> None:
    initialised(tmp_path / "data")
    for setting in ("repository.languages=German,Klingon", "repository.language=Klingon"):
        refused = muniment(tmp_path / "data", "--set", setting, "serve", "--port", str(free_port()))
        assert refused.returncode == 2
        assert "There are no stems for 'Klingon'; choose one of Arabic, " in refused.stderr
