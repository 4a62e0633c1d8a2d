"""What does the page of an object say if it has no text to show?"""

import pytest

from muniment.repository.page import reading
from muniment.repository.store.extraction import queue
from muniment.repository.store.extraction.queue import IndexStatus


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (queue.EMPTY, "It has no content."),
        (queue.TEXTLESS, "No text was found in it. (Is it a scan or a picture?)"),
        (IndexStatus("no-text", "b.png was not read.", 0), "(Is it a scan or a picture?) b.png was not read."),
        (IndexStatus("unsupported", "It is a picture.", 0), "the text of this format. It is a picture."),
        (IndexStatus("failed", "It is encrypted.", 1), "could not be read. It is encrypted."),
        (IndexStatus("waiting", "", 0), "Load this page again in a moment."),
        (IndexStatus("waiting", "The reader is away.", 1), "in a moment. The reader is away."),
    ],
)
def test_each_state_has_its_sentence_and_its_reason(status: IndexStatus, said: str) -> None:
    assert reading._why(status).endswith(said)
