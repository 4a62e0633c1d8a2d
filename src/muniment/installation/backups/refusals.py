"""Why can a backup not be made or restored?"""

from muniment.ground.refusals import Refusal


class BackupRefused(Refusal):
    """The sentence says why it cannot be made, or restored there, and what to do."""
