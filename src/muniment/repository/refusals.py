"""Why does the repository refuse?"""

from muniment.ground.refusals import NotStored, Refusal


class NotSignedIn(Refusal):
    """The request has no credentials, or none that the directory confirms."""


class DirectoryUnavailable(Refusal):
    """The directory that knows the callers could not be asked."""


class NotPermitted(Refusal):
    """The caller may not do this."""


class UnknownRepository(Refusal):
    """There is no such repository."""


class UnknownPerson(Refusal):
    """There is no such user or group, or it has no access to the repository."""


class NoAdministratorLeft(Refusal):
    """After this change nobody could administer the directory any more."""


class UnknownObject(Refusal):
    """There is no such object, or the caller may not see it. The answer is the same in both cases."""


class UnknownType(Refusal):
    """There is no such object type."""


class UnknownRelation(Refusal):
    """There is no such relation, or the caller may not browse both of its ends."""


class UnknownRelationType(Refusal):
    """There is no such type of relations."""


class UnknownComment(Refusal):
    """There is no such comment, or the caller may not read the object that it is about."""


class UnknownFormat(Refusal):
    """There is no format of contents with this name."""


class UnknownProperty(Refusal):
    """The type or the list has no such property."""


class NotSearchable(UnknownProperty):
    """No query may use the property, because the index does not hold it for every object."""


class WrongValue(Refusal):
    """The request gives a value that is not allowed in its place. The sentence says which one."""


class NotWritable(Refusal):
    """The caller may not write the property."""


class UnknownAcl(Refusal):
    """There is no such ACL, or none that the caller may see."""


class UnknownAccessor(Refusal):
    """An ACL entry names something that cannot be a user or a group."""


class NameTaken(Refusal):
    """Another thing of the same kind has the name already."""


class InUse(Refusal):
    """The thing cannot be removed, changed or taken now, because something refers to it or uses it."""


class QuotaExceeded(Refusal):
    """The owner would have more of these things, or more bytes, than is allowed."""


class VersionConflict(Refusal):
    """Something has changed since the revision that the caller named, or during the request."""


class CheckedOut(Refusal):
    """Somebody else has the object checked out."""


class NotCheckedOut(Refusal):
    """The caller has not checked the object out."""


class Superseded(Refusal):
    """A next version on its branch supersedes the object.

    So the object keeps its content, and cannot be checked in on that branch.
    """


class NoContent(Refusal):
    """The object has no such content."""


class ContentExists(Refusal):
    """The object has a content at this place already, and the request does not ask to overwrite it."""


class ContentDamaged(Refusal):
    """The stored bytes have changed since they were stored, so they are not sent."""


class BadQuery(Refusal):
    """The query cannot be read or answered. The sentence says why."""


class BadFilter(Refusal):
    """The filter of a list cannot be read. The sentence names the place of the mistake."""


class BadSort(Refusal):
    """A list cannot be sorted like this; the sentence names the place of the mistake."""


class NotOfferedYet(Refusal):
    """The interface has this feature, but this release does not offer it."""


class UnknownLink(Refusal):
    """The search behind this address no longer exists, or belongs to another caller."""


class UnknownSavedSearch(Refusal):
    """There is no such saved search or search template, or none that the caller may see."""


class NoStoredResults(Refusal):
    """The caller has stored no results of this saved search."""


class IndexBehind(Refusal):
    """The index has not reached the position in the time allowed, or has missed too many changes for a search."""


class IndexUnavailable(Refusal):
    """The repository has no readable index at the moment."""


class BadTypesFile(Refusal):
    """The types file cannot be read, or contradicts itself."""


class BadExport(Refusal):
    """The folder holds no export that can be imported, or none can be written into it. The sentence says why."""


class RangeNotSatisfiable(Refusal):
    """The requested range holds no byte of the content, which has ``size`` bytes."""

    def __init__(self, sentence: str, size: int) -> None:
        super().__init__(sentence)
        self.size = size


class StoreUnavailable(NotStored):
    """The content store in the network does not answer, or refuses this server's key."""
