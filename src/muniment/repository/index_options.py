"""What may an operator set for an index in OpenSearch?"""

from typing import Annotated, Literal, TypeAlias

import msgspec

Doc = msgspec.Meta


IndexKind: TypeAlias = Annotated[
    Literal["tantivy", "opensearch"],
    Doc(
        description="What holds the index: `tantivy` = folders of the data folder, `opensearch` = the cluster of "
        "`[repository.opensearch]`. After a change, the index agent makes the indexes anew."
    ),
]


class OpenSearchOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the cluster is, how this server signs in, and how an index is spread there."""

    address: Annotated[
        str,
        Doc(
            description="Address of the cluster, such as `https://search.example.org:9200`; an OpenSearch of release "
            "3. Over `http:` everybody on the way can read texts and the password.",
            pattern=r"^(https?://[^/?#@\s]+)?$",
        ),
    ] = ""
    ca_file: Annotated[str, Doc(description="CA certificates (PEM) to verify it with; empty = the system's.")] = ""
    name: Annotated[str, Doc(description="Name for HTTP Basic; empty = none.")] = ""
    password: Annotated[str, Doc(description="Its password; better in the environment or a file than here.")] = ""
    password_file: Annotated[str, Doc(description="File that holds the password, instead of the setting.")] = ""
    prefix: Annotated[
        str,
        Doc(
            description="Beginning of the names of all indexes. Each installation needs its own.",
            pattern=r"^[a-z][a-z0-9-]{0,39}$",
        ),
    ] = "muniment"
    shards: Annotated[
        int, Doc(description="Shards of a repository's index; a rebuild applies a change.", ge=1, le=64)
    ] = 1
    replicas: Annotated[
        int, Doc(description="Further copies of each shard; a rebuild applies a change.", ge=0, le=10)
    ] = 1
