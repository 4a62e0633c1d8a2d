"""A program under measure: started with what it starts itself, its processor time and memory read, stopped whole."""

import os
import shutil
import signal
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.servers import free_port

__all__ = ["Held", "Program", "away", "free_port", "run", "started"]

_TICKS = os.sysconf("SC_CLK_TCK")
_END_WITH_US = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []


@dataclass(frozen=True)
class Held:
    """The memory of processes in bytes. ``private`` counts private pages, but no pages of mapped data files.

    ``mapped`` counts the pages of these files, ``pss`` all pages. Both are proportional set sizes: a page that several
    processes share is counted once.
    """

    private: int
    mapped: int
    pss: int


class Program:
    """A running process and its descendants."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def cpu_seconds(self) -> float:
        """User and system time so far, with that of descendants that have ended and were waited for."""
        ticks = 0
        for pid in self.pids():
            with suppress(OSError, IndexError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))
        return ticks / _TICKS

    def memory(self) -> int:
        """Proportional set size of all processes, in bytes: shared pages are counted once."""
        total = 0
        for pid in self.pids():
            with suppress(OSError):
                for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                    if line.startswith("Pss:"):
                        total += int(line.split()[1]) * 1024
        return total

    def held(self, data: Path) -> Held:
        """What all processes hold for themselves, and what they have mapped of the files below ``data``."""
        own = mapped = 0
        below = f"{data.resolve()}/"
        for pid in self.pids():
            with suppress(OSError):
                of_data = False
                for line in Path(f"/proc/{pid}/smaps").read_text(errors="replace").splitlines():
                    key, _, rest = line.partition(" ")
                    if not key.endswith(":"):
                        # The head of a mapping: addresses, rights, offset, device, inode, path.
                        parts = line.split(maxsplit=5)
                        of_data = len(parts) == 6 and parts[5].startswith(below)
                    elif of_data and key == "Pss:":
                        mapped += int(rest.split()[0]) * 1024
                    elif not of_data and key in ("Private_Clean:", "Private_Dirty:"):
                        own += int(rest.split()[0]) * 1024
        return Held(own, mapped, self.memory())

    def quiet(self, within: float) -> bool:
        """Wait until all processes have used next to no processor time for a second; say whether they came to that."""
        until = time.monotonic() + within
        before = self.cpu_seconds()
        while time.monotonic() < until:
            time.sleep(1)
            now = self.cpu_seconds()
            if now - before < 0.05:
                return True
            before = now
        return False

    def pids(self) -> list[int]:
        """The process and all its descendants."""
        children: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError, IndexError):
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    children.setdefault(parent, []).append(int(entry.name))
        found = [self.pid]
        for pid in found:
            found += children.get(pid, [])
        return found


@contextmanager
def started(
    command: Sequence[str | Path],
    log: Path,
    *,
    ready: str = "",
    within: float = 120,
    core: int | None = None,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: int | None = None,
) -> Iterator[Program]:
    """Start a server, wait until the address ``ready`` answers 200, and end it with the block.

    ``core`` binds it and its child processes to one core. ``user`` is the uid with which it runs. Raises RuntimeError
    with the end of its log if it ends before it is ready, or takes longer than ``within`` seconds.
    """
    binding = ["taskset", "-c", str(core)] if core is not None else []
    with log.open("ab") as out:
        process = subprocess.Popen(
            [*binding, *_END_WITH_US, *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
            cwd=cwd,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
    try:
        if ready and not _answers(process, ready, within):
            raise RuntimeError(f"{Path(command[0]).name} did not start: {log.read_text(errors='replace')[-1500:]}")
        yield Program(process.pid)
    finally:
        _stop(process)


def run(
    command: Sequence[str | Path],
    *,
    within: float = 600,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a command to its end and give its output. Raises RuntimeError with what it said when it fails."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            timeout=within,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as missing:
        raise RuntimeError(f"{command[0]} is not installed") from missing
    except subprocess.TimeoutExpired as late:
        raise RuntimeError(f"{command[0]} took longer than {within:.0f} s") from late
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace").strip()
        raise RuntimeError(f"{' '.join(map(str, command[:4]))} failed: {said[-600:]}")
    return done.stdout.decode(errors="replace")


def away(name: str) -> bool:
    """Say whether a program is missing on this machine."""
    return shutil.which(name) is None


def _answers(process: "subprocess.Popen[bytes]", address: str, within: float) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    deadline = time.monotonic() + within
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(address, timeout=10, context=context) as answer:
            if answer.status == 200:
                return True
        time.sleep(0.02)
    return False


def _stop(process: "subprocess.Popen[bytes]") -> None:
    for how, patience in ((signal.SIGTERM, 30), (signal.SIGKILL, 10)):
        with suppress(ProcessLookupError):
            # The supervisor stops its own children in order; only what is left then is ended one by one.
            os.kill(process.pid, how) if how == signal.SIGTERM else os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            break
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
