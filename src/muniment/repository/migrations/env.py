"""How alembic reaches the repository's tables: always through a connection of muniment.database.connections."""

from alembic import context

from muniment.database import connections, schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=connections.repository_tables,
    version_table=schema.version_table("repository"),
    render_as_batch=True,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
