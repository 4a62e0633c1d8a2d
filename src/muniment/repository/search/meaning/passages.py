"""Which texts of an object does the model read?

It reads at most 256 tokens at a time, about 180 English words.
"""

import hashlib
import re

from muniment.repository.store.objects.table import StoredObject

MOST = 16

MODEL = "all-MiniLM-L6-v2"

_WORDS, _CHARACTERS = 180, 1400

READ = MOST * _CHARACTERS
"""The model reads so many characters of a text; nothing here depends on the rest."""

_word = re.compile(r"\S+")


def passages(heading: str, text: str) -> list[str]:
    """Cut heading and text; without text, there are none. The vector of a heading alone, such as a folder's name, would
    be near nearly every question. A short last passage begins with words of the one before, as the vector of a few
    words would be near too many questions.
    """
    words = [word for match in _word.finditer(_read_by_model(heading, text)) for word in _pieces(match.group())]
    starts = [0]
    while (end := _end(words, starts[-1])) < len(words) and len(starts) < MOST:
        starts.append(end)
    if len(starts) > 1 and end == len(words):
        starts[-1] = _start(words, end)
    return [" ".join(words[start : _end(words, start)]) for start in starts] if words else []


def digest(heading: str, text: str) -> bytes:
    """Return 16 bytes of all that an embedding depends on."""
    read = f"{MODEL}\0{_read_by_model(heading, text)}"
    return hashlib.blake2b(read.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def heading(stored: StoredObject) -> str:
    """Return the title, or the name without one."""
    return stored.title or stored.name


def _read_by_model(heading: str, text: str) -> str:
    """Do not repeat the heading if the text begins with it."""
    beginning = text[:READ]
    if not beginning.strip():
        return ""
    cuts_a_word = heading and beginning[len(heading) : len(heading) + 1].strip()
    if beginning.startswith(heading) and not cuts_a_word:
        return beginning
    return f"{heading[:_CHARACTERS]}\n{beginning}"


def _end(words: list[str], start: int) -> int:
    end, characters = start, -1
    while end < min(len(words), start + _WORDS) and characters + 1 + len(words[end]) <= _CHARACTERS:
        characters += 1 + len(words[end])
        end += 1
    return end


def _start(words: list[str], end: int) -> int:
    start, characters = end, -1
    while start > max(0, end - _WORDS) and characters + 1 + len(words[start - 1]) <= _CHARACTERS:
        start -= 1
        characters += 1 + len(words[start])
    return start


def _pieces(word: str) -> list[str]:
    return [word[at : at + _CHARACTERS] for at in range(0, len(word), _CHARACTERS)]
