"""The tables of saved searches and search templates, and of the results that callers have stored."""

import sqlalchemy as sa

from muniment.database.connections import repository_tables

# ``owner_name`` is the owner's folded name, which a later bearer of the name shares. Nobody else has the owner's key.
# ``names`` are the names on the wire in the document, and the question of the search page that asked it;
# ``format`` is the format in which the document was stored.
saved_searches = sa.Table(
    "saved_searches",
    repository_tables,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("repository_id", sa.ForeignKey("repositories.id"), nullable=False),
    sa.Column("is_template", sa.Boolean, nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("description", sa.String(1000), nullable=False),
    sa.Column("owner", sa.String(400), nullable=False),
    sa.Column("owner_name", sa.String(400), nullable=False),
    sa.Column("owner_key", sa.String(400), nullable=False),
    sa.Column("public", sa.Boolean, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("modified", sa.BigInteger, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("format", sa.Integer, nullable=False),
    sa.Column("spelling", sa.String(4), nullable=False),
    sa.Column("names", sa.Text, nullable=False),
    sa.Column("document", sa.LargeBinary, nullable=False),
    sa.Index("ix_saved_searches_owner", "owner_key", "repository_id", "is_template"),
    sa.Index("ix_saved_searches_created", "repository_id", "is_template", "created"),
)

# What one caller stored of one search: the ids of the hits in their order, as a JSON list.
saved_results = sa.Table(
    "saved_results",
    repository_tables,
    sa.Column("search_id", sa.ForeignKey("saved_searches.id"), primary_key=True),
    sa.Column("caller", sa.String(400), primary_key=True),
    sa.Column("stored", sa.BigInteger, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("format", sa.Integer, nullable=False),
    sa.Column("object_ids", sa.Text, nullable=False),
    sa.Index("ix_saved_results_caller", "caller"),
)
