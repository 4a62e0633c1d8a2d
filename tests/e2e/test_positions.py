"""A sealed position is opened by every process of the repository, and by those that come after a restart."""

from pathlib import Path

from muniment.ground import clock
from tests.clock import Clock
from tests.conftest import Fresh
from tests.e2e.processes import Server
from tests.scenes import Loop, Site, World
from tests.servers import free_port

HEADER = "Muniment-Position"


def test_a_position_is_waited_for_in_another_process_and_after_a_restart(
    fresh: Fresh, tmp_path: Path, loop: Loop
) -> None:
    data, port = tmp_path / "data", free_port()
    data.mkdir(mode=0o700)
    directory, repository = fresh("directory"), fresh("repository")
    (data / "muniment.toml").write_text(f'directory_database = "{directory}"\nrepository_database = "{repository}"\n')
    world = World(data, directory, repository, Clock(clock.now()))
    site = Site(world, "neutral", loop)
    bearer = site.bearer()
    paper = {"properties": {"object_name": "placed"}}
    told = [site.http.post(f"{site.repository}/objects", json=paper, headers=bearer).headers[HEADER]]
    site.close()
    world.close()
    for _ in range(2):
        with Server(data, port, "--workers", "2") as server, server.client() as http:
            server.wait_ready()
            http.headers.update(bearer)
            for position in told:
                answer = http.get(site.search_address, params={"wait-for": position, "items-per-page": "1"})
                assert answer.status_code == 200, answer.text
            made = http.post(f"{site.repository}/objects", json=paper)
            assert made.status_code == 201, made.text
            told.append(made.headers[HEADER])
            # Each on a connection of its own, which either worker takes.
            for _ in range(6):
                with server.client() as other:
                    answer = other.get(site.search_address, params={"wait-for": told[-1]}, headers=bearer)
                    assert answer.status_code == 200, answer.text
