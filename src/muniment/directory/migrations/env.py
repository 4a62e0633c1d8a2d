"""Run the directory's migrations for Alembic, on the connection that ``schema.migrate`` opened."""

from alembic import context

from muniment.database import connections, schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=connections.directory_tables,
    version_table=schema.version_table("directory"),
    render_as_batch=True,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
