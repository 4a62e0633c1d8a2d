"""The settings of the directory: its names on the wire, lifetimes and limits."""

from typing import Annotated

import msgspec

Doc = msgspec.Meta


class DirectoryNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every name of the directory's interface that another installation may spell otherwise."""

    prefix: Annotated[str, Doc(description="First path segment of every address of the directory.")] = "dirws"
    dn_suffix: Annotated[str, Doc(description="End of every distinguished name (location).")] = (
        "ou=IdentityProviders,dc=identity,dc=muniment"
    )
    clients_partition: Annotated[
        str, Doc(description="Name of the partition whose users are OAuth clients (given 2.1).")
    ] = "OAuthClients"
    administration_partition: Annotated[
        str, Doc(description="Name of the partition that holds the administrators.")
    ] = "directory.admin"
    administrators_group: Annotated[
        str,
        Doc(
            description="Name of the group of that partition whose members administer the directory. No other entry "
            "there may have it: then the server does not start.",
            min_length=1,
        ),
    ] = "administrators"
    administration_resource: Annotated[
        str, Doc(description="Name of the resource that stands for the administration of the directory itself.")
    ] = "Directory Administration"
    root_unit: Annotated[str, Doc(description="Name of the root location (organizational unit) of each partition.")] = (
        "Root"
    )
    object_class: Annotated[str, Doc(description="`object_class` of a user.")] = "inetOrgPerson"
    group_class: Annotated[str, Doc(description="`object_class` of a group.")] = "groupOfNames"
    role_class: Annotated[str, Doc(description="`object_class` of an application role.")] = "organizationalRole"
    has_password: Annotated[
        str, Doc(description="Key in tokeninfo's `data_map` that says whether the user has a password (given 2.6).")
    ] = "OTDS_HAS_PASSWORD"  # noqa: S105 - the name of an entry, not a secret
    attributes: Annotated[
        dict[str, str],
        Doc(
            description="Directory attributes that are spelled otherwise in `values`: neutral name = name on the wire."
        ),
    ] = {}
    scope_prefix: Annotated[
        str,
        Doc(
            description="Prefix of the scopes `roles`, `groups`, `roleids` and `groupids`.",
            pattern=r"^[A-Za-z0-9._:-]{0,40}$",
        ),
    ] = ""
    user_id_type: Annotated[
        str,
        Doc(description="The `subject_token_type` of a token exchange whose `subject_token` is a user id."),
    ] = "urn:muniment:oauth:user_id"
    form_prefix: Annotated[
        str, Doc(description="Prefix of the sign-in form's fields `username`, `password` and `csrf`.")
    ] = ""
    ticket_cookie: Annotated[
        str,
        Doc(
            description="Exact name of the cookie that holds a sign-in, and of the header that may carry it to a "
            "repository. The cookies of the form and of a known browser add `_form` and `_browser`. Empty = the cookie "
            "`muniment_ticket`, over TLS `__Host-muniment_ticket`, and the header `Muniment-Ticket`."
        ),
    ] = ""
    ticket_prefix: Annotated[
        str,
        Doc(
            description="What every ticket begins with. Tickets with another prefix are none of this directory.",
            pattern=r"^\*[A-Za-z0-9_-]{1,40}\*$",
        ),
    ] = "*SSO*"
    expired_ticket: Annotated[
        str, Doc(description="The sentence that refuses a ticket which has expired or was ended.", min_length=1)
    ] = "Expired SSO ticket"


class DirectoryOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an operator may set about the directory."""

    access_token_seconds: Annotated[
        int, Doc(description="Lifetime of an access token, in seconds.", ge=1, le=86_400)
    ] = 3600
    refresh_token_seconds: Annotated[
        int, Doc(description="Lifetime of a refresh token, and so of its grant, in seconds.", ge=1, le=31_536_000)
    ] = 43_200
    live_tokens: Annotated[
        int,
        Doc(
            description="The most live access tokens of one grant. While a grant has that many, a refresh answers 503 "
            "until the oldest of them expires.",
            ge=1,
            le=1_000_000,
        ),
    ] = 10_000
    ticket_seconds: Annotated[
        int, Doc(description="Lifetime of a ticket, and so of a browser's sign-in, in seconds.", ge=60, le=604_800)
    ] = 28_800
    live_tickets: Annotated[
        int,
        Doc(
            description="The most live tickets of one user that were made in one way: at the page, by a program, by "
            "who acts for the user, or for one resource. A further one ends the oldest.",
            ge=1,
            le=10_000,
        ),
    ] = 1000
    lockout_failures: Annotated[
        int,
        Doc(
            description="Wrong passwords in a row from one place after which its sign-ins pause; 0 = never.",
            ge=0,
            le=1000,
        ),
    ] = 10
    lockout_seconds: Annotated[
        int,
        Doc(
            description="How long a pause of sign-in lasts, in seconds. Tokens already issued still work.",
            ge=1,
            le=86_400,
        ),
    ] = 900
    hash_memory_kib: Annotated[
        int, Doc(description="argon2id memory for one password check, in KiB.", ge=8192, le=1_048_576)
    ] = 19_456
    hash_passes: Annotated[int, Doc(description="argon2id passes.", ge=1, le=20)] = 2
    hash_slots: Annotated[
        int,
        Doc(
            description="Password checks at one time over all worker processes; 0 = cores - 1, at least 1.", ge=0, le=64
        ),
    ] = 0
    hash_queue: Annotated[
        int, Doc(description="Password checks that may wait in one worker before it answers 503.", ge=1, le=10_000)
    ] = 256
    default_partition: Annotated[
        str,
        Doc(
            description="Partition in which a name without `@` is looked for after the administration's and before all "
            "others; empty = in none before them."
        ),
    ] = ""
    prefix_aliases: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*$")], ...],
        Doc(
            description="Further beginnings of the directory's addresses, without a slash at either end, such as "
            "`otdstenant/acme/otdsws`. They lead to the same directory: there are no tenants, and one issuer."
        ),
    ] = ()
    names: DirectoryNames = DirectoryNames()
