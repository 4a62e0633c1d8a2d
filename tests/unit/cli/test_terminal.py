"""What reaches a terminal from strangers: shown, never obeyed."""

import pytest

from muniment.cli import terminal


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
