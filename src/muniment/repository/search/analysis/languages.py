"""In which language is a text?

With further languages, each object has a language: its property ``language_code`` names it, or else it is detected in
the object's text. The words of a further language are in the index as stems of that language, each with a mark at its
end.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from muniment.repository.refusals import IndexUnavailable
from muniment.repository.search.aql.tree import Value

if TYPE_CHECKING:  # The module is an extra.
    from py3langid.langid import LanguageIdentifier

CODES = {
    "ar": "Arabic",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "hu": "Hungarian",
    "it": "Italian",
    "nb": "Norwegian",
    "nl": "Dutch",
    "nn": "Norwegian",
    "no": "Norwegian",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "ta": "Tamil",
    "tr": "Turkish",
}
"""The codes of ISO 639-1, and the languages whose words the engine can reduce to stems."""

LANGUAGES = frozenset(CODES.values())
"""Languages whose words can be reduced to stems."""

PROPERTY = "language_code"
"""The property that names the language of an object: a code such as ``de`` or ``de_DE``, or an English name."""

MARKS = {language: chr(0x1681 + number) for number, language in enumerate(sorted(LANGUAGES))}
"""The mark at the end of each stem of a further language: a letter of Ogham, which no stemmer changes."""

_SHORTEST, _LOOKED_AT = 40, 4000
"""The fewest characters of a text whose language is detected, and the most characters that are looked at."""

_SURE = 0.9
"""The lowest probability at which a detected language counts."""

_NAMES = {language.casefold(): language for language in LANGUAGES}


class DetectorMissing(IndexUnavailable):
    """Languages cannot be detected."""


def by_name(text: str) -> str:
    """Return the language of ``LANGUAGES`` for a code of RFC 5646, a locale or an English name; empty if none fits."""
    code = text.strip().casefold()
    return _NAMES.get(code) or CODES.get(code.replace("_", "-").partition("-")[0], "")


def of_property(values: Mapping[str, Sequence[Value]]) -> str:
    return next((by_name(value) for value in values.get(PROPERTY, ()) if isinstance(value, str)), "")


def check_detector() -> None:
    if find_spec("py3langid") is None:
        raise DetectorMissing(
            "The setting repository.languages needs the Python module 'py3langid', which is not installed: run "
            "'make languages' (with pip: pip install 'muniment[languages]'), or leave the setting empty."
        )


def detect(text: str) -> str:
    """The answer is empty if the text is too short or its language is uncertain.

    It is also empty if the language is not one of ``LANGUAGES``.
    """
    text = text[:_LOOKED_AT]
    if len(text) < _SHORTEST:
        return ""
    code, probability = _detector().classify(text)
    return CODES.get(code, "") if probability >= _SURE else ""


@lru_cache(maxsize=1)
def _detector() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
