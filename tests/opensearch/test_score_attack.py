"""What hidden documents tell an ordinary user of an index in OpenSearch, with three shards: nothing."""

from pathlib import Path

import pytest

from bench.score_attack import CHANNELS, attack_ours, bits, shared_index
from tests.cluster import OnCluster


@pytest.mark.parametrize("seed", range(3))
def test_no_channel_tells_anything_of_hidden_documents(opensearch: str, tmp_path: Path, seed: int) -> None:
    """failures B1, failures B3. That the attack succeeds on plain scores is in tests/properties/test_score_attack."""
    shared = shared_index(seed)
    made = OnCluster(opensearch, tmp_path, shards=3)
    observed = attack_ours(made.holding([*shared.hidden, *shared.own]), shared.own)
    made.close()
    assert bits(shared.secret, shared.secret) > 0.9 * len(shared.secret)
    assert {channel: bits(values, shared.secret) for channel, values in observed.items()} == dict.fromkeys(
        CHANNELS, 0.0
    )
