"""The console blocks of the docs: their commands run in the order of the page, and print what the page shows.

``MUNIMENT_WRITE_DOCS=1 pytest tests/e2e/test_pages.py`` writes into the pages what the commands print now.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import ENVIRONMENT
from tests.house.sources import ROOT
from tests.servers import free_port

PAGES = ("README.md", "docs/first-day.md")
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
SERVE = re.compile(r"muniment (--data \S+ )?serve$")

PAPERS = {
    "letter.txt": "A charter is the oldest kind of muniment.\n",
    "note.txt": "The muniment room is behind the chapel.\n",
}
"""What lies in the reader's folder ``~/Papers``."""

DATA, PORT = "/srv/muniment", "8443"
"""The data folder and the port that the pages name; the test has others."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_VARYING = re.compile(r"(?<![\w.-])(?:\d{4}-\d\d-\d\dT[\d:.]+Z|[\w-]{16,}|[0-9]+\.[0-9]+)(?![\w-])")
_QUICK = {"MUNIMENT_DIRECTORY_HASH_MEMORY_KIB": "8192", "MUNIMENT_DIRECTORY_HASH_PASSES": "1"}

_COMMANDS = """
import json, os, socket, sys
from muniment.cli import commands
listener = socket.socket(socket.AF_UNIX)
listener.bind("commands")
listener.listen()
while True:
    caller, _ = listener.accept()
    request, files, _, _ = socket.recv_fds(caller, 1 << 20, 3)
    if os.fork() == 0:
        for number, file in enumerate(files):
            os.dup2(file, number)
        environment, arguments = json.loads(request)
        os.environ.clear()
        os.environ.update(environment)
        caller.send(bytes([commands.run(arguments)]))
        os._exit(0)
    for file in files:
        os.close(file)
    caller.close()
"""
"""Runs commands in forks, because on its own each of them takes longer to start than to run."""

_ASK = """#!{python} -IS
import json, os, socket, sys
caller = socket.socket(socket.AF_UNIX)
caller.connect({socket!r})
socket.send_fds(caller, [json.dumps([dict(os.environ), sys.argv[1:]]).encode()], [0, 1, 2])
sys.exit(caller.recv(1)[0])
"""
"""The program ``muniment`` on the page's PATH."""

_SERVING = """\
: >{number}.out; python -m muniment serve >{number}.out 2>&1 &
server=$!
until grep -q ' ready ' {number}.out; do kill -0 $server || exit 1; sleep 0.1; done
echo 0 >{number}.code
"""
_RUNNING = """\
{{ {command}
}} >{number}.out 2>{number}.err </dev/null
echo $? >{number}.code
"""


def commands(page: str) -> list[str]:
    """The commands of a page, in their order."""
    return [command for block in BLOCK.findall(page) for command, _ in COMMAND.findall(block)]


def run(page: str, folder: Path, port: int) -> list[str]:
    """Run a page's commands in one shell; give what each prints, spelled as on a machine that the page describes."""
    data, program = folder / "data", folder / ".venv" / "bin" / "muniment"
    program.parent.mkdir(parents=True)
    program.write_text(_ASK.format(python=sys.executable, socket=str(folder / "commands")))
    program.chmod(0o700)
    (folder / "Papers").mkdir()
    for name, text in PAPERS.items():
        (folder / "Papers" / name).write_text(text)
    script = [
        f"trap 'kill %%; kill %1; wait' EXIT\npython -c '{_COMMANDS}' & until [ -e commands ]; do sleep 0.1; done"
    ]
    for number, command in enumerate(commands(page)):
        local = command.replace(DATA, str(data)).replace(PORT, str(port))
        script.append((_SERVING if SERVE.search(command) else _RUNNING).format(number=number, command=local))
    environment = {
        "PATH": f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "MUNIMENT_DATA": str(data),
        "MUNIMENT_WEB_PORT": str(port),
        "MUNIMENT_LOG_FORMAT": "console",
        # A table looks as it does on a terminal.
        "FORCE_COLOR": "1",
        "TERM": "xterm",
        "COLUMNS": "120",
    }
    shell = subprocess.Popen(
        ["bash", "-c", "\n".join(script)], cwd=folder, env=ENVIRONMENT | _QUICK | environment, start_new_session=True
    )
    try:
        shell.wait(240)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait(30)
    printed = []
    for number, command in enumerate(commands(page)):
        text = _printed(folder, number).replace(str(data), DATA).replace(str(port), PORT)
        # The requests that follow are in a server's log, too.
        printed.append(text.partition("\n")[0] + "\n" if SERVE.search(command) else text)
    return printed


def _printed(folder: Path, number: int) -> str:
    """What a command has printed; of a refused one also its error."""
    code, errors = folder / f"{number}.code", folder / f"{number}.err"
    assert code.exists(), f"command {number} did not end"
    text = (folder / f"{number}.out").read_text()
    if code.read_text().strip() != "0":
        text += errors.read_text()
    lines = (line.rstrip() for line in _COLOURS.sub("", text).splitlines())
    return "".join(f"{line}\n" for line in lines if line)


def shape(printed: str) -> str:
    """Printed lines without what differs from one run to the next: passwords, ids, times, scores."""
    return "\n".join(" ".join(_VARYING.sub("...", line).split()) for line in printed.splitlines())


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_print_what_the_page_shows(name: str, tmp_path: Path) -> None:
    if any("curl" in command for command in commands((ROOT / name).read_text())) and not shutil.which("curl"):
        pytest.skip("curl is not installed")
    page = (ROOT / name).read_text("utf-8")
    printed = iter(run(page, tmp_path, free_port()))
    shown: list[tuple[str, str]] = []
    ran: list[tuple[str, str]] = []

    def step(match: re.Match[str]) -> str:
        output = next(printed)
        shown.append((match[1], shape(match[2])))
        ran.append((match[1], shape(output)))
        return f"$ {match[1]}\n{output}"

    written = BLOCK.sub(lambda block: COMMAND.sub(step, block[0]), page)
    if os.environ.get("MUNIMENT_WRITE_DOCS"):
        (ROOT / name).write_text(written, "utf-8")
    assert ran == shown, "run MUNIMENT_WRITE_DOCS=1 pytest tests/e2e/test_pages.py"


def test_a_shape_forgets_what_varies_and_nothing_else() -> None:
    assert (
        shape("Password:  nGgde55A_cWhtXci\n0.656  097039bc0d97381f  lease.txt\n") == "Password: ...\n... ... lease.txt"
    )
    assert shape("user  anna@staff  active") != shape("user  anna@staff  disabled")
    assert shape("2 found") != shape("0 found")
