"""An entry that comes, with its first attributes, renews the generation no more: nothing remembered speaks of it.

Its number is new, refusals are not remembered, and what refers to it is a write of its own.
"""

from alembic import op

revision = "directory_0012"
down_revision = "directory_0011"

_FUNCTION = """
CREATE FUNCTION renew_generation_of_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM written JOIN entries ON entries.id = written.entry_id WHERE entries.revision > 1) THEN
        UPDATE generation SET mark = gen_random_uuid();
    END IF;
    RETURN NULL;
END $$
"""


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    for table in ("entries", "attribute_values"):
        op.execute(f"DROP TRIGGER generation_{table}_insert" + ("" if sqlite else f" ON {table}"))
    if sqlite:
        op.execute(
            "CREATE TRIGGER generation_attribute_values_insert AFTER INSERT ON attribute_values "
            "WHEN (SELECT revision FROM entries WHERE id = NEW.entry_id) > 1 "
            "BEGIN UPDATE generation SET mark = lower(hex(randomblob(16))); END"
        )
        return
    op.execute(_FUNCTION)
    op.execute(
        "CREATE TRIGGER generation_attribute_values_insert AFTER INSERT ON attribute_values "
        "REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION renew_generation_of_changed()"
    )
