"""Whoever installs the wheel gets the newest versions that pyproject.toml allows; with these it serves."""

from pathlib import Path

import pytest

from tests.e2e.processes import Server, initialised, muniment
from tests.environments import with_our_wheel
from tests.servers import free_port

pytestmark = pytest.mark.campaign


def test_the_wheel_serves_with_the_newest_versions_that_it_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    python = str(with_our_wheel(tmp_path) / "bin" / "python")
    data = tmp_path / "data"
    password = initialised(data, python)
    made = muniment(data, "client", "add", "reader", python=python)
    with Server(data, free_port(), python=python) as server, server.client() as http:
        assert str(tmp_path) in Path(f"/proc/{server.process.pid}/cmdline").read_text()
        form = {"grant_type": "password", "client_id": "reader", "username": "admin@directory.admin"}
        form |= {"password": password, "scope": "resource:Directory+Administration"}
        issued = http.post("/dirws/login", data=form)
        assert issued.status_code == 200, issued.text + made.stderr
        assert http.get("/health/ready").status_code == 200
        assert "Muniment" in http.get("/docs/").text
        assert server.stop() == 0
