"""The tables of grants and access tokens, and what else their modules share."""

import sqlalchemy as sa

from muniment.database.connections import BigId, directory_tables, required, required_columns

ALLOWED = sa.text("made = 'authorization_code' AND revoked IS NULL")
"""Grants that a user has allowed in a browser. A query must repeat this text to use their index."""

grant_table = sa.Table(
    "grants",
    directory_tables,
    sa.Column("id", BigId, primary_key=True),
    # There are no foreign keys, so that tokens of a deleted user or client are still known: their access has ended.
    required("user_id", sa.BigInteger, index=True),
    required("client_id", sa.BigInteger, index=True),
    # Empty for a grant without a resource.
    required("resource_id", sa.String(36)),
    required("refresh_digest", sa.LargeBinary, unique=True),
    required("refresh_expires", sa.BigInteger, index=True),
    required("created", sa.BigInteger),
    sa.Column("revoked", sa.BigInteger),
    # An upper bound of the number of live access tokens, while there are FEW or more. NULL: nobody has counted them.
    sa.Column("live_bound", sa.Integer),
    required("scopes", sa.Text),
    required("made", sa.String(20)),
    sa.Column("authenticated", sa.BigInteger),
    sa.Column("actor_id", sa.BigInteger),
    # Of a grant whose refresh token has successors, what they share, and when the last one was made.
    sa.Column("family", sa.LargeBinary),
    sa.Column("rotated", sa.BigInteger),
    # The grants whose tokens were exchanged for this one: the subject's, and the actor's.
    sa.Column("source_id", sa.BigInteger),
    sa.Column("actor_source_id", sa.BigInteger),
    # Few grants have something there: a new one is usually in none of these indexes.
    *(
        sa.Index(f"ix_grants_{column}", column, unique=column == "family", sqlite_where=there, postgresql_where=there)
        for column in ("revoked", "family", "source_id", "actor_source_id")
        for there in [sa.text(f"{column} IS NOT NULL")]
    ),
    # Beside them a client and a user may have any number of grants that were made in other ways.
    sa.Index(
        "ix_grants_allowed",
        *("user_id", "client_id", "resource_id"),
        sqlite_where=ALLOWED,
        postgresql_where=ALLOWED,
    ),
    sqlite_autoincrement=True,
)

token_table = sa.Table(
    "access_tokens",
    directory_tables,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    required("id", sa.String(36)),
    required("grant_id", sa.ForeignKey("grants.id", ondelete="CASCADE")),
    *required_columns(sa.BigInteger, "issued", "expires"),
    # Those of a token that has fewer than its grant.
    sa.Column("scopes", sa.Text),
    # The first index serves to count and remove the tokens of a grant, the second to remove expired tokens.
    sa.Index("ix_access_tokens_of_grant", "grant_id", "expires"),
    sa.Index("ix_access_tokens_expires", "expires", "digest"),
)
