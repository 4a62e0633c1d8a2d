"""A scanner of strangers looks at the pages: as somebody who is not signed in, and as an administrator.

Wapiti is kept by others and knows the usual ways in. It has an environment of its own (``scanner.lock``), for it pins
what the house uses in other versions. Source: issue 4, 2.
"""

import http.server
import json
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import pytest

from muniment.database.connections import Half
from tests.campaign.stage import Prop, Stage
from tests.environments import environment
from tests.servers import Sqlite

HERE = Path(__file__).parent

MODULES = (
    "backup,cookieflags,crlf,csp,csrf,exec,file,htaccess,http_headers,methods,permanentxss,redirect,shellshock,"
    "sql,ssrf,timesql,upload,xss,xxe"
)
"""What applies: not what looks for LDAP (nothing here speaks it) and the products of others, what guesses passwords
(other tests do, until the account is locked), and what asks name servers outside."""

LOGIN, CONSOLE = "/dirws/login", "/dirws/console"
STARTS = {
    "nobody": ("/", "/docs/settings.md", LOGIN),
    "administrator": (CONSOLE, f"{CONSOLE}/system-attributes"),
}
LEAST_REQUESTS = 300
"""Of a scan that deserves its name."""

ACCEPTED: dict[str, str] = {}
"""Kinds of finding that are right as they are, and why."""


@contextmanager
def trap() -> Iterator[tuple[str, list[str]]]:
    """Listen where the scanner tries to lead the server to; give the address, and what asked there."""
    asked: list[str] = []

    class Trap(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Trap)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.campaign
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("who", STARTS)
def test_a_scanner_finds_nothing_in_the_pages(tmp_path: Path, sqlite: Sqlite, who: str) -> None:
    program, report = environment(HERE / "scanner.lock") / "bin" / "wapiti", tmp_path / "report.json"
    urls = [sqlite.fresh(half) for half in get_args(Half)]
    with Stage(tmp_path, *urls) as stage, trap() as (endpoint, asked):
        base = stage.server.base
        options = ["--url", f"{base}/", "--scope", "domain", "--module", MODULES, "--level", "2", "--no-bugreport"]
        options += ["--format", "json", "--output", str(report), "--flush-session", "--endpoint", endpoint]
        options += ["--store-session", str(tmp_path / "session"), "--store-config", str(tmp_path / "config")]
        options += ["--max-scan-time", "120", "--max-attack-time", "60", "--tasks", "8", "--verbose", "1"]
        options += [word for path in STARTS[who] for word in ("--start", base + path)]
        if who == "administrator":
            stage.filled(Prop.TICKET_CSRF)
            # The form that signs out would end the scan.
            options += ["--cookie-value", stage.cookies["console"], "--exclude", f"{base}{LOGIN}"]
            options += ["--exclude", f"{base}/docs/*", "--exclude", f"{base}/health/*"]
            # The scanner sends this one cookie alone, so no form there would be its own. The other scan sends them.
            options += ["--exclude", f"{base}/search/*"]
        else:
            options += ["--exclude", f"{base}/docs/decisions/*"]  # they are one page in all but their words
        run = subprocess.run(
            [program, *options], capture_output=True, text=True, timeout=1500, check=False, env={"HOME": str(tmp_path)}
        )
        assert run.returncode == 0, run.stderr[-3000:]
        found = json.loads(report.read_text())
        seen = [f"{kind}: {one['info']} ({one['path']})" for group in ("vulnerabilities", "anomalies")
                for kind, each in found[group].items() if kind not in ACCEPTED for one in each]  # fmt: skip
        requests = asked_for(stage)
        print(f"{who}: {requests.total()} requests, most for {dict(requests.most_common(5))}")
        assert not seen, "\n".join(seen)
        assert not [path for path in asked if "get_ssrf" not in path and "get_xxe" not in path]
        assert requests.total() > LEAST_REQUESTS
        assert requests[STARTS[who][-1]] > LEAST_REQUESTS / 3, "the scanner did not come to the form"
        assert not stage.lost()
        assert not stage.bugs()
        if who == "administrator":
            page = stage.http.get(CONSOLE, headers={"Cookie": stage.cookies["console"]})
            assert page.status_code == 200, "the scan was signed out on the way"


def asked_for(stage: Stage) -> Counter[str]:
    """Count the requests by their path."""
    lines = (json.loads(line) for line in stage.server.log_text.splitlines() if '"event":"request"' in line)
    return Counter(line["path"] for line in lines)
