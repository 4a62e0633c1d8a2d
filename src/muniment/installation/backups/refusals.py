"""Why can a backup not be made or restored?"""

from muniment.ground.refusals import Refusal


class BackupRefused(Refusal):
    """The backup cannot be made, or cannot be restored into that folder. The sentence says why and what to do."""
