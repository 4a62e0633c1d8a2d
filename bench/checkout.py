"""Another commit of ours, checked out in a temporary place, with a Python that runs its code."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from bench import processes
from bench.page import ROOT

if TYPE_CHECKING:
    from bench.ours import Data

Given = TypeVarTuple("Given")
Made = TypeVar("Made")

_CALL = """
import dataclasses, importlib, json, sys
from pathlib import Path
from bench.ours import Data
module, name, about, arguments = json.load(sys.stdin)
first = Path(about) if isinstance(about, str) else Data(**{**about, "folder": Path(about["folder"])})
made = getattr(importlib.import_module(module), name)(first, *arguments)
made = dataclasses.asdict(made) if dataclasses.is_dataclass(made) else made
print(json.dumps(made, default=str))
"""


@dataclass(frozen=True)
class Checkout:
    """A commit whose code is in ``folder``, and a Python that finds it there."""

    commit: str
    folder: Path
    python: Path

    def command(self, *arguments: str) -> list[str]:
        """Write a command line of its Python, which a path in the environment does not lead elsewhere."""
        return ["env", "-u", "PYTHONPATH", str(self.python), *arguments]

    def call(self, module: str, name: str, about: object, *arguments: object) -> Any:
        """Call a function of the bench as it was at that commit, with a folder or a ``Data`` and what JSON can hold.

        Raises RuntimeError with what it said when it fails.
        """
        given = json.dumps([module, name, about, arguments], default=str)
        command = self.command("-c", _CALL)
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, cwd=self.folder)
        if done.returncode:
            raise RuntimeError(f"{module}.{name} at {self.commit} failed: {done.stderr.strip()[-600:]}")
        return json.loads(done.stdout.splitlines()[-1])


def as_it_was(function: "Callable[[Data, *Given], Made]") -> "Callable[[Data, *Given], Made]":
    """Let the function of this name at the data folder's commit do the work: tables and indexes may differ there."""

    @wraps(function)
    def do(data: "Data", /, *given: *Given) -> Made:
        if data.checkout is None:
            return function(data, *given)
        about = {key: value for key, value in asdict(data).items() if key != "checkout"}
        as_lists = (list(each) if isinstance(each, Iterator) else each for each in given)
        made: Made = data.checkout.call(function.__module__, function.__name__, about, *as_lists)
        return made

    return do


@contextmanager
def checked_out(revision: str, scratch: Path) -> Iterator[Checkout]:
    """Check a commit out for the block. Raises RuntimeError if there is none of that name, or if it cannot be run."""
    git = ("git", "-C", str(ROOT))
    try:
        commit = processes.run([*git, "rev-parse", "--verify", "--short", f"{revision}^{{commit}}"]).strip()
    except RuntimeError as error:
        raise RuntimeError(f"there is no commit {revision} here: {error}") from error
    folder = scratch / "checkout"
    processes.run([*git, "worktree", "add", "--detach", folder, commit])
    try:
        checkout = Checkout(commit, folder, _python(folder, scratch / "environment"))
        said = processes.run(checkout.command("-c", "import muniment; print(muniment.__file__)"))
        if not Path(said.strip()).is_relative_to(folder):
            raise RuntimeError(f"{checkout.python} runs {said.strip()}, not {commit}")
        yield checkout
    finally:
        processes.run([*git, "worktree", "remove", "--force", folder])


def _python(folder: Path, environment: Path) -> Path:
    """Make an environment for the code in a folder: with our packages if it locks the same ones, otherwise its own."""
    lock = "requirements.lock"
    same = (folder / lock).read_bytes() == (ROOT / lock).read_bytes()
    processes.run([sys.executable, "-m", "venv", *(["--without-pip"] if same else []), environment])
    python = environment / "bin" / "python"
    if same:
        (packages,) = environment.glob("lib/python*/site-packages")
        ours = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
        (packages / "checkout.pth").write_text("\n".join([str(folder / "src"), *ours]) + "\n")
    else:
        install: list[str | Path] = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        print("    installing the packages that it locks", flush=True)
        for each in (lock, "requirements-build.lock"):
            processes.run([*install, "--require-hashes", "-r", folder / each])
        processes.run([*install, "--no-deps", "--no-build-isolation", "--editable", folder])
    return python
