"""Disks of a test's own: small ones that can be filled to the last byte, and ones that can be made read-only."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

_AS_ROOT = ["unshare", "--mount", "--propagation", "private"]
_AS_ANYBODY = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"]


class SmallDisks:
    """Folders that lie on small disks of their own, which only the server started ``within`` them and its children see.

    They begin with what the folders hold outside.
    """

    def __init__(self, folders: list[Path], kibibytes: int) -> None:
        self._folders = folders
        steps = []
        for folder in folders:
            here, aside = shlex.quote(str(folder)), shlex.quote(f"{folder}.aside")
            steps += [
                f"mkdir -p {here} {aside}",
                f"mount -t tmpfs -o size={kibibytes}k,mode=0700 tmpfs {aside}",
                f"cp -a {here}/. {aside}/",
                f"mount --move {aside} {here}",
            ]
        self.command_prefix = [*_unshare(), "sh", "-e", "-c", "; ".join([*steps, 'exec "$@"']), "sh"]

    def fill(self, process: int, *, but: int = 0) -> None:
        """Write until not a byte more goes in, or so many bytes more."""
        for folder in self._folders:
            with (self._seen(process, folder) / "filler").open("ab", buffering=0) as filler:
                for size in (1 << 20, 4096, 1):
                    piece = b"x" * size
                    try:
                        while filler.write(piece):
                            pass
                    except OSError:
                        continue
                filler.truncate(filler.tell() - but)

    def free(self, process: int) -> None:
        """Give the room back."""
        for folder in self._folders:
            (self._seen(process, folder) / "filler").unlink()

    def seen(self, process: int, path: Path) -> Path:
        """Name a path of the server's as it is reached from here."""
        return self._seen(process, path)

    def enter(self, process: int) -> list[str]:
        """Give the words that start another command where the server's disks are."""
        return _enter(process)

    def _seen(self, process: int, folder: Path) -> Path:
        return Path(f"/proc/{process}/root{folder}")


class ReadOnlyFolder:
    """A folder that a server started ``within`` it can be made unable to write, and able again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        here = shlex.quote(str(folder))
        steps = f"mkdir -p {here}; mount --bind {here} {here}; mount -o remount,bind,ro {here}"
        self.command_prefix = [*_unshare(), "sh", "-e", "-c", f'{steps}; exec "$@"', "sh"]

    def writable(self, process: int) -> None:
        """Let it be written from now on."""
        self._remount(process, "rw")

    def read_only(self, process: int) -> None:
        """Let nothing be written from now on; nobody may have a file in it open for writing."""
        self._remount(process, "ro")

    def _remount(self, process: int, how: str) -> None:
        subprocess.run([*_enter(process), "mount", "-o", f"remount,bind,{how}", str(self._folder)], check=True)


def _enter(process: int) -> list[str]:
    return ["nsenter", "--target", str(process), "--mount", *([] if os.geteuid() == 0 else ["--user"])]


def _unshare() -> list[str]:
    if not shutil.which("unshare") or not shutil.which("nsenter"):
        pytest.skip("A disk of its own for a test takes unshare and nsenter (util-linux).")
    for words in (_AS_ROOT, _AS_ANYBODY):
        tried = subprocess.run([*words, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
        if tried.returncode == 0:
            return words
    pytest.skip("Nobody here may mount a disk: neither root nor user namespaces are to be had.")
