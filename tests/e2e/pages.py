"""Runs the console blocks of a page of the docs in one shell, with a data folder and a port of the test's own."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.e2e.processes import ENVIRONMENT
from tests.house.sources import ROOT
from tests.servers import free_port
from tests.waiting import PATIENCE, until

BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
SERVE = re.compile(r"muniment (--data \S+ )?serve$|python3 examples/web_application\.py$")

PAPERS = {
    "letter.txt": "A charter is the oldest kind of muniment.\n",
    "note.txt": "The muniment room is behind the chapel.\n",
}
"""What lies in the reader's folder ``~/Papers``."""

DATA, PORT, APPLICATION_PORT = "/srv/muniment", "8443", "5000"
"""The data folder and the ports that the pages name; the test has others."""

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

_READY = re.compile(r".* ready .*|.* running on .*")
_SERVING = """\
: >{number}.out; {command} >{number}.out 2>&1 &
server=$!
until grep -qE '{ready}' {number}.out; do kill -0 $server || exit 1; sleep 0.1; done
echo 0 >{number}.code
"""
_PLAYING = """\
: >{number}.reached
until [ -e {number}.played ]; do sleep 0.1; done
"""
_RUNNING = """\
{{ {command}
}} >{number}.out 2>{number}.err </dev/null
echo $? >{number}.code
"""


def commands(page: str) -> list[str]:
    """The commands of a page, in their order."""
    return [command for block in BLOCK.findall(page) for command, _ in COMMAND.findall(block)]


def run(page: str, folder: Path, meanwhile: Mapping[int, Callable[[int], None]] = {}) -> list[str]:
    """Run a page's commands in one shell; give what each prints, spelled as on a machine that the page describes.

    ``meanwhile`` are what a person does, by the number of the command that it follows; each is told the port of the
    page's application.
    """
    port, application_port = free_port(), free_port()
    execute(page, folder, port, application_port=application_port, meanwhile=meanwhile)
    printed = []
    for number, command in enumerate(commands(page)):
        text = output(folder, number).replace(str(folder / "data"), DATA).replace(str(port), PORT)
        text = text.replace(str(application_port), APPLICATION_PORT)
        # The requests that follow are in a server's log, too.
        ready = _READY.search(text)
        printed.append(f"{ready[0]}\n" if ready and SERVE.search(command) else text)
    return printed


def altered(name: str, folder: Path, meanwhile: Mapping[int, Callable[[int], None]] = {}) -> list[tuple[str, str]]:
    """Run a page's commands, and list those that print something else than the page shows, with what they print.

    With MUNIMENT_WRITE_DOCS the page is written anew.
    """
    page = (ROOT / name).read_text("utf-8")
    printed = iter(run(page, folder, meanwhile))
    others: list[tuple[str, str]] = []

    def step(match: re.Match[str]) -> str:
        printed_now = next(printed)
        if shape(match[2]) != shape(printed_now):
            others.append((match[1], printed_now))
        return f"$ {match[1]}\n{printed_now}"

    written = BLOCK.sub(lambda block: COMMAND.sub(step, block[0]), page)
    if os.environ.get("MUNIMENT_WRITE_DOCS"):
        (ROOT / name).write_text(written, "utf-8")
    return others


def execute(
    page: str,
    folder: Path,
    port: int,
    after: Mapping[int, str] = {},
    *,
    application_port: int = 0,
    meanwhile: Mapping[int, Callable[[int], None]] = {},
) -> None:
    """Run a page's commands in one shell, command 7 into the file ``7.out``.

    ``after`` are lines of shell for the same shell, by the number of the command that they follow. ``meanwhile`` are
    functions that are called while the shell waits, likewise.
    """
    data, program = folder / "data", folder / ".venv" / "bin" / "muniment"
    program.parent.mkdir(parents=True)
    program.write_text(_ASK.format(python=sys.executable, socket=str(folder / "commands")))
    program.chmod(0o700)
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "Papers").mkdir()
    for name, text in PAPERS.items():
        (folder / "Papers" / name).write_text(text)
    script = [f"trap 'kill $(jobs -p); wait' EXIT\npython -c '{_COMMANDS}' & until [ -e commands ]; do sleep 0.1; done"]
    for number, command in enumerate(commands(page)):
        local = command.replace(DATA, str(data)).replace(PORT, str(port))
        if application_port:
            local = local.replace(APPLICATION_PORT, str(application_port))
        if SERVE.search(command):
            # Not the program of the page's PATH, which would serve in a fork of another process.
            serving = "python -m muniment serve" if "muniment" in local else local
            script.append(_SERVING.format(number=number, command=serving, ready=_READY.pattern))
        else:
            script.append(_RUNNING.format(number=number, command=local))
        script.append(_PLAYING.format(number=number) if number in meanwhile else after.get(number, ""))
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
        for number, play in meanwhile.items():
            until(lambda: (folder / f"{number}.reached").exists() or shell.poll() is not None, seconds=15 * PATIENCE)  # noqa: B023
            play(application_port)
            (folder / f"{number}.played").touch()
        shell.wait(15 * PATIENCE)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait(30)


def output(folder: Path, number: int) -> str:
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
