"""What may an operator set for the Tika server that reads what our own readers do not read?"""

from typing import Annotated

import msgspec

Doc = msgspec.Meta


class ExtractionOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a Tika server is, how it knows this one, and what it may cost."""

    tika: Annotated[
        str,
        Doc(
            description="Address of an Apache Tika server, such as `http://127.0.0.1:9998`, which gets the files that "
            "our own readers do not read; empty = nobody gets them. Over `http:` everybody on the way can read them."
        ),
    ] = ""
    tika_ca_file: Annotated[
        str, Doc(description="CA certificates (PEM) to verify that server with; empty = the system's.")
    ] = ""
    tika_header: Annotated[
        str,
        Doc(
            description="Name of the request header that carries the secret, such as `Authorization`.",
            pattern=r"^[A-Za-z0-9-]{1,100}$",
        ),
    ] = "Authorization"
    tika_secret: Annotated[
        str,
        Doc(
            description="Value of that header, such as `Bearer ...`; better in the environment or a file than here. "
            "Empty = no such header."
        ),
    ] = ""
    tika_secret_file: Annotated[str, Doc(description="File that holds the value, instead of the setting.")] = ""
    tika_seconds: Annotated[
        int,
        Doc(
            description="Seconds that the Tika server may take for one file and all files within it.",
            ge=1,
            le=3600,
        ),
    ] = 120
    tika_bytes: Annotated[
        int, Doc(description="Largest file that the Tika server gets, in bytes.", ge=1024, le=10_737_418_240)
    ] = 104_857_600
