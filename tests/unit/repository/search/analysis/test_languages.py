"""Languages: which one is a text in?"""

import pytest

from muniment.repository.search.analysis import languages
from muniment.repository.search.analysis.analysis import Analyser

TEXTS = {
    "Danish": "Regeringen besluttede onsdag at renovere byens huse og forny gaderne, fordi mange af dem er gamle.",
    "Dutch": "De regering heeft woensdag besloten de huizen van de stad te renoveren en de straten te vernieuwen.",
    "English": "The government decided on Wednesday to renovate the houses of the city and to renew the streets.",
    "French": "Le gouvernement a décidé mercredi de rénover les maisons de la ville et de refaire les rues.",
    "German": "Die Regierung hat am Mittwoch beschlossen, die Häuser der Stadt und die Straßen zu erneuern.",
    "Italian": "Il governo ha deciso mercoledì di ristrutturare le case della città e di rinnovare le strade.",
    "Norwegian": "Regjeringen bestemte onsdag å pusse opp husene i byen og fornye gatene, fordi mange av dem er gamle.",
    "Portuguese": "O governo decidiu na quarta-feira renovar as casas da cidade e as ruas que não são novas.",
    "Russian": "Правительство решило в среду отремонтировать дома города и обновить улицы.",
    "Spanish": "El gobierno decidió el miércoles renovar las casas de la ciudad y reparar las calles viejas.",
    "Swedish": "Regeringen beslutade på onsdagen att renovera stadens hus och förnya gatorna, eftersom många är gamla.",
}


@pytest.mark.slow
@pytest.mark.parametrize("language", TEXTS)
def test_a_sentence_shows_its_language(language: str) -> None:
    assert languages.detect(TEXTS[language]) == language
    assert languages.detect(TEXTS[language].upper()) == language


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "",
        "Häuser",
        "0 " * 500,
        "Rząd postanowił w środę wyremontować domy w mieście i odnowić ulice.",
        "政府は水曜日に市内の家屋を改修し、道路を新しくすることを決定しました。政府は水曜日に市内の家屋を改修し、道路を新しくすることを決定しました。",
    ],
)
def test_no_language_is_guessed(text: str) -> None:
    """Too short, without words, or in a language of which no stems are known."""
    assert languages.detect(text) == ""


@pytest.mark.parametrize(
    ("text", "language"),
    [
        *[("de", "German"), ("DE", "German"), ("de-AT", "German"), ("de_DE", "German"), (" german ", "German")],
        *[("nb", "Norwegian"), ("nn-NO", "Norwegian"), ("pt_BR", "Portuguese"), ("pl", ""), ("", ""), ("deutsch", "")],
    ],
)
def test_a_code_a_locale_and_a_name_mean_a_language(text: str, language: str) -> None:
    assert languages.by_name(text) == language


@pytest.mark.parametrize("own", sorted(languages.LANGUAGES))
def test_the_marked_stems_of_a_language_are_those_of_no_other(own: str) -> None:
    """The stemmer of the index's own language leaves marked stems apart from its own, and from those of the others."""
    analyser = Analyser(own, others=languages.LANGUAGES)
    for word in ("houses", "Häuser", "maisons", "случаев", "καλημέρα", "evlerimizden", "كتابات", "மரங்கள்"):
        stems = [tuple(stem for _, stem in analyser.stem(word, each)) for each in ("", *analyser.others)]
        assert len(set(stems)) == len(stems)
        assert all(len(each) == len(stems[0]) for each in stems)
