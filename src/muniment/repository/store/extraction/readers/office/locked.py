"""How is a file opened that Office has encrypted for nobody?

Excel encrypts a workbook whose structure is protected, and opens it by this password without asking (MS-XLS 2.4.191,
MS-OFFCRYPTO 2.3).
"""

import io
from typing import BinaryIO

from msoffcrypto.exceptions import FileFormatError, InvalidKeyError
from msoffcrypto.format.ooxml import OOXMLFile

from muniment.repository.store.extraction.findings import Unreadable

_STANDING_PASSWORD = "VelvetSweatshop"  # noqa: S105 - this one keeps no secret


def opened(content: bytes) -> BinaryIO:
    """Raises Unreadable if it has a password of its own."""
    out = io.BytesIO()
    try:
        file = OOXMLFile(io.BytesIO(content))
        file.load_key(password=_STANDING_PASSWORD, verify_password=True)
        file.decrypt(out)
    except (InvalidKeyError, FileFormatError) as error:
        raise Unreadable("The file is encrypted: it opens only with a password.") from error
    except Exception as error:  # the library raises many for damaged bytes
        raise Unreadable("The file is encrypted, and damaged or encrypted in an unknown way.") from error
    out.seek(0)
    return out
