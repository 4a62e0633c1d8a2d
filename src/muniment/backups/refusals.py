"""Why a backup cannot be made or restored."""

from muniment.web.refusals import Refusal


class BackupRefused(Refusal):
    """The backup cannot be made, or cannot be restored there. The sentence says why and what to do."""
