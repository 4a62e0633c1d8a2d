"""What can an ordinary user learn of hidden documents from scores, order, totals, facets, excerpts? Nothing.

``bench.score_attack`` says what the attack is, and runs it beside OpenSearch.
"""

from pathlib import Path

import pytest

from bench.score_attack import CHANNELS, attack_engine, attack_ours, bits, shared_index, write
from muniment.repository.search.index.tantivy.engine import TantivyIndex


@pytest.mark.parametrize("seed", range(3))
def test_no_channel_tells_anything_of_hidden_documents(tmp_path: Path, seed: int) -> None:
    """failures B1, failures B3."""
    shared = shared_index(seed)
    write(tmp_path / "index", shared)
    entropy = bits(shared.secret, shared.secret)
    plain = bits(attack_engine(tmp_path / "index")["scores"], shared.secret)
    assert plain > 0.95 * entropy, "the attack succeeds where scores count everybody's documents"
    observed = attack_ours(TantivyIndex(tmp_path / "index").snapshot(), shared.own)
    assert {channel: bits(values, shared.secret) for channel, values in observed.items()} == dict.fromkeys(
        CHANNELS, 0.0
    )
