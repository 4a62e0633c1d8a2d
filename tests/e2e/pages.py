"""Runs the console blocks of a page of the docs in one shell, with a data folder and a port of the test's own."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.processes import ENVIRONMENT
from tests.waiting import PATIENCE

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
    execute(page, folder, port)
    printed = []
    for number, command in enumerate(commands(page)):
        text = output(folder, number).replace(str(folder / "data"), DATA).replace(str(port), PORT)
        # The requests that follow are in a server's log, too.
        printed.append(text.partition("\n")[0] + "\n" if SERVE.search(command) else text)
    return printed


def execute(page: str, folder: Path, port: int, after: Mapping[int, str] = {}) -> None:
    """Run a page's commands in one shell, command 7 into the file ``7.out``.

    ``after`` are lines of shell for the same shell, by the number of the command that they follow.
    """
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
        script.append(after.get(number, ""))
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
