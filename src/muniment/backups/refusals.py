"""Why a backup cannot be made, or cannot be restored here."""

from muniment.web.refusals import Refusal


class BackupRefused(Refusal):
    """The backup cannot be made, or not be restored there; the sentence says why and what to do."""
