"""The tables of saved searches and search templates, and of the results that callers have stored."""

import sqlalchemy as sa

from muniment.database.connections import repository_column, repository_tables, required, required_columns

# ``owner_name`` is the owner's folded name, which a later bearer of the name shares. Nobody else has the owner's key.
# ``names`` are the names on the wire in the document, and the question of the search page that asked it;
# ``format`` is the format in which the document was stored.
saved_searches = sa.Table(
    "saved_searches",
    repository_tables,
    sa.Column("id", sa.String(16), primary_key=True),
    repository_column(),
    required("is_template", sa.Boolean),
    required("name", sa.String(255)),
    required("description", sa.String(1000)),
    *required_columns(sa.String(400), "owner", "owner_name", "owner_key"),
    required("public", sa.Boolean),
    *required_columns(sa.BigInteger, "created", "modified"),
    *required_columns(sa.Integer, "revision", "size", "format"),
    required("spelling", sa.String(4)),
    required("names", sa.Text),
    required("document", sa.LargeBinary),
    sa.Index("ix_saved_searches_owner", "owner_key", "repository_id", "is_template"),
    sa.Index("ix_saved_searches_created", "repository_id", "is_template", "created"),
)

# What one caller stored of one search: the ids of the hits in their order, as a JSON list.
saved_results = sa.Table(
    "saved_results",
    repository_tables,
    sa.Column("search_id", sa.ForeignKey("saved_searches.id"), primary_key=True),
    sa.Column("caller", sa.String(400), primary_key=True),
    required("stored", sa.BigInteger),
    *required_columns(sa.Integer, "size", "format"),
    required("object_ids", sa.Text),
    sa.Index("ix_saved_results_caller", "caller"),
)
