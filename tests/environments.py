"""Environments for other people's programs that need what the house has in other versions, or not at all."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def environment(lock: Path, *options: str) -> Path:
    """Give an environment that holds what the lock lists, made if it is not there yet; ``options`` go to pip.

    Where no package registry is to be reached, the test is skipped.
    """
    mark = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = ROOT / "var" / f"{lock.stem}-{mark}"
    if not (folder / "ready").exists():
        _make(folder, "--require-hashes", *options, "-r", str(lock))
        (folder / "ready").touch()
    return folder


def with_our_wheel(folder: Path) -> Path:
    """Build our wheel, and give an environment that holds it with the newest versions that pyproject.toml allows.

    Where no package registry is to be reached, the test is skipped.
    """
    built = [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-build-isolation", "-w"]
    subprocess.run([*built, str(folder), str(ROOT)], check=True, timeout=120)
    (wheel,) = folder.glob("muniment-*.whl")
    environment = folder / "environment"
    _make(environment, str(wheel))
    return environment


def _make(folder: Path, *what: str) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, timeout=120)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    done = subprocess.run([*pip, *what], capture_output=True, text=True, timeout=900, check=False)
    if "Failed to establish a new connection" in done.stdout + done.stderr:
        pytest.skip(f"{what[-1]} cannot be installed: no package registry is to be reached.")
    assert done.returncode == 0, done.stderr[-3000:]
