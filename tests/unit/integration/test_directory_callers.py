"""The repository asks the directory of its process without a socket, and hears what the address would say."""

from pathlib import Path
from unittest.mock import patch

import pytest

from muniment.database.connections import Database
from muniment.database.transactions import Transactions
from muniment.directory.context import Directory
from muniment.directory.oauth import tokeninfo
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import AccessEnded, DeadToken
from muniment.directory.sign_in.passwords import PasswordGate
from muniment.ground.clock import Instant
from muniment.ground.refusals import Refusal
from muniment.integration import directory_callers
from muniment.integration.directory_dependencies import RepositoryDependencies
from muniment.repository.refusals import NotSignedIn


class Expelled(AccessEnded):
    """A refusal that no table names. The table names its parent class."""


@pytest.mark.parametrize("refusal", [DeadToken("Dead."), Expelled("Out.")])
def test_a_refusal_of_the_directory_means_what_its_code_at_the_address_means(
    directory_db: Database, now: Instant, tmp_path: Path, refusal: Refusal
) -> None:
    gate = PasswordGate(tmp_path, slots=1, queue=1, memory_kib=8192, passes=1)
    options = DirectoryOptions()
    apart = RepositoryDependencies(directory_db, options.names, lambda: now, lambda: None)
    directory = Directory(Transactions(directory_db), options, gate, lambda: now, apart, "https://muniment.test/dirws")
    try:
        with patch.object(tokeninfo, "verify", side_effect=refusal), pytest.raises(NotSignedIn):
            directory_callers.token_question(directory)("token", "resource")
    finally:
        gate.close()
