"""A small plain text is read without a process of its own: nothing is parsed, bytes are turned into characters."""

from muniment.repository.extraction import formats
from muniment.repository.extraction.characters import decoded, tidied
from muniment.repository.extraction.findings import Extracted, Unsupported

LARGEST = 1 << 20
"""Most bytes of a file that is read here; a larger one goes the way of all others."""


def read(content: bytes, name: str, media_type: str, characters: int) -> Extracted | None:
    """Read the text of a file whose name or media type says that it is plain text, and whose bytes do not deny it.

    None for any other file, and for one that turns out to hold no text: the sandbox is to say what it is. At most
    ``characters`` characters are kept.
    """
    if not content or len(content) > LARGEST or not formats.is_plain(content[: formats.HEAD], name, media_type):
        return None
    try:
        text = decoded(content)
    except Unsupported:
        return None
    return kept(text, "", characters)


def kept(text: str, note: str, characters: int) -> Extracted:
    """Tidy a text and cut it to what is kept, with a note where something was cut off."""
    text = tidied(text, characters)
    if len(text) == characters:
        return Extracted(text, f"Only the first {characters} characters were kept.")
    return Extracted(text, note)
