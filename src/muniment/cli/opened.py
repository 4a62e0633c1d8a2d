"""A data folder as a command finds it: its settings, its lock, its databases."""

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from muniment import app, schema, settings
from muniment.cli.outcome import Exit, Failure
from muniment.db import Database, Half, Instant
from muniment.installation import Installation
from muniment.settings import Settings


class Opened:
    """The data folder and settings a command was started with, opened as far as the command asks."""

    def __init__(self, data: Path, config: Path | None, overrides: Sequence[str]) -> None:
        self.data = data.absolute()
        self._config = config
        self._overrides = list(overrides)

    def override(self, key: str, value: object | None) -> None:
        """Let a command's own option win over every other source; None leaves the setting alone."""
        if value is not None:
            self._overrides.append(f"{key}={value}")
            self.__dict__.pop("settings", None)

    @cached_property
    def settings(self) -> Settings:
        """The settings in force. Raises BadSettings."""
        file = self._config or self.data / "muniment.toml"
        return settings.read(file, overrides=self._overrides, file_must_exist=self._config is not None)

    @property
    def installation(self) -> Installation:
        """The data folder with its settings."""
        return Installation(self.data, self.settings)

    @property
    def now(self) -> Instant:
        """The time, read once for each use."""
        return app.now()

    def make_folder(self) -> None:
        """Make the data folder, or leave it to its owner alone (mode 0700)."""
        self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.data.chmod(0o700)

    def must_exist(self) -> None:
        """Raise Failure unless the data folder has been initialised."""
        if not self.data.is_dir():
            raise Failure(
                f"There is no data folder {self.data}: make one with 'muniment --data {self.data} init', "
                "or name another with --data.",
                Exit.NOT_READY,
            )

    @contextmanager
    def database(self, half: Half) -> Iterator[Database]:
        """Open the half's database at this release's schema. Raises Failure and SchemaMismatch."""
        if half not in self.settings.halves:
            raise Failure(f"The {half} does not run here: add it to 'halves' in the settings.", Exit.REFUSED)
        self.must_exist()
        database = Database(self.installation.database_url(half))
        try:
            schema.check_schema(database, half)
            yield database
        finally:
            database.close()

    def migrate(self) -> None:
        """Bring the databases of the halves that run here to this release's schema."""
        for half in self.settings.halves:
            database = Database(self.installation.database_url(half))
            try:
                schema.migrate(database, half)
            finally:
                database.close()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the data folder for this process and its children alone. Raises Failure when another one serves it."""
        lock = os.open(self.installation.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._take(lock)
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(lock)

    def _take(self, lock: int) -> None:
        # The processes of a server that was killed let go within moments of it.
        deadline = time.monotonic() + 2
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = os.pread(lock, 20, 0).decode("ascii", "replace") or "unknown"
                    raise Failure(
                        f"The data folder {self.data} is in use by process {holder}: stop that server first, "
                        "or name another folder with --data.",
                        Exit.IN_USE,
                    ) from None
                time.sleep(0.05)
            else:
                return
