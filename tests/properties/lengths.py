"""How long a law is tried: for moments in `make test`, for minutes under the profile `campaign`."""

import os

from hypothesis import settings

CAMPAIGN = "campaign"

SHARE = float(os.environ.get("CAMPAIGN_SHARE", "1"))
"""How much of the campaign's examples are tried: 1 is all of them."""


def examples(usual: int, in_campaign: int) -> int:
    """Say on how many examples a law is tried."""
    if settings.get_current_profile_name() != CAMPAIGN:
        return usual
    return max(usual, int(in_campaign * SHARE))
