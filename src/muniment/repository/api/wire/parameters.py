"""Which parameters and headers may a request to the repository carry, and what does each mean?

The table of addresses says which each method takes.

Source: docs/interface.md, ours 1.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.requests import Request

from muniment.ground.refusals import Malformed
from muniment.repository.api.wire.positions import HEADER
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import NotOfferedYet
from muniment.web.addresses import TEXT, Operation, Parameter, Schema
from muniment.web.answers.responses import add_header
from muniment.web.requests import bodies

_NUMBER: Schema = {"type": "integer", "minimum": 1}
_TRUTH: Schema = {"type": "boolean", "default": False}
NOT_YET = "is not offered yet"


def _refused(reason: str, *names: str) -> tuple[Parameter, ...]:
    """Refuse what the interface knows, unless the value is in ``_NO_EFFECT``."""
    return tuple(Parameter(name, "", refused=reason) for name in names)


IF_MATCH = Parameter("If-Match", "The `ETag` that the object must still have.", place="header")
IF_NONE_MATCH = Parameter("If-None-Match", "An `ETag` that the caller has already.", place="header")
RANGE = Parameter("Range", "The one range of bytes that is wanted.", place="header")
IF_RANGE = Parameter("If-Range", "`Range` is used only if the content still has this `ETag`.", place="header")
PLAIN_POSITION = Parameter(
    HEADER, "`plain`: an administrator asks for the position unsealed.", {"const": "plain"}, place="header"
)
WRITE = (PLAIN_POSITION,)
CONDITIONAL_WRITE = (IF_MATCH, PLAIN_POSITION)

PARTS = tuple(
    Parameter(name, meaning, place="path")
    for name, meaning in {
        "repository": "Name of a repository.",
        "id": "Id of an object, a relation or a comment; `.json` or `.xml` after it chooses the media type.",
        "acl": "Id of an ACL, or a name that needs no owner beside it.",
        "name": "Name of an object type.",
        "relation_type": "Name of a type of relations.",
        "format": "Name of a format of contents.",
        "location": "Name of a network location.",
        "other": "Id of the folder or object at the other end of a link.",
        "person": "Id of a user or group, `name@partition`.",
        "member": "Id of a user or group that is directly in the group.",
        "search": "Id of a saved search.",
        "template": "Id of a search template.",
    }.items()
)

PAGE = Parameter("page", "Number of the page; 0 is read as 1.", {"type": "integer", "minimum": 0, "default": 1})
ITEMS_PER_PAGE = Parameter(
    "items-per-page",
    "How many members a page has at most. A larger number counts as the largest that the server allows.",
    _NUMBER,
)
INCLUDE_TOTAL = Parameter("include-total", "Whether all members are counted.", _TRUTH)
CURSOR = Parameter("cursor", "Where the page begins: the link `next` carries it.")
OBJECT_TYPE = Parameter("object-type", "An object type; those below it count as well.")
FILTER = Parameter("filter", "A condition that the members meet (docs/filters.md).")
SORT = Parameter("sort", "Properties to sort by, each with `ASC` or `DESC` and `no-case` if need be.")
VIEW = Parameter("view", "Which properties are shown: `:default`, `:all`, or a list of names.")
INLINE = Parameter("inline", "Whether each entry carries the thing itself.", _TRUTH)
LINKS = Parameter("links", "Whether entries and things carry their links.", {"type": "boolean", "default": True})
LIST = (
    *(PAGE, ITEMS_PER_PAGE, INCLUDE_TOTAL, CURSOR, FILTER, SORT, VIEW, INLINE, LINKS),
    *_refused(NOT_YET, "locations", "facet"),
)
TYPED_LIST = (*LIST, OBJECT_TYPE)
RELATED_OBJECT = Parameter(
    "related-object-id", "Id of an object. Only relations that have this object at one of their ends are listed."
)
RELATED_ROLE = Parameter(
    "related-object-role",
    "The end at which that object stands.",
    {"type": "string", "enum": ["any", "parent", "child"], "default": "any"},
)
RELATION_NAME = Parameter("relation-name", "Name of a relation type. Only relations of this type are listed.")
RELATIONS = (*LIST, RELATED_OBJECT, RELATED_ROLE, RELATION_NAME)
ALL_VERSIONS = Parameter(
    "include-all-versions", "Whether former versions are listed, too, after the current ones.", _TRUTH
)
FOLDER_LIST = (*TYPED_LIST, ALL_VERSIONS, *_refused(NOT_YET, "hide-shared-parent"))

WAIT_FOR = Parameter("wait-for", f"Position that the index must have reached, as `{HEADER}` states it.")
Q = Parameter("q", "Keywords; without them, everything the caller may see is found.")
LINK = Parameter("link", "A search that was posted: the links of its feed carry it.")
FACET = Parameter("facet", "A property by whose values the hits are counted.")
TIMEZONE = Parameter(
    "timezone", "Where the days of a facet of dates begin: a region, an abbreviation, or an offset such as `GMT-8:00`."
)
FACET_VALUES = Parameter(
    "facet-value-constraints", "Values of `facet` that hits have; `+` (sent as `%2B`) means AND, `|` means OR."
)
FACET_IDS = Parameter(
    "facet-id-constraints", "Pairs `id=values` of a facet's id and its values, separated by `,` or `;`."
)
LOCATIONS = Parameter("locations", "Paths of folders, with commas between: hits lie in one of them or further down.")
COLLECTIONS = Parameter("collections", "Accepted, and has no effect: a repository has one index.")
QUERY_LOCALE = Parameter(
    "query-locale",
    "The language of the keywords, such as `de` or `de_DE`, if the repository's texts have several. Without it, a word "
    "is looked up in each of them.",
)
SAVED_LOCALE = Parameter("query-locale", "Accepted, and has no effect: give it where the search is executed.")
WORDS = Parameter(
    "words",
    "How many of the words of a search a hit needs: `all`; `any`; or `auto`, which is `any` if fewer hits than fill a "
    "page have all words, else `all`. A GET with `q` is `auto` unless the server says otherwise, and every other "
    "search is `all`.",
    {"type": "string", "enum": ["all", "any", "auto"]},
)
TYPED = Parameter(
    "typed",
    "Whether somebody typed the question: then hits that hold its words as they follow each other come first, and `q` "
    "is read as people type. It is true unless all words are needed.",
    {"type": "boolean"},
)
MEANING = Parameter(
    "meaning",
    "Whether a search by words also finds what is near in meaning: `true`; `false`; or `auto`, which is `true` only "
    "if any of the words is enough. `true` is refused by a server that does not search by meaning.",
    {"type": "string", "enum": ["auto", "true", "false"]},
)
MARKS = Parameter(
    "marks",
    "`true`: each hit has `marks`, the places of its summary that match. `start` is the number of the first character, "
    "counted from 0, and `end` that of the character after the last one.",
    _TRUTH,
)
COLLAPSE = Parameter(
    "collapse",
    "`content`: of the hits with equal content that the caller may read, the first one stands for all, and `copies` "
    "says how many others there are. Total and facets count these too.",
    {"type": "string", "enum": ["none", "content"], "default": "none"},
)
_KEYWORDS = (Q, OBJECT_TYPE, SORT, LINK, FACET, TIMEZONE, FACET_VALUES, LOCATIONS, COLLECTIONS)
_IN_DOCUMENT = "belongs to a GET; a POST says it in the query document"
_DOCUMENT = _refused(_IN_DOCUMENT, *(parameter.name for parameter in _KEYWORDS))
_SEARCH = (
    *(PAGE, ITEMS_PER_PAGE, INCLUDE_TOTAL, VIEW, INLINE, LINKS, MARKS, COLLAPSE, WAIT_FOR, FACET_IDS),
    *(QUERY_LOCALE, WORDS, TYPED, MEANING, PLAIN_POSITION),
)
KEYWORD_SEARCH = (*_KEYWORDS, CURSOR, *_SEARCH)
DOCUMENT_SEARCH = (*_SEARCH, *_DOCUMENT, *_refused(_IN_DOCUMENT, CURSOR.name))
SAVED_SEARCH = (*_SEARCH, *_DOCUMENT, CURSOR, IF_NONE_MATCH)
SUGGESTIONS = Parameter(
    "limit",
    "How many completions are shown at most, up to 50.",
    {"type": "integer", "minimum": 1, "default": 10},
)
_SIMILAR_ITEMS = Parameter(
    ITEMS_PER_PAGE.name,
    "How many documents are listed at most. A larger number counts as the largest that the server allows.",
    {**_NUMBER, "default": 10},
)
SIMILAR = (_SIMILAR_ITEMS, INCLUDE_TOTAL, VIEW, INLINE, LINKS, WAIT_FOR)
EXPLAINED = Parameter("object", "Id of the object of which the answer explains why it is a hit, or why it is none.")
FOR_USER = Parameter("for", "A user, `name@partition`, whose search an administrator has explained.")
_EXPLANATION = (EXPLAINED, FOR_USER, WAIT_FOR, FACET_IDS, QUERY_LOCALE, WORDS, TYPED, MEANING, PLAIN_POSITION)
KEYWORD_EXPLANATION = (*_EXPLANATION, *_KEYWORDS)
DOCUMENT_EXPLANATION = (*_EXPLANATION, *_DOCUMENT)
START = Parameter(
    "start",
    "How many hits of each repository are passed over.",
    {"type": "integer", "minimum": 0, "default": 0},
)
LIMIT = Parameter(
    "limit",
    "How many hits of each repository are shown at most. A larger number counts as the largest that the server allows.",
    _NUMBER,
)
REPOSITORIES = Parameter(
    "repositories",
    "Names of repositories, with commas between (a comma within a name as `\\,`); without it, all that the credentials "
    "open.",
)
_SEVERAL = (
    *(START, LIMIT, REPOSITORIES, INCLUDE_TOTAL, VIEW, INLINE, LINKS, MARKS, FACET_IDS),
    *(QUERY_LOCALE, WORDS, TYPED, MEANING),
    *_refused(NOT_YET, "wait-for"),
    *_refused("belongs to a repository; this address has 'start' and 'limit'", "page", "items-per-page", "cursor"),
    *_refused("belongs to a search of one repository: copies in several are not sought", "collapse"),
)
KEYWORD_SEARCH_OF_SEVERAL = (*_KEYWORDS, *_SEVERAL)
DOCUMENT_SEARCH_OF_SEVERAL = (*_SEVERAL, *_DOCUMENT, *_refused(_IN_DOCUMENT, CURSOR.name))
MAX_RESULTS = Parameter(
    "max-results-count",
    "How many results are stored at most. -1 and larger numbers count as the largest that the server allows.",
    {"type": "integer", "minimum": -1, "default": 1000},
)
STORED_RESULTS = (
    *(PAGE, ITEMS_PER_PAGE, INCLUDE_TOTAL, CURSOR, VIEW, INLINE, LINKS),
    *_refused(NOT_YET, "filter", "sort", "facet-id-constraints"),
)
STORING = (MAX_RESULTS, *STORED_RESULTS, WAIT_FOR)
SAVING = (SAVED_LOCALE, *_refused(NOT_YET, "inline"))

SINGLE = _refused(NOT_YET, "view", "inline", "links")
SHOWING = (VIEW, LINKS, IF_NONE_MATCH, *_refused(NOT_YET, "inline"))

DQL = Parameter("dql", "A statement in DQL: the answer shows its rows instead of the repository (docs/dql.md).")
REPOSITORY = (
    *(DQL, PAGE, ITEMS_PER_PAGE, INCLUDE_TOTAL, CURSOR, INLINE, LINKS),
    *_refused(NOT_YET, "include-domains"),
)

OBJECT_NAME = Parameter("object-name", "Name of the new object: then the body is its content alone.")
CONTENT_COUNT = Parameter(
    "content-count",
    "How many contents the body has. If the number is wrong, the request is refused.",
    {"type": "integer", "minimum": 0},
)
ALL_PRIMARY = Parameter(
    "all-primary",
    "`false`: of several contents the first is the main content, and the others are renditions. Otherwise they are the "
    "pages of the primary content. Without it, `modifier` makes them renditions.",
    {"type": "boolean", "default": True},
)
PAGES = Parameter("page", "Pages of the contents, with commas between. Pages without a number are counted on, from 0.")
FORMAT = Parameter("format", "Format of the content: a media type, or a format name such as `crtext` or `pdf`.")
FORMATS = Parameter(
    "format", "Formats of the contents, with commas between: media types, or format names such as `crtext` or `pdf`."
)
MODIFIER = Parameter("modifier", "A text that tells a rendition from others of the same format and page.")
MODIFIERS = Parameter("modifier", "Modifiers of the contents, with commas between; a main content has none.")
CONTENT_PAGE = Parameter("page", "Page of the content, from 0 on.", {"type": "integer", "minimum": 0, "default": 0})
CONTENT_LENGTH = Parameter(
    "content-length",
    "How many bytes the content has, or all contents together. If the number is wrong, the request is refused.",
    {"type": "integer", "minimum": 0},
)
CONTENT_CHARSET = Parameter("content-charset", "Charset of a text whose media type names none.")
MEDIA_URL_POLICY = Parameter(
    "media-url-policy",
    "Accepted, and has no effect: contents come from this server.",
    {"type": "string", "enum": ["dc-pref", "dc-only", "local", "all"]},
)
REQUIRE_CHECKSUM = Parameter("require-checksum", "Accepted, and has no effect: `sha256` is always shown.", _TRUTH)
NETWORK_LOCATION = Parameter("network-location", "Accepted, and has no effect.")
CREATE = (
    *(OBJECT_NAME, OBJECT_TYPE, FORMATS, MODIFIERS, PAGES, CONTENT_COUNT, ALL_PRIMARY),
    *(CONTENT_LENGTH, CONTENT_CHARSET, NETWORK_LOCATION, REQUIRE_CHECKSUM, PLAIN_POSITION),
    *_refused(NOT_YET, "require-dc-write"),
)

DEL_NON_EMPTY = Parameter(
    "del-non-empty", "`true`: a folder is deleted with everything in it, if the caller may delete all of that.", _TRUTH
)
DEL_ALL_LINKS = Parameter(
    "del-all-links",
    "`true`, with `del-non-empty`: objects that also lie in a folder outside are deleted, too. "
    "Otherwise they stay there.",
    _TRUTH,
)
DEL_VERSION = Parameter(
    "del-version",
    "Which versions are deleted: `SELECTED`, this one; `UNUSED`, those of its tree without a symbolic label that "
    "nobody has checked out; or `ALL` of its tree. In upper or lower case.",
    {"type": "string", "default": "SELECTED"},
)
DELETE_NON_EMPTY = Parameter("delete-non-empty", "Another name of `del-non-empty`, which old clients send.", _TRUTH)
DELETE = (
    DEL_NON_EMPTY,
    DELETE_NON_EMPTY,
    DEL_ALL_LINKS,
    DEL_VERSION,
    *(Parameter(name, "Accepted, and has no effect.") for name in ("del-vd-all", "check-subscription")),
    *CONDITIONAL_WRITE,
)

PATH = Parameter(
    "path", "Names of folders, and last the name of the object, each after a slash; a slash within a name is `\\/`."
)

CHECK_IN = (
    Parameter(
        "version-policy",
        "Which number the new version gets: `next-minor`, `next-major` or `branch-version`.",
        {"type": "string", "enum": ["next-minor", "next-major", "branch-version"], "default": "next-minor"},
    ),
    *(FORMATS, MODIFIERS, PAGES, CONTENT_COUNT, ALL_PRIMARY),
    Parameter("comment", "The comment of the check-in: at most 400 characters."),
    Parameter("version-label", "Symbolic labels of the new version, with commas between."),
    Parameter("make-current", "Whether the new version becomes the current one.", {"type": "boolean", "default": True}),
    Parameter("retain-lock", "Whether the caller has the new version checked out at once.", _TRUTH),
    *(CONTENT_CHARSET, NETWORK_LOCATION, REQUIRE_CHECKSUM, Parameter("content-length", "Accepted, and has no effect.")),
    *CONDITIONAL_WRITE,
    *_refused(NOT_YET, "require-dc-write"),
)
CHECKOUTS = (
    *LIST,
    Parameter(
        "checked-out-by",
        "Whose check-outs are listed: `current-user`, `all`, or `user`; then `user-name` names the user.",
        {"type": "string", "enum": ["current-user", "all", "user"], "default": "current-user"},
    ),
    Parameter("user-name", "A user, `name@partition`."),
)

SELECTED_PRIMARY = Parameter(
    "primary",
    "`true` means a page of the primary content, `false` a rendition. Without it, either may be meant.",
    {"type": "boolean"},
)
CONTENT_LIST = (*LIST, MEDIA_URL_POLICY, NETWORK_LOCATION, REQUIRE_CHECKSUM)
MEDIA = (FORMAT, CONTENT_PAGE, MODIFIER, SELECTED_PRIMARY, MEDIA_URL_POLICY, NETWORK_LOCATION, REQUIRE_CHECKSUM)
DOWNLOAD = (*MEDIA, IF_NONE_MATCH, RANGE, IF_RANGE)
DESCRIPTION = (*MEDIA, *SINGLE)
ADD_CONTENT = (
    *(FORMAT, CONTENT_PAGE, MODIFIER),
    Parameter(
        "primary",
        "`false`: the body is a rendition. Otherwise it is a page of the primary content; page 0 is the main content.",
        {"type": "boolean", "default": True},
    ),
    Parameter(
        "overwrite",
        "`false`: a content that is there already is not replaced (409).",
        {"type": "boolean", "default": True},
    ),
    *(CONTENT_LENGTH, CONTENT_CHARSET, NETWORK_LOCATION, REQUIRE_CHECKSUM),
    *CONDITIONAL_WRITE,
)
OBJECT_IDS = Parameter(
    "object-id",
    "Ids of objects, with commas between; the parameter may also be repeated.",
    {"type": "array", "items": {"type": "string"}},
)
CHANGE_CONTENT = (*MEDIA, CONTENT_LENGTH, CONTENT_CHARSET, *CONDITIONAL_WRITE)
REMOVE_CONTENT = (*MEDIA, *CONDITIONAL_WRITE)

_NO_EFFECT: Mapping[str, str] = {
    "collapse": "none",
    "hide-shared-parent": "false",
    "include-domains": "false",
    "inline": "false",
    "links": "true",
    "require-dc-write": "false",
    "view": ":default",
}
"""These values, and an empty one, change nothing."""

_WITHOUT_EFFECT = (
    *("include-all", "include-auditable-events", "include-display-configs", "include-lifecycle"),
    *("include-mapping-tables", "include-value-assist", "include-value-constraints", "locale"),
)
INHERITED = Parameter(
    "inherited",
    "`false`: of a type, only those properties are shown that its parent lacks.",
    {"type": "boolean", "default": True},
)
RECURSIVE = Parameter(
    "recursive", "Whether those further up or down count, too, instead of the next ones only.", _TRUTH
)
PARENT_TYPE = Parameter(
    "parent-type", "An object type: only those directly below it are listed, with `recursive=true` all below it."
)
_OF_TYPES = (INHERITED, *(Parameter(name, "Accepted, and has no effect.") for name in _WITHOUT_EFFECT))
TYPE = (*_OF_TYPES, *SINGLE)
TYPES = (*TYPED_LIST, PARENT_TYPE, RECURSIVE, *_OF_TYPES)
USER_NAME = Parameter("user-name", "A user, `name@partition`: only groups that have this member are listed.")
GROUP_NAME = Parameter("group-name", "A group, `name@partition`: only groups that have this member are listed.")
GROUPS = (*LIST, USER_NAME, GROUP_NAME, RECURSIVE)
INCLUDED_PROPERTIES = Parameter(
    "included-properties",
    "Properties for which values are wanted, with commas between; those of the body come first.",
    {"type": "array", "items": {"type": "string"}},
)
REPAIR = Parameter("repair", "`true`: objects whose document differs are indexed again.", _TRUTH)
ACCESSOR = Parameter("accessor", "A user or group, or `world`; without it, the caller.")
FORCE = Parameter("force", "Accepted, and has no effect.")

LOCATION = Parameter("Location", "Address of the new thing.", place="header")
ETAG = Parameter("ETag", "Tag of this revision and representation, for `If-Match`.", TEXT, place="header")
POSITION = Parameter(
    HEADER, "Position of the change; with a page of hits, the position up to which the page is true.", place="header"
)

PARTIAL = Parameter(
    "Muniment-Partial", "The repositories that did not answer, percent-encoded, with commas between.", place="header"
)
WORDS_NEEDED = Parameter(
    "Muniment-Words", "`any` if the search was relaxed: any of its words was enough.", place="header"
)
WORDS_LEFT_OUT = Parameter(
    "Muniment-Words-Left-Out",
    "How many words of a relaxed search were not looked for, because they were too many.",
    {"type": "integer"},
    place="header",
)
RELAXED = (WORDS_NEEDED, WORDS_LEFT_OUT)
IGNORED = Parameter("Muniment-Ignored", "The parameters of the query that the address does not know.", place="header")
_EXPOSED = (
    *(header.name for header in (LOCATION, ETAG, POSITION, PARTIAL, *RELAXED, IGNORED)),
    *("Accept-Ranges", "Allow", "Content-Disposition", "Content-Range", "Retry-After", "WWW-Authenticate"),
    "X-Request-Id",
)

_QUERY = "muniment.query"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.:-]")
_MOST_IGNORED, _LONGEST_NAME = 20, 40


def exposed_headers(names: RepositoryNames) -> tuple[str, ...]:
    return (*_EXPOSED, *(f"{names.csrf_prefix}-{part}" for part in ("Header-Name", "Query-Name", "Token")))


def check(request: Request, operation: Operation[Any], *, strict: bool) -> None:
    """Check the query, and store for ``read`` what the method takes.

    An unknown name is ignored, and a header of the answer says so; with ``strict`` it is refused, as one almost known
    always is.

    Raises NotOfferedYet, Malformed.
    """
    query_names = {parameter.name for parameter in operation.parameters if parameter.place == "query"}
    lists = {parameter.name for parameter in operation.parameters if parameter.schema.get("type") == "array"}
    query: dict[str, str] = {}
    unknown: list[str] = []
    for name, value in bodies.query(request, lists).items():
        if name in query_names:
            query[name] = value
        elif name in operation.refused:
            _check_without_effect(name, value, operation.refused[name])
        else:
            unknown.append(name)
    if unknown:
        _check_unlike(unknown, [*query_names, *operation.refused])
        if strict:
            raise Malformed(f"This address has no parameter {unknown[0][:100]!r}.")
        add_header(request, IGNORED.name, _header_list(unknown))
    request.scope[_QUERY] = query


def read(request: Request) -> Mapping[str, str]:
    """Return what ``check`` has found."""
    query: Mapping[str, str] = request.scope[_QUERY]
    return query


def truth(query: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """Raises Malformed."""
    text = query.get(name, "").lower()
    if text not in ("", "true", "false"):
        raise Malformed(f"The parameter {name!r} is true or false, not {text[:40]!r}.")
    return text == "true" if text else default


_Choice = TypeVar("_Choice", bound=str)


def choice(query: Mapping[str, str], name: str, choices: Sequence[_Choice], *, default: _Choice) -> _Choice:
    """Read one of a few words, in upper or lower case.

    Raises Malformed.
    """
    text = query.get(name, "").lower()
    for each in choices:
        if text == each:
            return each
    if text:
        raise Malformed(f"The parameter {name!r} is one of {', '.join(choices)}, not {text[:40]!r}.")
    return default


def _check_without_effect(name: str, value: str, reason: str) -> None:
    if value.lower() in ("", _NO_EFFECT.get(name)):
        return
    sentence = f"The parameter {name!r} {reason}."
    raise NotOfferedYet(sentence) if reason == NOT_YET else Malformed(sentence)


def _check_unlike(unknown: Iterable[str], parameter_names: Iterable[str]) -> None:
    """Raise Malformed for a difference only in case, ``_`` or ``-``."""
    by_letters = {_letters(name): name for name in parameter_names}
    for name in unknown:
        if like_name := by_letters.get(_letters(name)):
            raise Malformed(f"This address has no parameter {name[:100]!r}; did you mean {like_name!r}?")


def _letters(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _header_list(names: Iterable[str]) -> str:
    return ", ".join(_UNSAFE.sub("?", name)[:_LONGEST_NAME] or "?" for name in list(names)[:_MOST_IGNORED])
