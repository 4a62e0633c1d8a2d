"""Why the repository says no; each endpoint's table gives these a status and a code."""

from muniment.web.refusals import Refusal


class NotSignedIn(Refusal):
    """No bearer token came with the request, or the directory does not vouch for it."""


class DirectoryUnavailable(Refusal):
    """The directory that knows the callers could not be asked."""


class NotPermitted(Refusal):
    """The caller may see the object but not do this with it."""


class UnknownRepository(Refusal):
    """There is no such repository."""


class UnknownObject(Refusal):
    """There is no such object, or none that the caller may see: the two are told apart by nothing."""


class UnknownType(Refusal):
    """There is no such object type."""


class UnknownProperty(Refusal):
    """The type has no such property."""


class WrongValue(Refusal):
    """The value does not fit the property's kind."""


class NotWritable(Refusal):
    """The property is the repository's to write, not the caller's."""


class UnknownAcl(Refusal):
    """There is no such ACL, or none that the caller may see."""


class UnknownAccessor(Refusal):
    """An ACL entry names nobody that could be a user or a group."""


class NameTaken(Refusal):
    """Another one of that kind has the name already."""


class InUse(Refusal):
    """It cannot be deleted: something still refers to it."""


class QuotaExceeded(Refusal):
    """The caller has as much of this as one caller may have."""


class VersionConflict(Refusal):
    """The object has changed since the version the caller named."""


class NoContent(Refusal):
    """The object has no content."""


class ContentDamaged(Refusal):
    """The stored bytes are not those that were kept; they are not served."""


class BadQuery(Refusal):
    """The query cannot be read; the sentence says what is wrong, and for XML the line and column."""


class NotOfferedYet(Refusal):
    """The interface knows this, this release does not."""


class UnknownLink(Refusal):
    """The search behind this address is gone, or belongs to another caller."""


class IndexBehind(Refusal):
    """The index has not reached the position that was asked for in the time allowed."""


class IndexUnavailable(Refusal):
    """The repository has no readable index at the moment."""


class BadTypesFile(Refusal):
    """The types file cannot be read, or contradicts itself."""


class RangeNotSatisfiable(Refusal):
    """The range asked for lies past the end of the content, which has ``size`` bytes."""

    def __init__(self, sentence: str, size: int) -> None:
        super().__init__(sentence)
        self.size = size
