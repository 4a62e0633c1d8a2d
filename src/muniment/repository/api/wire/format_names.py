"""Names of content formats, as clients of the system in the field write them: `crtext` means `text/plain`.

Source: docs/interface.md, ours 3.
"""

from collections.abc import Mapping

from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import WrongValue

_OFFICE = "application/vnd.openxmlformats-officedocument"

_MEDIA_TYPES: Mapping[str, str] = {
    "crtext": "text/plain",
    "text": "text/plain",
    "html": "text/html",
    "pub_html": "text/html",
    "xml": "application/xml",
    "json": "application/json",
    "csv": "text/csv",
    "rtf": "application/rtf",
    "pdf": "application/pdf",
    "msw8": "application/msword",
    "msw12": f"{_OFFICE}.wordprocessingml.document",
    "excel8book": "application/vnd.ms-excel",
    "excel12book": f"{_OFFICE}.spreadsheetml.sheet",
    "ppt8": "application/vnd.ms-powerpoint",
    "ppt12": f"{_OFFICE}.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "epub": "application/epub+zip",
    "msg": "application/vnd.ms-outlook",
    "eml": "message/rfc822",
    "zip": "application/zip",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "png": "image/png",
    "tiff": "image/tiff",
    "svg": "image/svg+xml",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "unknown": "application/octet-stream",
}
"""Answers show the first of several names."""


def media_type(name: str, names: RepositoryNames) -> str:
    """A media type means itself.

    Raises WrongValue.
    """
    of_format = media_type_or_same(name, names)
    if "/" not in of_format:
        raise WrongValue(
            f"There is no format {name[:100]!r}: give a media type, or one of {', '.join(all_format_names(names))}."
        )
    return of_format


def media_type_or_same(name: str, names: RepositoryNames) -> str:
    """Any other text stays the same."""
    return all_format_names(names).get(name.strip().lower(), name)


def name(media_type: str, names: RepositoryNames) -> str:
    essence = media_type.partition(";")[0].strip().lower()
    return next((name for name, of_format in all_format_names(names).items() if of_format == essence), media_type)


def all_format_names(names: RepositoryNames) -> Mapping[str, str]:
    return {
        **names.formats,
        **{name: media_type for name, media_type in _MEDIA_TYPES.items() if name not in names.formats},
    }
