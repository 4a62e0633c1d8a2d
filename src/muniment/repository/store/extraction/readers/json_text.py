"""What is the text of JSON? Its escapes become characters. Long runs of base64, as notebooks hold pictures, are none.
The rest stays as written, so JSON that is cut off, malformed or nested deep is read.
"""

import re

from muniment.repository.store.extraction.findings import Extracted
from muniment.repository.store.extraction.readers.characters import decode

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\"\\/bfnrt]))")
_CHARACTERS = {"n": "\n", "r": "\n", "t": " ", "b": " ", "f": "\n"}
_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{60,}={0,2}(?:\\r)?(?:\\n)?){3,}[A-Za-z0-9+/_-]*={0,2}|(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{200,}={0,2}"
)


def read(content: bytes, charset_name: str) -> Extracted:
    """Raises Unsupported."""
    text, note = decode(content, charset_name)
    text = _ESCAPE.sub(_character, _BASE64.sub("", text))
    # A character beyond U+FFFF is written as two surrogates.
    return Extracted(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), note)


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _CHARACTERS.get(escape[2], escape[2])
