"""Compounds are taken apart by what a dictionary of word forms teaches (decision 0094)."""

from pathlib import Path

import pytest

from muniment.repository.search.analysis import compounds
from muniment.repository.search.analysis.compounds import Compounds

pytestmark = pytest.mark.slow

WHOLE = """
Vertrag Verstand Gewand Palast Versprechen Unternehmer Hersteller Ergebnis Wissenschaft Gelegenheit Lehrerin
Nachricht Minister Temperatur Schmetterling Universität Organisation arbeiten schreiben natürlich Interesse
Internet something development engineering information Tag Ei x
"""


@pytest.mark.parametrize(
    "parts",
    [
        "Dampf|maschine",
        "DAMPF|MASCHINE",
        "Kauf|verträge",
        "Kranken|häuser",
        "Donau|dampf|schiff|fahrt",
        "Versicherungs|gesellschaft",
        "Druck|maschinen|hersteller",
        "Schul|buch",
        "Schreib|tisch",
        "Sonnen|schein",
        "Straßen|bahn",
        "Strassen|bahn",
        "Fuß|ball|verein",
        "Kühl|schrank",
        "Erd|gas",
        "Öl|pumpe",
        "Rat|haus",
        "Tages|ordnung",
        "Arbeits|unfähigkeits|bescheinigung",
    ],
)
def test_a_compound_has_its_parts(german: Compounds, parts: str) -> None:
    assert german.parts(parts.replace("|", "")) == tuple(parts.split("|"))


@pytest.mark.parametrize("word", WHOLE.split())
def test_another_word_has_none(german: Compounds, word: str) -> None:
    assert german.parts(word) == (word,)


def test_what_is_odd_or_long_is_left_alone(german: Compounds) -> None:
    for word in ("", "ß" * 8, "maschine" * 100, "dampf7maschine", "\ud800" * 8, "İstanbul" * 2, "ﬁxpunkt" * 2):
        assert "".join(german.parts(word)) == word


def test_what_was_learned_is_read_again(german: Compounds, tmp_path: Path) -> None:
    german.write(tmp_path / "learned")
    assert Compounds.read(tmp_path / "learned").parts("Kaufvertrag") == ("Kauf", "vertrag")


def test_only_german_has_rules() -> None:
    assert compounds.rules(["English", "French"]) == 0
    assert compounds.rules(["English", "German"]) == compounds.RULES
