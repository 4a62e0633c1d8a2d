"""The addresses of batches.

Source: docs/interface.md, ours 21.
"""

from muniment.repository.endpoints.batches import batches
from muniment.repository.endpoints.batches.batch_bodies import BatchBody
from muniment.repository.endpoints.batches.batches import BatchDocument, CapabilitiesDocument
from muniment.repository.endpoints.documents import Documents
from muniment.repository.endpoints.operations import BELOW, Addresses, answer_of, showing
from muniment.web.addresses import Address, Operation


def addresses(wire: Documents) -> Addresses:
    """List the addresses."""
    execution = Operation(
        batches.execute,
        "Execute several requests, each alone or all in one transaction.",
        body=wire.thing(BatchBody, "batch"),
        answers=(answer_of("The outcome of each operation.", wire.thing(BatchDocument, "batch")),),
    )
    capabilities = showing(
        batches.capabilities,
        "Show the capabilities of batches.",
        answer_of("The capabilities.", wire.thing(CapabilitiesDocument, "batch-capabilities")),
    )
    return (
        Address(f"{BELOW}/batches", {"POST": execution}, batches.TABLE),
        Address(f"{BELOW}/batch-capabilities", {"GET": capabilities}, batches.TABLE),
    )
