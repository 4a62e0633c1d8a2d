"""What reaches a terminal from strangers: shown, never obeyed."""

from pathlib import Path

import pytest
from rich.console import Console

from muniment.cli import commands, terminal


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain [bold] é 日本 \U0001f600", "plain [bold] é 日本 \U0001f600"),
        ("two\nlines\rand\ttabs", "two\ufffdlines\ufffdand\ufffdtabs"),
        ("\x1b]0;title\x07\x9b2J\x7f\x00", "\ufffd]0;title\ufffd\ufffd2J\ufffd\ufffd"),
        ("exe\u202ecod\u2066.\u2028", "exe\ufffdcod\ufffd.\ufffd"),
    ],
)
def test_what_a_terminal_would_obey_is_replaced(given: str, shown: str) -> None:
    assert terminal.harmless(given) == shown


def test_a_row_stays_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.table(["Name", "Description"], [["a\nb", "c\td"]])
    assert capsys.readouterr().out == "a\ufffdb\tc\ufffdd\n"


@pytest.mark.parametrize("cell", [r"x\[/a]", r"\[red]x", "[/a]", "[b]x[/b]", ":warning: [link=https://x]x", "x\\"])
def test_a_cell_is_shown_as_it_is_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, cell: str
) -> None:
    monkeypatch.setattr(terminal, "console", Console(force_terminal=True, color_system="standard", width=80))
    terminal.table(["Name", "Number"], [[cell, 1]], header=False)
    assert capsys.readouterr().out == f" {cell}  1 \n"


def test_the_text_beside_a_bar_is_shown_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(terminal, "errors", Console(stderr=True, force_terminal=True, width=100))
    with terminal.Counting("Checking [b]main[/a] :warning: \x1b]0;title\x07", None) as bar:
        bar.reach(7)
    printed = capsys.readouterr().err
    assert "Checking [b]main[/a] :warning: \ufffd]0;title\ufffd" in printed
    assert "7/?" in printed


def test_the_text_of_a_count_is_printed_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_LINE_SECONDS", 0.0)
    with terminal.Counting("Checking [b]main[/a] :warning: \x1b", None) as bar:
        bar.reach(7)
    assert capsys.readouterr().err == "Checking [b]main[/a] :warning: \ufffd: 7\n"


def test_a_sentence_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.errors.print("There is no [b]main[/a] :warning: here.")
    assert capsys.readouterr().err == "There is no [b]main[/a] :warning: here.\n"


def test_what_a_terminal_would_obey_is_replaced_in_the_sentence_of_a_failure(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert commands.run(["--data", str(tmp_path / "none\x1b[2J"), "user", "list", "people"]) != 0
    printed = capsys.readouterr().err
    assert printed.startswith("muniment: ")
    assert "none\ufffd[2J" in printed
