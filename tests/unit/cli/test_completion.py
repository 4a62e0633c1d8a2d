"""The completion script is made from the commands, and a shell takes it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.test_commands import Muniment


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    return Muniment(tmp_path, capsys)("completion", "bash")


def complete(script: str, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    listed = " ".join(f"'{word}'" for word in ("muniment", *words))
    asked = f"{script}\nCOMP_WORDS=({listed}); COMP_CWORD={len(words)}; _muniment; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-eu"], input=asked, capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.split()


@pytest.mark.slow
def test_bash_completes_commands_and_options(script: str) -> None:
    assert {"user", "search", "object"} <= set(complete(script, ""))
    assert complete(script, "us") == ["user"]
    assert set(complete(script, "user", "re")) == {"remove", "rename"}
    assert complete(script, "user", "remove", "--g") == ["--give-to"]
    assert complete(script, "--data", "user", "gro") == ["group"], "an option's value is no command"
    assert complete(script, "user", "list", "staff", "--j") == ["--json"]
    assert complete(script, "user", "--da") == ["--data"]
    assert "demo" not in complete(script, "")
    assert complete(script, "none", "") == complete(script, "")


def test_zsh_gets_the_same_through_its_own_bridge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    muniment = Muniment(tmp_path, capsys)
    written = muniment("completion", "zsh")
    assert written.startswith("autoload -U +X bashcompinit && bashcompinit\n")
    if shell := shutil.which("zsh"):
        subprocess.run([shell, "-n"], input=written, text=True, check=True, timeout=30)
    muniment("completion", "fish", code=2)
