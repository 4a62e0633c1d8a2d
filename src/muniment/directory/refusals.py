"""Why does the directory refuse a request? Each address's table gives these refusals a status and a code."""

from muniment.ground.refusals import Refusal


class BadName(Refusal):
    """The name is not allowed, or this entry does not allow the change."""


class NameTaken(Refusal):
    """Another entry or resource has the name already."""


class NameInUse(Refusal):
    """Others know the entry or resource by this name, so the name stays."""


class UnknownPartition(Refusal):
    """There is no such partition."""


class UnknownEntry(Refusal):
    """There is no such partition, unit, user or group."""


class UnknownUser(UnknownEntry):
    """There is no such user."""


class UnknownGroup(UnknownEntry):
    """There is no such group."""


class UnknownClient(UnknownEntry):
    """There is no such OAuth client."""


class WrongPartition(Refusal):
    """The unit lies in another partition than the entry that is to lie in it."""


class UnknownResource(Refusal):
    """No activated resource has this identifier or name, or the text is no identifier."""


class AlreadyActivated(Refusal):
    """The resource was activated before. A resource is activated once."""


class NotSignedIn(Refusal):
    """The request has no credentials that are valid for this resource now."""


class ExpiredTicket(NotSignedIn):
    """The text is a ticket of this directory, and it has expired or was ended."""


class CannotImpersonate(Refusal):
    """The caller may not act for this user, or not at this resource."""


class NotAdministrator(Refusal):
    """The caller is known but does not administer the directory."""


class InvalidClient(Refusal):
    """The client is unknown or disabled, or it did not authenticate (RFC 6749 5.2)."""


class InvalidGrant(Refusal):
    """The user's credentials or the refresh token are not valid (RFC 6749 5.2)."""


class SignInRefused(InvalidGrant):
    """The user may not sign in with this password. The result of the attempt is stored.

    Only the security event shows ``reason``, and ``pauses``: this wrong password began a pause.
    """

    keeps_writes = True

    def __init__(self, sentence: str, *, reason: str, pauses: bool = False) -> None:
        super().__init__(sentence)
        self.reason = reason
        self.pauses = pauses


class InvalidScope(Refusal):
    """The scope is unknown or not the client's, or names no resource that issues tokens, or not the grant's (RFC 6749
    5.2).
    """


class InvalidTarget(Refusal):
    """The parameter ``resource`` names no resource that issues tokens, or more than one is asked for (RFC 8707 2)."""


class UnauthorizedClient(Refusal):
    """The client may not use this grant type, or not for this resource (RFC 6749 5.2)."""


class UnsupportedGrantType(Refusal):
    """The grant type is not offered (RFC 6749 5.2)."""


class BadAuthorization(Refusal):
    """The client or the return address of an authorization request is wrong: the browser must be led nowhere."""


class AuthorizationRefused(Refusal):
    """The client gets this answer instead of a code; ``code`` is that of RFC 6749 4.1.2.1 or OpenID Connect Core
    3.1.2.6.
    """

    def __init__(self, sentence: str, code: str = "invalid_request") -> None:
        super().__init__(sentence)
        self.code = code


class UsedAgain(InvalidGrant):
    """A code or a refresh token was used a second time: what came of it has ended (RFC 9700 4.14.2)."""

    keeps_writes = True


class AuthorizationPending(Refusal):
    """The user of the device has not decided yet (RFC 8628 3.5)."""

    keeps_writes = True


class SlowDown(AuthorizationPending):
    """The device asks too often (RFC 8628 3.5)."""


class ExpiredDeviceCode(Refusal):
    """Nobody has decided in time (RFC 8628 3.5)."""


class AccessDenied(Refusal):
    """The user has refused, or may not go on (RFC 6749 4.1.2.1, RFC 8628 3.5)."""

    keeps_writes = True


class WrongUserCode(Refusal):
    """No device of this user waits with this user code, or they typed too many wrong ones. It is counted."""

    keeps_writes = True


class InvalidTokenRequest(Refusal):
    """The token request lacks a parameter, or it names or authenticates its client twice (RFC 6749 5.2)."""


class UnparseableToken(Refusal):
    """The string is no token of this directory."""


class WrongResource(Refusal):
    """The token was issued for another resource."""


class InsufficientScope(Refusal):
    """The token lacks a scope that the address needs (RFC 6750 3.1)."""


class DeadToken(Refusal):
    """The token has expired or was revoked."""


class AccessEnded(Refusal):
    """The user or the client may not act any more, or the resource does not let the user in."""


class BadAttribute(Refusal):
    """The attribute may not have this name or this value, or it cannot be set."""


class UnknownAttribute(BadAttribute):
    """No part of this release reads a system attribute of this name.

    Whoever confirms the name may still set it.
    """


class UnknownSession(Refusal):
    """There is no such living grant or ticket."""


class ClosesLoop(Refusal):
    """The member contains the group or role that it should be in."""


class Outdated(Refusal):
    """The entry has changed since the caller read it."""


class WrongSecret(Refusal):
    """This is not the resource's secret, or it has none."""


class NobodyAdministers(Refusal):
    """After this change nobody could sign in to the administration."""


class HasDependents(Refusal):
    """The entry is built in, or holds others. It cannot be removed."""


class StillGuards(Refusal):
    """Without the resource nobody could enter the repository that it guards."""


class SignsTokens(Refusal):
    """The resource's access tokens are JWTs, and whoever enters a repository is asked about at each request."""


class CannotKnow(Refusal):
    """The repository runs elsewhere: nobody here knows what it uses. The command line can do it all the same."""


class SignsIn(Refusal):
    """Without the client nobody could sign in to the repositories."""
