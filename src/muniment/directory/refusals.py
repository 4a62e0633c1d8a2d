"""Why the directory says no; each endpoint's table gives these a status and a code."""

from muniment.web.refusals import Refusal


class BadName(Refusal):
    """A name holds what names may not hold."""


class NameTaken(Refusal):
    """Another one of that kind has the name already."""


class UnknownPartition(Refusal):
    """There is no such partition."""


class UnknownEntry(Refusal):
    """There is no such partition, unit, user or group."""


class WrongPartition(Refusal):
    """The unit lies in another partition than the name says."""


class UnknownResource(Refusal):
    """There is no resource with this identifier, or it is no identifier at all."""


class AlreadyActivated(Refusal):
    """The resource was activated before; that happens once."""


class NotSignedIn(Refusal):
    """Nobody is signed in, or the credentials shown are not, or no longer, valid."""


class NotAdministrator(Refusal):
    """The caller is known but does not administer the directory."""


class InvalidClient(Refusal):
    """The client is unknown, or did not authenticate as it must (RFC 6749 5.2)."""


class InvalidGrant(Refusal):
    """The user's credentials or the refresh token do not hold (RFC 6749 5.2)."""


class SignInRefused(InvalidGrant):
    """The user may not sign in with this password; the attempt is counted.

    ``pauses`` says that this wrong password began a pause; its sender is answered like any other.
    """

    keeps_writes = True

    def __init__(self, sentence: str, *, pauses: bool = False) -> None:
        super().__init__(sentence)
        self.pauses = pauses


class InvalidScope(Refusal):
    """The scope names no resource that issues tokens (RFC 6749 5.2)."""


class UnsupportedGrantType(Refusal):
    """The grant type is not offered (RFC 6749 5.2)."""


class InvalidTokenRequest(Refusal):
    """The token request lacks a parameter or cannot be read (RFC 6749 5.2)."""


class UnparseableToken(Refusal):
    """The string is no token of this directory."""


class WrongResource(Refusal):
    """The token was issued for another resource."""


class DeadToken(Refusal):
    """The token has expired or was revoked."""


class AccessEnded(Refusal):
    """The user is disabled, locked, deleted or no longer in the access role."""


class BadAttribute(Refusal):
    """The attribute does not exist or does not take this value."""


class Forged(Refusal):
    """The form does not come from a page of ours (CSRF)."""


class UnknownSession(Refusal):
    """There is no such living grant or ticket."""


class NobodyAdministers(Refusal):
    """After this change nobody could sign in to the administration."""
