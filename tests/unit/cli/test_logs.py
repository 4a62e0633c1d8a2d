"""Log lines: what finds no room is lost, and nothing else."""

import subprocess
import sys

_SAID = """
import structlog
from muniment.server import logs
from muniment.settings import Settings
logs.start(Settings())
log = structlog.get_logger("muniment.test")
for level in ("debug", "info", "warning", "error", "critical", "exception"):
    getattr(log, level)("pump station")
print("went on")
"""


def test_a_line_that_finds_no_room_stops_nothing() -> None:
    with open("/dev/full", "w") as full:
        run = subprocess.run([sys.executable, "-c", _SAID], stdout=subprocess.PIPE, stderr=full, text=True, check=False)
    assert run.stdout == "went on\n"
