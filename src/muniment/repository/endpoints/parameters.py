"""Which parameters and headers may a request to the repository carry, and what does each mean?"""

from muniment.repository.endpoints.positions import HEADER
from muniment.web.addresses import TEXT, Parameter, Schema

_NUMBER: Schema = {"type": "integer", "minimum": 1}
_TRUTH: Schema = {"type": "boolean", "default": False}

REPOSITORY = Parameter("repository", "Name of a repository.", place="path")
OBJECT_ID = Parameter("id", "Id of an object; `.json` or `.xml` after it chooses the media type.", place="path")
ACL = Parameter("acl", "Id of an ACL, or a name that needs no owner beside it.", place="path")
TYPE_NAME = Parameter("name", "Name of an object type.", place="path")

PAGE = Parameter("page", "Number of the page.", {**_NUMBER, "default": 1})
ITEMS_PER_PAGE = Parameter("items-per-page", "How many members a page has at most.", _NUMBER)
INCLUDE_TOTAL = Parameter("include-total", "Whether all members are counted.", _TRUTH)
CURSOR = Parameter("cursor", "Where the page begins: the link `next` carries it.")
OBJECT_TYPE = Parameter("object-type", "An object type; those below it count as well.")
LIST = (PAGE, ITEMS_PER_PAGE, INCLUDE_TOTAL, CURSOR)
TYPED_LIST = (*LIST, OBJECT_TYPE)

WAIT_FOR = Parameter("wait-for", f"Position that the index must have reached, as `{HEADER}` states it.")
Q = Parameter("q", "Keywords; without them, everything the caller may see is found.")
LINK = Parameter("link", "A search that was posted: the links of its feed carry it.")
SEARCH = (PAGE, ITEMS_PER_PAGE, INCLUDE_TOTAL, WAIT_FOR)
KEYWORD_SEARCH = (Q, OBJECT_TYPE, LINK, *SEARCH)

OBJECT_NAME = Parameter("object-name", "Name of the new object: then the body is its content alone.")
CONTENT_COUNT = Parameter("content-count", "Accepted, and has no effect.")
ALL_PRIMARY = Parameter("all-primary", "Accepted, and has no effect.")
FORMAT = Parameter("format", "Media type of the content; any other format has no effect.")
CREATE = (OBJECT_NAME, OBJECT_TYPE, FORMAT, CONTENT_COUNT, ALL_PRIMARY)

DEL_NON_EMPTY = Parameter("del-non-empty", "Only `false` is offered.", {"const": "false"})
DELETE = (
    DEL_NON_EMPTY,
    *(
        Parameter(name, "Accepted, and has no effect.")
        for name in ("del-all-links", "del-version", "del-vd-all", "check-subscription")
    ),
)

CONTENT_PAGE = Parameter("page", "Page of the content; there is one, `0`.")
MODIFIER = Parameter("modifier", "Accepted, and has no effect.")
MEDIA_URL_POLICY = Parameter("media-url-policy", "Accepted, and has no effect.")
NETWORK_LOCATION = Parameter("network-location", "Accepted, and has no effect.")
MEDIA = (FORMAT, CONTENT_PAGE, MODIFIER, MEDIA_URL_POLICY)
DESCRIPTION = (*MEDIA, NETWORK_LOCATION)
REPLACE = (
    FORMAT,
    Parameter("page", "Page of the content; only `0` is offered.", {"const": "0"}),
    Parameter("primary", "Only `true` is offered.", {"const": "true"}),
    *(Parameter(name, "Accepted, and has no effect.") for name in ("overwrite", "content-length", "content-charset")),
)
FORCE = Parameter("force", "Accepted, and has no effect.")

IF_MATCH = Parameter("If-Match", "The `ETag` that the object must still have.", place="header")
IF_NONE_MATCH = Parameter("If-None-Match", "An `ETag` that the caller has already.", place="header")
RANGE = Parameter("Range", "The one range of bytes that is wanted.", place="header")
IF_RANGE = Parameter("If-Range", "The `ETag` for which `Range` counts.", place="header")
PLAIN_POSITION = Parameter(
    HEADER, "`plain`: an administrator wants the position as it is.", {"const": "plain"}, place="header"
)

LOCATION = Parameter("Location", "Address of the new thing.", place="header")
ETAG = Parameter("ETag", "Tag of this version, for `If-Match`.", TEXT, place="header")
POSITION = Parameter(HEADER, "Position of the change, or the one that the page is true to.", place="header")
