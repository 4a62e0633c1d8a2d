"""Read a small plain text file without a process of its own: its bytes only become characters, nothing is parsed."""

from muniment.repository.extraction import formats
from muniment.repository.extraction.characters import decode, tidy
from muniment.repository.extraction.findings import Extracted, Unsupported

LARGEST = 1 << 20
"""The largest file, in bytes, that is read here; the sandbox reads larger ones."""


def read(content: bytes, name: str, media_type: str, characters: int) -> Extracted | None:
    """Read the text of a file that its name or media type declares as plain text, unless its bytes contradict that.

    None for any other file, and for a file that holds no text: the sandbox finds out what it is. At most
    ``characters`` characters are kept.
    """
    if not content or len(content) > LARGEST or not formats.is_plain(content[: formats.HEAD], name, media_type):
        return None
    try:
        text = decode(content)
    except Unsupported:
        return None
    return cut(text, "", characters)


def cut(text: str, note: str, characters: int) -> Extracted:
    """Tidy a text and cut it to ``characters``; the note says so if something was cut off."""
    text = tidy(text, characters)
    if len(text) == characters:
        return Extracted(text, f"Only the first {characters} characters were kept.")
    return Extracted(text, note)
