"""What may an operator set for content in a store that speaks S3?"""

from typing import Annotated

import msgspec

Doc = msgspec.Meta

PART_BYTES = 8 << 20
"""Large content is sent in parts of so many bytes."""

LARGEST_OBJECT = 10_000 * PART_BYTES
"""An upload has at most 10,000 parts."""


class S3Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a content store in the network is, and the key with which this server signs its requests."""

    endpoint: Annotated[
        str,
        Doc(
            description="Address of an S3 store, such as `https://s3.example.org:9000`. The path of a request begins "
            "with the bucket. Over `http:` everybody on the way can read content."
        ),
    ] = ""
    region: Annotated[str, Doc(description="Region for which requests are signed.")] = "us-east-1"
    bucket: Annotated[
        str,
        Doc(
            description="Bucket of the content; it must exist.",
            pattern=r"^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?$",
        ),
    ] = ""
    prefix: Annotated[
        str,
        Doc(
            description="Beginning of the names of all objects, before a slash. Each installation needs its own.",
            pattern=r"^([A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?$",
            max_length=200,
        ),
    ] = "muniment"
    access_key: Annotated[str, Doc(description="Name of the key (access key id).")] = ""
    access_secret: Annotated[
        str, Doc(description="Secret of that key; better in the environment or a file than here.")
    ] = ""
    access_secret_file: Annotated[str, Doc(description="File that holds the secret, instead of the setting.")] = ""
    ca_file: Annotated[str, Doc(description="CA certificates (PEM) to verify the store with, beside the system's.")] = (
        ""
    )
    largest_copy: Annotated[
        int,
        Doc(
            description="Largest content that is copied into the data folder so that its text can be read, in "
            "bytes. The text of larger content is not found.",
            ge=1_048_576,
        ),
    ] = 1_073_741_824
