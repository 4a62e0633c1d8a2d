"""How long a law is tried: for moments in `make test`, for minutes under the profile `campaign`."""

from hypothesis import settings

CAMPAIGN = "campaign"


def examples(usual: int, in_campaign: int) -> int:
    """Say on how many examples a law is tried."""
    return in_campaign if settings.get_current_profile_name() == CAMPAIGN else usual
