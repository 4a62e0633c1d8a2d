"""Which status and which code has a refusal at an address?"""

from muniment.ground.refusals import Refusal
from muniment.repository.refusals import (
    BadFilter,
    BadQuery,
    BadSort,
    CheckedOut,
    ContentDamaged,
    ContentExists,
    DirectoryUnavailable,
    IndexBehind,
    IndexUnavailable,
    InUse,
    NameTaken,
    NoAdministratorLeft,
    NoContent,
    NoStoredResults,
    NotCheckedOut,
    NotOfferedYet,
    NotPermitted,
    NotSearchable,
    NotSignedIn,
    NotWritable,
    QuotaExceeded,
    RangeNotSatisfiable,
    StoreUnavailable,
    Superseded,
    UnknownAccessor,
    UnknownAcl,
    UnknownComment,
    UnknownFormat,
    UnknownLink,
    UnknownObject,
    UnknownPerson,
    UnknownProperty,
    UnknownRelation,
    UnknownRelationType,
    UnknownRepository,
    UnknownSavedSearch,
    UnknownType,
    VersionConflict,
    WrongValue,
)
from muniment.web.answers.responses import ErrorCode, Table

_CODES: Table = {
    BadFilter: ErrorCode(400, "E_BAD_FILTER"),
    BadQuery: ErrorCode(400, "E_BAD_QUERY"),
    BadSort: ErrorCode(400, "E_BAD_SORT"),
    CheckedOut: ErrorCode(409, "E_LOCKED"),
    ContentDamaged: ErrorCode(500, "E_CONTENT_DAMAGED"),
    ContentExists: ErrorCode(409, "E_CONTENT_EXISTS"),
    DirectoryUnavailable: ErrorCode(503, "E_DIRECTORY_UNAVAILABLE"),
    InUse: ErrorCode(409, "E_IN_USE"),
    IndexBehind: ErrorCode(503, "E_INDEX_BEHIND"),
    IndexUnavailable: ErrorCode(503, "E_INDEX_UNAVAILABLE"),
    NameTaken: ErrorCode(409, "E_NAME_TAKEN"),
    NoAdministratorLeft: ErrorCode(409, "E_NOBODY_ADMINISTERS"),
    NoContent: ErrorCode(404, "E_NO_CONTENT"),
    NoStoredResults: ErrorCode(404, "E_NO_STORED_RESULTS"),
    NotCheckedOut: ErrorCode(409, "E_NOT_LOCKED"),
    NotOfferedYet: ErrorCode(400, "E_NOT_OFFERED_YET"),
    NotPermitted: ErrorCode(403, "E_NOT_PERMITTED"),
    NotSearchable: ErrorCode(400, "E_INVALID_ATTR_NAME"),
    NotSignedIn: ErrorCode(401, "E_NOT_SIGNED_IN"),
    NotWritable: ErrorCode(400, "E_NOT_WRITABLE"),
    QuotaExceeded: ErrorCode(403, "E_QUOTA_EXCEEDED"),
    RangeNotSatisfiable: ErrorCode(416, "E_RANGE_NOT_SATISFIABLE"),
    StoreUnavailable: ErrorCode(503, "E_STORE_UNAVAILABLE"),
    Superseded: ErrorCode(409, "E_NOT_LATEST_VERSION"),
    UnknownAccessor: ErrorCode(400, "E_UNKNOWN_ACCESSOR"),
    UnknownAcl: ErrorCode(400, "E_UNKNOWN_ACL"),
    UnknownComment: ErrorCode(404, "E_UNKNOWN_COMMENT"),
    UnknownFormat: ErrorCode(404, "E_UNKNOWN_FORMAT"),
    UnknownLink: ErrorCode(404, "E_UNKNOWN_SEARCH"),
    UnknownObject: ErrorCode(404, "E_UNKNOWN_OBJECT"),
    UnknownPerson: ErrorCode(404, "E_UNKNOWN_PERSON"),
    UnknownProperty: ErrorCode(400, "E_INVALID_ATTR_NAME"),
    UnknownRelation: ErrorCode(404, "E_UNKNOWN_RELATION"),
    UnknownRelationType: ErrorCode(400, "E_UNKNOWN_RELATION_TYPE"),
    UnknownRepository: ErrorCode(404, "E_UNKNOWN_REPOSITORY"),
    UnknownSavedSearch: ErrorCode(404, "E_UNKNOWN_SAVED_SEARCH"),
    UnknownType: ErrorCode(400, "E_UNKNOWN_TYPE"),
    VersionConflict: ErrorCode(412, "E_VERSION_CONFLICT"),
    WrongValue: ErrorCode(400, "E_INVALID_ATTR_VALUE"),
}


def codes_of(*refusals: type[Refusal]) -> Table:
    return {refusal: _CODES[refusal] for refusal in refusals}


ENTERING = codes_of(NotSignedIn, DirectoryUnavailable, UnknownRepository, NotPermitted, NotOfferedYet)
"""Every address below a repository refuses these: of ``enter``, lacking rights, features not offered."""

LISTING = {**ENTERING, **codes_of(BadFilter, BadSort, UnknownProperty, WrongValue)}
"""A list may refuse a filter, a sort or a view, too."""

OBJECTS = {
    **LISTING,
    **codes_of(
        UnknownObject, ContentDamaged, StoreUnavailable, UnknownType, UnknownAcl, NotWritable, InUse, CheckedOut
    ),
    **codes_of(NotCheckedOut, Superseded, NameTaken, VersionConflict, QuotaExceeded),
}
CONTENTS = {
    **LISTING,
    **codes_of(UnknownObject, CheckedOut, Superseded, VersionConflict, NoContent, ContentDamaged, StoreUnavailable),
    **codes_of(RangeNotSatisfiable, QuotaExceeded, ContentExists),
}
ARCHIVES = {**ENTERING, **codes_of(UnknownObject, NoContent, WrongValue, ContentDamaged)}
ACLS = {
    **LISTING,
    **codes_of(UnknownAccessor, NameTaken, InUse, QuotaExceeded),
    UnknownAcl: ErrorCode(404, "E_UNKNOWN_ACL"),
}
PERMISSION_SETS = {**ACLS, **codes_of(UnknownObject, UnknownAcl, VersionConflict)}
PEOPLE = {**LISTING, **codes_of(UnknownPerson)}
PEOPLE_CHANGES = {**PEOPLE, **codes_of(UnknownType, NotWritable, NameTaken, InUse, NoAdministratorLeft)}
RELATIONS = {
    **LISTING,
    **codes_of(UnknownRelation, UnknownRelationType, UnknownObject, UnknownType, QuotaExceeded, VersionConflict),
}
RELATION_TYPES = {
    **LISTING,
    **codes_of(UnknownType, NameTaken, InUse),
    UnknownRelationType: ErrorCode(404, "E_UNKNOWN_RELATION_TYPE"),
}
COMMENTS = {**LISTING, **codes_of(UnknownComment, UnknownObject, UnknownType, QuotaExceeded, VersionConflict)}
TYPES = {**LISTING, **codes_of(NameTaken, InUse, VersionConflict), UnknownType: ErrorCode(404, "E_UNKNOWN_TYPE")}
SEARCHES = {
    **ENTERING,
    **codes_of(
        BadQuery, UnknownProperty, NotSearchable, WrongValue, BadSort, UnknownLink, IndexBehind, IndexUnavailable
    ),
    UnknownType: ErrorCode(400, "E_INVALID_TYPE_NAME"),
}
EXPLANATIONS = {**SEARCHES, **codes_of(UnknownObject, UnknownPerson)}
SIMILAR = {**SEARCHES, **codes_of(UnknownObject)}
DQL = {**SEARCHES, **LISTING}
SAVED_SEARCHES = {**DQL, **codes_of(UnknownSavedSearch, NoStoredResults, QuotaExceeded, VersionConflict)}
SEARCH_TEMPLATES = {**SAVED_SEARCHES, UnknownSavedSearch: ErrorCode(404, "E_UNKNOWN_SEARCH_TEMPLATE")}
FORMATS = {**ENTERING, **codes_of(UnknownFormat)}
ASPECTS = {**LISTING, **codes_of(UnknownObject)}
