"""The command line as a process: started, waited for, told to stop."""

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import httpx

QUICK = ("directory.hash_memory_kib=8192", "directory.hash_passes=1", "log_format=json")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}


def muniment(
    data: Path, *arguments: str, given: str = "", environment: dict[str, str] | None = None, seconds: float = 180
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        _command(data, *arguments),
        input=given,
        capture_output=True,
        text=True,
        timeout=seconds,
        env=ENVIRONMENT | (environment or {}),
        check=False,
    )


def initialised(data: Path) -> str:
    """Make a data folder; give the administrator's password."""
    made = muniment(data, "init")
    assert made.returncode == 0, made.stderr
    return next(line.split()[-1] for line in made.stdout.splitlines() if line.startswith("Password:"))


class Server:
    """A server in a process of its own, started by the words of ``within``, if there are any."""

    def __init__(self, data: Path, port: int, *arguments: str, within: Sequence[str] = ()) -> None:
        self.data = data
        self.port = port
        self.base = f"https://127.0.0.1:{port}"
        self.log = data.parent / f"{data.name}-{port}.log"
        with self.log.open("wb") as lines:
            self.process = subprocess.Popen(
                [*within, *_command(data, "serve", "--port", str(port), *arguments)],
                stdout=lines,
                stderr=lines,
                env=ENVIRONMENT,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        self.wait_ready()
        return self

    def __exit__(self, *_error: object) -> None:
        self.kill()

    def client(self) -> httpx.Client:
        """Talk to it, trusting the CA that it has made."""
        trust = ssl.create_default_context(cafile=str(self.data / "tls" / "ca.pem"))
        return httpx.Client(base_url=self.base, verify=trust, timeout=30, trust_env=False)

    def wait_ready(self, seconds: float = 60) -> None:
        """Wait until it says that it is ready."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.said
            if self.noted("ready"):
                with self.client() as http:
                    assert http.get("/health/live").status_code == 200
                return
            time.sleep(0.05)
        raise TimeoutError(self.said)

    def answers(self) -> bool:
        """Whether it answers."""
        try:
            with self.client() as http:
                return http.get("/health/live").status_code == 200
        except httpx.TransportError:
            return False

    def noted(self, event: str) -> bool:
        """Whether a line of its log is about this."""
        return f'"event":"{event}"' in self.said.replace('": "', '":"')

    @property
    def said(self) -> str:
        """What it has logged."""
        return self.log.read_text()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to stop; give its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(60)
        assert code == 0, self.said
        return code

    def kill(self) -> None:
        """End it and all its children at once."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def children(self) -> dict[int, list[str]]:
        """Give its child processes, with the files they hold open."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return {int(child): _open_files(int(child)) for child in listed}


def alive(process: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _open_files(process: int) -> list[str]:
    try:
        handles = list(Path(f"/proc/{process}/fd").iterdir())
    except PermissionError:  # a confined process, which only root looks into
        return []
    found = []
    for handle in handles:
        try:
            found.append(str(handle.readlink()))
        except FileNotFoundError:
            continue
    return found


def _command(data: Path, *arguments: str) -> list[str]:
    settings = [word for setting in QUICK for word in ("--set", setting)]
    return [sys.executable, "-m", "muniment", "--data", str(data), *settings, *arguments]
