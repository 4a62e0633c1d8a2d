"""The command line and the server as processes: started, waited for, told to stop."""

import io
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Self, get_args

import httpx
import pytest

from muniment.cli import commands
from muniment.database import connections, schema
from muniment.ground import certificates, clock
from muniment.installation.layout import Installation
from tests.clock import Clock
from tests.scenes import World
from tests.servers import free_port
from tests.waiting import until

QUICK = ("directory.hash_memory_kib=8192", "directory.hash_passes=1", "log_format=json")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}


def muniment(
    data: Path,
    *arguments: str,
    given: str = "",
    environment: dict[str, str] | None = None,
    seconds: float = 180,
    python: str = sys.executable,
    own_process: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end, with the installation of that Python.

    What needs neither a process of its own, nor another Python or environment, runs in this process: to start Python
    and load all modules takes longer than most commands.
    """
    if python == sys.executable and environment is None and not own_process:
        return _in_this_process(_command(data, *arguments)[3:], given)
    return subprocess.run(
        _command(data, *arguments, python=python),
        input=given,
        capture_output=True,
        text=True,
        timeout=seconds,
        env=ENVIRONMENT | (environment or {}),
        check=False,
    )


def initialised(data: Path, python: str = sys.executable) -> str:
    """Make a data folder; give the administrator's password."""
    made = muniment(data, "init", python=python)
    assert made.returncode == 0, made.stderr
    return next(line.split()[-1] for line in made.stdout.splitlines() if line.startswith("Password:"))


def contents_of(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Give each file below a folder with its content. A server that runs may remove some meanwhile."""
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):
            if file.is_file():
                yield file, file.read_bytes()


class Server:
    """A server in a process of its own, with the installation of that Python, started by the words of the prefix."""

    def __init__(
        self, data: Path, port: int, *arguments: str, command_prefix: Sequence[str] = (), python: str = sys.executable
    ) -> None:
        self.data = data
        self.port = port
        self.base = f"https://127.0.0.1:{port}"
        self.log = data.parent / f"{data.name}-{port}.log"
        with self.log.open("wb") as lines:
            self.process = subprocess.Popen(
                [*command_prefix, *_command(data, "serve", "--port", str(port), *arguments, python=python)],
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
        until(lambda: self.has_logged("ready") or self.process.poll() is not None, lambda: self.log_text, seconds)
        assert self.process.poll() is None, self.log_text
        with self.client() as http:
            assert http.get("/health/live").status_code == 200

    def answers(self) -> bool:
        """Whether it answers."""
        try:
            with self.client() as http:
                return http.get("/health/live").status_code == 200
        except httpx.TransportError:
            return False

    def has_logged(self, event: str) -> bool:
        """Whether a line of its log is about this."""
        return f'"event":"{event}"' in self.log_text.replace('": "', '":"')

    @property
    def log_text(self) -> str:
        """What it has logged."""
        return self.log.read_text()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to stop; give its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(60)
        assert code == 0, self.log_text
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


class ServedHouse:
    """A world in a data folder, and a server of it in processes of its own.

    The databases are new SQLite files, or those that are given. ``furnish`` puts into the world what it holds besides.
    """

    def __init__(
        self,
        root: Path,
        directory_url: str = "",
        repository_url: str = "",
        furnish: Callable[[World], object] = lambda _world: None,
    ) -> None:
        self.data = root / "data"
        self.data.mkdir(mode=0o700)
        databases = self.data / "databases"
        databases.mkdir()
        directory_url = directory_url or f"sqlite:///{databases / 'directory.db'}"
        repository_url = repository_url or f"sqlite:///{databases / 'repository.db'}"
        self.urls = (directory_url, repository_url)
        for half, url in zip(get_args(connections.Half), self.urls, strict=True):
            database = connections.Database(url)
            schema.migrate(database, half)
            database.close()
        self.world = World(self.data, directory_url, repository_url, Clock(clock.now()))
        furnish(self.world)
        self.world.close()
        self.installation: Installation = self.world.installation
        certificates.ensure(self.installation.tls, ["127.0.0.1"], clock.now())
        (self.data / "muniment.toml").write_text(
            f'directory_database = "{directory_url}"\nrepository_database = "{repository_url}"\n'
        )
        self.server: Server | None = None

    @contextmanager
    def serve(self, *arguments: str, command_prefix: Sequence[str] = (), wait: bool = True) -> Iterator[Server]:
        """Serve the folder for the length of the block."""
        self.server = Server(self.data, free_port(), *arguments, command_prefix=command_prefix)
        try:
            if wait:
                self.server.wait_ready()
            yield self.server
        finally:
            self.server.kill()


def alive(process: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _in_this_process(words: list[str], given: str) -> subprocess.CompletedProcess[str]:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        code = commands.run(words)
    said, refused = (printed.buffer.getvalue().decode() for printed in (out, err))
    return subprocess.CompletedProcess(words, code, said, refused)


def _open_files(process: int) -> list[str]:
    try:
        handles = list(Path(f"/proc/{process}/fd").iterdir())
    except (PermissionError, FileNotFoundError):  # confined, so that only root looks into it, or ended meanwhile
        return []
    found = []
    for handle in handles:
        try:
            found.append(str(handle.readlink()))
        except FileNotFoundError:
            continue
    return found


def _command(data: Path, *arguments: str, python: str = sys.executable) -> list[str]:
    settings = [word for setting in QUICK for word in ("--set", setting)]
    return [python, "-m", "muniment", "--data", str(data), *settings, *arguments]
