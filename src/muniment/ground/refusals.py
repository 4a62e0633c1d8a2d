"""Why is a request refused?"""

from typing import ClassVar


class Refusal(Exception):
    """A reason to refuse a request, as one sentence for the caller. The address's table gives it a status.

    It undoes the decision's writes, unless its class sets ``keeps_writes`` (decision 0032).
    """

    keeps_writes: ClassVar[bool] = False

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class Malformed(Refusal):
    """The request cannot be read: wrong syntax, wrong encoding, a missing or repeated parameter."""


class TooLarge(Refusal):
    """The request is larger than the setting allows."""


class UnsupportedMediaType(Refusal):
    """The address does not read bodies of this media type."""


class NotAcceptable(Refusal):
    """The address can write none of the media types that the caller accepts."""


class Forged(Refusal):
    """The form does not come from one of our pages (CSRF)."""


class UnknownAddress(Refusal):
    """Nothing answers at this address."""


class MethodNotAllowed(Refusal):
    """The address does not know this method. ``allowed`` lists those that it knows."""

    def __init__(self, sentence: str, allowed: tuple[str, ...]) -> None:
        super().__init__(sentence)
        self.allowed = allowed


class InsecureTransport(Refusal):
    """The request came over plain HTTP where TLS is required."""


class TimedOut(Refusal):
    """The caller's bytes did not arrive in the time allowed."""


class Overloaded(Refusal):
    """Too many such requests are under way; the caller may try again after ``retry_seconds``."""

    def __init__(self, sentence: str, retry_seconds: int = 1) -> None:
        super().__init__(sentence)
        self.retry_seconds = retry_seconds


class NotStored(Refusal):
    """The request cannot be stored, because a disk is full, read-only or broken."""
