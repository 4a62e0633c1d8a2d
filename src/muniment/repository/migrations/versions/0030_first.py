"""Make the repository's tables, its keys, and its marks with their triggers."""

import secrets
import uuid
from functools import partial
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = None

_required = partial(sa.Column, nullable=False)

big_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

# The tables that each mark covers.
_WATCHED = {"acls": ("acls", "acl_entries"), "types": ("object_types", "type_properties")}


def upgrade() -> None:
    _repositories()
    _types()
    _acls()
    _objects()
    _contents()
    _wastebasket()
    _relations()
    _texts()
    _searches()
    _index_and_imports()
    _marks()


def _repositories() -> None:
    op.create_table(
        "repositories",
        sa.Column("id", big_id, primary_key=True),
        _required("name", sa.String(120), unique=True),
        _required("description", sa.Text),
        _required("resource_id", sa.String(36)),
        _required("created", sa.BigInteger),
        _required("language", sa.String(20), server_default=""),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "changes",
        sa.Column("sequence", big_id, primary_key=True),
        _required("transaction", sa.BigInteger),
        _repository(),
        _required("object_id", sa.String(16)),
        _required("kind", sa.String(10)),
        _required("noted", sa.BigInteger),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_changes_order", "changes", ["repository_id", "transaction", "sequence"])
    hiding = ["repository_id", "transaction", "sequence", "object_id", "kind"]
    _partial("ix_changes_hiding", "changes", hiding, "kind NOT IN ('created', 'text', 'type')")
    op.create_table(
        "cuts",
        _repository(primary_key=True),
        *_filled(sa.BigInteger, "transaction", "sequence"),
    )
    op.create_table(
        "followers",
        _repository(primary_key=True),
        sa.Column("name", sa.String(32), primary_key=True),
        *_filled(sa.BigInteger, "transaction", "sequence", "seen"),
    )
    op.create_table(
        "leases",
        sa.Column("purpose", sa.String(16), primary_key=True),
        sa.Column("subject", sa.String(64), primary_key=True),
        _required("holder", sa.Text),
        _required("until", sa.BigInteger),
    )
    keys = op.create_table(
        "repository_keys",
        sa.Column("purpose", sa.String(20), primary_key=True),
        _required("key", sa.LargeBinary),
    )
    op.bulk_insert(keys, [{"purpose": each, "key": secrets.token_bytes(32)} for each in ("objects", "acls", "seals")])


def _types() -> None:
    op.create_table(
        "object_types",
        sa.Column("id", big_id, primary_key=True),
        _repository(),
        *_filled(sa.String(64), "name", "parent"),
        _required("created", sa.BigInteger),
        _required("label", sa.String(255), server_default=""),
        sa.UniqueConstraint("repository_id", "name"),
    )
    op.create_table(
        "type_properties",
        sa.Column("id", big_id, primary_key=True),
        _required("type_id", big_id, sa.ForeignKey("object_types.id")),
        _required("name", sa.String(64)),
        _required("kind", sa.String(10)),
        _required("repeating", sa.Boolean),
        _required("created", sa.BigInteger),
        _required("length", sa.Integer, server_default="4000"),
        _required("label", sa.String(255), server_default=""),
        _required("searchable", sa.Boolean, server_default=sa.true()),
        _required("awaiting_index", sa.Boolean, server_default=sa.false()),
        _required("rules", sa.Text, server_default=""),
        sa.UniqueConstraint("type_id", "name"),
    )
    op.create_table(
        "reindexings",
        sa.Column("id", big_id, primary_key=True),
        _repository("reindexings"),
        _required("property", sa.String(64)),
        sa.Column("after", sa.BigInteger),
        *_filled(sa.BigInteger, "transaction", "sequence", "begun"),
        sa.UniqueConstraint("repository_id", "property"),
    )


def _acls() -> None:
    op.create_table(
        "acls",
        sa.Column("id", big_id, primary_key=True),
        _repository(),
        _required("name", sa.String(120)),
        _required("owner", sa.String(400)),
        *_filled(sa.BigInteger, "created", "modified"),
        _required("shown_id", sa.String(16), server_default=""),
        _required("owner_name", sa.String(400), server_default=""),
        _required("owner_key", sa.String(400), server_default=""),
        sa.Column("common", sa.Boolean),
        _required("entry_count", sa.Integer, server_default="0"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_acls_shown_id", "acls", ["shown_id"], unique=True)
    op.create_index("ix_acls_owner", "acls", ["repository_id", "owner_key", "name"], unique=True)
    op.create_index("ix_acls_name", "acls", ["repository_id", "name", "shown_id"])
    op.create_index("ix_acls_owner_name", "acls", ["repository_id", "owner_name", "name"])
    op.create_index(
        "ix_acls_common",
        "acls",
        ["repository_id", "name"],
        unique=True,
        sqlite_where=sa.text("common = 1"),
        postgresql_where=sa.text("common"),
    )
    op.create_table(
        "acl_entries",
        sa.Column("acl_id", big_id, sa.ForeignKey("acls.id"), primary_key=True),
        sa.Column("accessor", sa.String(400), primary_key=True),
        _required("permission", sa.SmallInteger),
    )
    op.create_index("ix_acl_entries_accessor", "acl_entries", ["accessor", "permission", "acl_id"])
    op.create_table(
        "bearers",
        sa.Column("key", sa.String(400), primary_key=True),
        _required("name", sa.String(400)),
        sa.Column("identity", sa.String(200), unique=True),
        _required("bound", sa.BigInteger),
    )
    op.create_index("ix_bearers_name", "bearers", ["name"])


def _objects() -> None:
    op.create_table(
        "objects",
        sa.Column("seq", big_id, primary_key=True),
        _required("id", sa.String(16), unique=True),
        _repository(),
        _required("type", sa.String(64)),
        _required("name", sa.String(255)),
        *_filled(sa.String(400), "owner", "owner_key"),
        _required("acl_id", big_id, sa.ForeignKey("acls.id")),
        sa.Column("folder_id", sa.String(16), sa.ForeignKey("objects.id")),
        _required("created", sa.BigInteger),
        _required("creator", sa.String(400)),
        _required("modified", sa.BigInteger),
        _required("modifier", sa.String(400)),
        _required("revision", sa.Integer),
        *_filled(sa.Text, "properties", "media_type"),
        sa.Column("content_key", sa.String(32)),
        _required("content_size", sa.BigInteger),
        sa.Column("content_sha256", sa.LargeBinary),
        sa.Column("folded", sa.Text),
        sa.Column("default_acl_id", big_id, sa.ForeignKey("acls.id", name="fk_objects_default_acl_id_acls")),
        sa.Column("chronicle_id", sa.String(16)),
        sa.Column("antecedent_id", sa.String(16)),
        sa.Column("labels", sa.Text),
        _required("former", sa.SmallInteger, server_default="0"),
        _required("superseded", sa.SmallInteger, server_default="0"),
        sa.Column("comment", sa.Text),
        sa.Column("lock_owner", sa.String(400)),
        sa.Column("lock_owner_key", sa.String(400)),
        sa.Column("locked", sa.BigInteger),
        sa.Column("further_folders", sa.Text),
        sa.Column("content_date", sa.BigInteger),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_objects_acl_id", "objects", ["acl_id"])
    op.create_index("ix_objects_repository", "objects", ["repository_id", "seq"])
    op.create_index("ix_objects_content_key", "objects", ["content_key"])
    op.create_index("ix_objects_folder", "objects", ["folder_id", "former", "name", "seq"])
    _partial("ix_objects_default_acl", "objects", ["default_acl_id"], "default_acl_id IS NOT NULL")
    _partial("ix_objects_chronicle", "objects", ["chronicle_id", "seq"], "chronicle_id IS NOT NULL")
    _partial("ix_objects_locked", "objects", ["repository_id", "lock_owner_key", "seq"], "lock_owner_key IS NOT NULL")
    op.create_table(
        "folder_links",
        _reference("folder_links", "object_id", "objects", primary_key=True),
        _reference("folder_links", "folder_id", "objects", primary_key=True),
        _required("name", sa.String(255)),
        _required("seq", sa.BigInteger),
        _required("former", sa.SmallInteger),
    )
    op.create_index("ix_folder_links_folder", "folder_links", ["folder_id", "former", "name", "seq"])
    op.create_table(
        "usage",
        sa.Column("owner_key", sa.String(400), primary_key=True),
        *_filled(sa.BigInteger, "objects", "bytes"),
    )
    op.create_table(
        "embeddings",
        sa.Column("id", big_id, primary_key=True),
        _reference("embeddings", "object_id", "objects", "CASCADE", unique=True),
        *_filled(sa.LargeBinary, "digest", "vectors"),
        sqlite_autoincrement=True,
    )


def _contents() -> None:
    op.create_table(
        "stored_contents",
        sa.Column("key", sa.String(32), primary_key=True),
        _required("size", sa.BigInteger),
        _required("sha256", sa.LargeBinary),
        _required("uses", sa.BigInteger),
        _required("offered", sa.Boolean),
    )
    _partial("ix_stored_contents_offered", "stored_contents", ["sha256"], "offered", unique=True)
    _further_contents("further_contents", "objects")
    place = ["object_id", "is_primary", "page", "format", "modifier"]
    op.create_index("ix_further_contents_place", "further_contents", place, unique=True)


def _wastebasket() -> None:
    op.create_table(
        "wastebasket",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        _required("id", sa.String(16), unique=True),
        _repository("wastebasket"),
        _required("root", sa.String(16)),
        _required("name", sa.String(255)),
        *_filled(sa.String(400), "owner", "owner_key"),
        _required("acl_id", sa.BigInteger),
        sa.Column("default_acl_id", sa.BigInteger),
        *_filled(sa.String(400), "deleter", "deleter_key"),
        *_filled(sa.BigInteger, "deleted", "expires"),
        _required("object", sa.Text),
        _required("bytes", sa.BigInteger),
        sa.Column("content_key", sa.String(32)),
        _required("content_size", sa.BigInteger),
        sa.Column("content_sha256", sa.LargeBinary),
    )
    for column in ("acl_id", "default_acl_id", "content_key", "root", "expires"):
        op.create_index(f"ix_wastebasket_{column}", "wastebasket", [column])
    op.create_index("ix_wastebasket_repository", "wastebasket", ["repository_id", "deleted", "seq"])
    _further_contents("discarded_contents", "wastebasket")
    op.create_index("ix_discarded_contents_object_id", "discarded_contents", ["object_id"])


def _relations() -> None:
    op.create_table(
        "relation_types",
        _repository("relation_types", primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        _required("description", sa.String(250)),
        _required("created", sa.BigInteger),
    )
    op.create_table(
        "relations",
        sa.Column("seq", big_id, primary_key=True),
        _required("id", sa.String(16), unique=True),
        _repository("relations"),
        _required("name", sa.String(64)),
        _reference("relations", "parent_id", "objects", "CASCADE"),
        _reference("relations", "child_id", "objects", "CASCADE"),
        *_filled(sa.String(400), "maker", "maker_key"),
        _required("created", sa.BigInteger),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_relations_repository", "relations", ["repository_id", "seq"])
    op.create_index("ix_relations_name", "relations", ["repository_id", "name", "seq"])
    op.create_index("ix_relations_parent", "relations", ["parent_id", "seq"])
    op.create_index("ix_relations_child", "relations", ["child_id", "seq"])
    op.create_index("ix_relations_maker_key", "relations", ["maker_key"])
    op.create_table(
        "comments",
        sa.Column("seq", big_id, primary_key=True),
        _required("id", sa.String(16), unique=True),
        _repository("comments"),
        _reference("comments", "object_id", "objects", "CASCADE"),
        _reference("comments", "replies_to", "comments", "CASCADE", nullable=True),
        _required("depth", sa.SmallInteger),
        *_filled(sa.String(400), "author", "author_name", "author_key"),
        *_filled(sa.BigInteger, "created", "modified"),
        _required("revision", sa.Integer),
        _required("text", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_comments_object", "comments", ["object_id", "replies_to", "seq"])
    op.create_index("ix_comments_replies", "comments", ["replies_to", "seq"])
    op.create_index("ix_comments_repository", "comments", ["repository_id", "seq"])
    op.create_index("ix_comments_author_key", "comments", ["author_key"])


def _texts() -> None:
    op.create_table(
        "texts",
        sa.Column("object_id", sa.String(16), primary_key=True),
        _repository(),
        _required("content_key", sa.String(200)),
        *_filled(sa.Text, "media_type", "file_name"),
        _required("state", sa.String(11)),
        _required("reason", sa.Text),
        *_filled(sa.Integer, "attempts", "losses"),
        sa.Column("lease", sa.String(36)),
        _required("due", sa.BigInteger),
        _required("text", sa.Text),
        _required("owner_key", sa.String(400), server_default=""),
        _required("seq", sa.BigInteger, server_default="0"),
    )
    op.create_index("ix_texts_queue", "texts", ["state", "owner_key", "due", "seq"])
    op.create_index("ix_texts_states", "texts", ["repository_id", "state"])
    op.create_table(
        "turns",
        sa.Column("owner_key", sa.String(400), primary_key=True),
        _required("turn", sa.BigInteger),
    )
    op.create_index("ix_turns_line", "turns", ["turn", "owner_key"])


def _searches() -> None:
    op.create_table(
        "links",
        sa.Column("digest", sa.LargeBinary(16), primary_key=True),
        _repository(),
        _required("caller", sa.String(320)),
        _required("document", sa.LargeBinary),
        _required("expires", sa.BigInteger),
        _required("size", sa.Integer, server_default="0"),
        _required("format", sa.Integer, server_default="1"),
        _required("kept", sa.BigInteger, server_default="0"),
    )
    op.create_table(
        "walks",
        sa.Column("name", sa.LargeBinary(16), primary_key=True),
        _repository("walks"),
        _required("caller", sa.String(320)),
        _required("edition", sa.LargeBinary(8)),
        _required("counters", sa.LargeBinary),
        *_filled(sa.Integer, "width", "hits"),
        _required("cut", sa.Boolean),
        *_filled(sa.Integer, "format", "size"),
        *_filled(sa.BigInteger, "kept", "expires"),
    )
    for table in ("links", "walks"):
        op.create_index(f"ix_{table}_expires", table, ["expires"])
        op.create_index(f"ix_{table}_caller", table, ["caller", "kept"])
    op.create_table(
        "saved_searches",
        sa.Column("id", sa.String(16), primary_key=True),
        _repository(),
        _required("is_template", sa.Boolean),
        _required("name", sa.String(255)),
        _required("description", sa.String(1000)),
        *_filled(sa.String(400), "owner", "owner_name", "owner_key"),
        _required("public", sa.Boolean),
        *_filled(sa.BigInteger, "created", "modified"),
        *_filled(sa.Integer, "revision", "size", "format"),
        _required("spelling", sa.String(4)),
        _required("names", sa.Text),
        _required("document", sa.LargeBinary),
    )
    op.create_index("ix_saved_searches_owner", "saved_searches", ["owner_key", "repository_id", "is_template"])
    op.create_index("ix_saved_searches_created", "saved_searches", ["repository_id", "is_template", "created"])
    op.create_table(
        "saved_results",
        sa.Column("search_id", sa.String(16), sa.ForeignKey("saved_searches.id"), primary_key=True),
        sa.Column("caller", sa.String(400), primary_key=True),
        _required("stored", sa.BigInteger),
        *_filled(sa.Integer, "size", "format"),
        _required("object_ids", sa.Text),
    )
    op.create_index("ix_saved_results_caller", "saved_results", ["caller"])


def _index_and_imports() -> None:
    op.create_table(
        "unindexed",
        sa.Column("object_id", sa.String(16), primary_key=True),
        _repository(),
        _required("reason", sa.Text),
        _required("noted", sa.BigInteger),
    )
    op.create_table(
        "index_checks",
        _repository("index_checks", primary_key=True),
        _required("wanted", sa.BigInteger),
        _required("repairs", sa.Boolean),
    )
    op.create_table(
        "index_reports",
        _repository("index_reports", primary_key=True),
        sa.Column("follower", sa.String(32), primary_key=True),
        _required("format", sa.Integer),
        sa.Column("report", sa.Text),
        sa.Column("course", sa.Text),
    )
    op.create_table(
        "imports",
        _repository(primary_key=True),
        sa.Column("source", sa.String(64), primary_key=True),
        sa.Column("path", sa.String(64), primary_key=True),
        _required("object_id", sa.String(16)),
        *_filled(sa.BigInteger, "size", "modified"),
        _required("digest", sa.String(64)),
    )
    op.create_table(
        "unfinished_imports",
        _repository("unfinished_imports", primary_key=True),
        _required("export", sa.String(64)),
        _required("resource_id", sa.String(36)),
        _required("stage", sa.String(20)),
        *_filled(sa.BigInteger, "line", "offset"),
    )


def _marks() -> None:
    marks = op.create_table(
        "marks",
        sa.Column("name", sa.String(10), primary_key=True),
        _required("mark", sa.String(36)),
    )
    op.bulk_insert(marks, [{"name": name, "mark": str(uuid.uuid4())} for name in _WATCHED])
    sqlite = op.get_bind().dialect.name == "sqlite"
    if not sqlite:
        op.execute(
            "CREATE FUNCTION renew_mark() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN UPDATE marks SET mark = gen_random_uuid() WHERE name = TG_ARGV[0]; RETURN NULL; END $$"
        )
    for name, tables in _WATCHED.items():
        how = f"FOR EACH STATEMENT EXECUTE FUNCTION renew_mark('{name}')"
        if sqlite:
            how = f"BEGIN UPDATE marks SET mark = lower(hex(randomblob(16))) WHERE name = '{name}'; END"  # noqa: S608
        for table in tables:
            for write in ("INSERT", "UPDATE", "DELETE") if sqlite else ("INSERT", "UPDATE", "DELETE", "TRUNCATE"):
                op.execute(f"CREATE TRIGGER mark_{table}_{write.lower()} AFTER {write} ON {table} {how}")


def _filled(kind: Any, *names: str) -> list[sa.Column[Any]]:
    return [_required(name, kind) for name in names]


def _repository(table: str = "", *, primary_key: bool = False) -> sa.Column[int]:
    """The tables named here have a longer name of its constraint."""
    constraint = f"fk_{table}_repository_id_repositories" if table else None
    refers = sa.ForeignKey("repositories.id", name=constraint)
    return _required("repository_id", big_id, refers, primary_key=primary_key)


def _reference(
    table: str, column: str, to: str, ondelete: str | None = None, *, nullable: bool = False, **about: Any
) -> sa.Column[str]:
    refers = sa.ForeignKey(f"{to}.id", name=f"fk_{table}_{column}_{to}", ondelete=ondelete)
    return sa.Column(column, sa.String(16), refers, nullable=nullable, **about)


def _further_contents(table: str, of: str) -> None:
    op.create_table(
        table,
        sa.Column("id", big_id, primary_key=True),
        _reference(table, "object_id", of),
        _required("is_primary", sa.Boolean),
        _required("page", sa.Integer),
        _required("media_type", sa.Text),
        _required("format", sa.String(255)),
        _required("modifier", sa.String(64)),
        _required("added", sa.BigInteger),
        _required("content_key", sa.String(32)),
        _required("content_size", sa.BigInteger),
        _required("content_sha256", sa.LargeBinary),
        sqlite_autoincrement=True,
    )
    op.create_index(f"ix_{table}_content_key", table, ["content_key"])


def _partial(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition)
