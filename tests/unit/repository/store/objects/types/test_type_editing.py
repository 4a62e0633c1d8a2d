"""Definitions of properties: length, default, allowed values, searchable; and what they do to objects."""

import threading
from typing import Any

import pytest

from muniment.repository.bulk import removal
from muniment.repository.refusals import BadTypesFile, InUse, NameTaken, UnknownType, VersionConflict, WrongValue
from muniment.repository.store.objects.contents.usage import StorageQuota
from muniment.repository.store.objects.decisions import copying, creation
from muniment.repository.store.objects.properties.properties import PropertyDefinition
from muniment.repository.store.objects.types import object_types, offers, reindexing, type_editing, types_file
from muniment.repository.store.objects.types.object_types import ObjectType
from muniment.repository.store.objects.types.type_forms import AllowedForm, PropertyForm, TypeForm
from tests.counting import cost
from tests.shelf import MARTA, Shelf

SITES = b"""
[types.site]
label = "Building site"
[types.site.properties]
country = { kind = "string", label = "Country", default = "FR", allowed = ["FR", { value = "DE", label = "Germany" }] }
city = { kind = "string", depends_on = "country", allowed = [
    { value = "Lyon", when = "FR" }, { value = "Bonn", when = ["DE"] }, "Elsewhere"] }
mood = { kind = "string", allowed = ["good", "bad"], open = true }
code = { kind = "string", length = 3 }
opened = { kind = "date", default = "2024-02-29" }
marks = { kind = "integer", repeating = true, default = [1, 2], allowed = [1, 2, 3] }
secret = { kind = "string", searchable = false }
"""


@pytest.fixture
def sites(shelf: Shelf) -> Shelf:
    load(shelf, SITES)
    return shelf


def load(shelf: Shelf, toml: bytes) -> list[str]:
    with shelf.database.begin() as cx:
        return types_file.load(cx, shelf.repository.id, toml, shelf.now)


def change(shelf: Shelf, name: str, *forms: PropertyForm, **how: Any) -> ObjectType:
    with shelf.database.begin() as cx:
        return type_editing.change_type(cx, shelf.repository.id, TypeForm(name, properties=forms, **how), shelf.now)


def make(shelf: Shelf, **given: Any) -> Any:
    return shelf.create({"object_name": "x", **given}, type_name="site")


def test_a_new_object_gets_defaults_for_what_its_maker_leaves_out(sites: Shelf) -> None:
    values = make(sites).properties
    assert (values["country"], values["marks"]) == (["FR"], [1, 2])
    assert values["opened"] == [1_709_164_800_000_000]
    assert not make(sites, country="", marks=[], opened=None).properties.keys() & {"country", "marks", "opened"}


def test_a_copy_has_the_values_of_its_original_and_no_default(sites: Shelf) -> None:
    original = make(sites, country="", marks=[3])
    with sites.database.begin() as cx:
        copy = copying.copy(cx, sites.view(MARTA), [original], None, sites.now, StorageQuota())
    assert copy.properties == original.properties


@pytest.mark.slow
@pytest.mark.campaign_on("postgresql")
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"country": "UK"}, "country"),
        ({"marks": [1, 4]}, "marks"),
        ({"city": "Bonn"}, "city"),
        ({"city": "Lyon", "country": ""}, "city"),
        ({"code": "abcd"}, "code"),
        ({"opened": "2023-02-29"}, "opened"),
        ({"marks": ["one"]}, "marks"),
    ],
)
def test_a_value_that_the_definition_does_not_allow_is_refused_by_name(
    sites: Shelf, given: dict[str, Any], name: str
) -> None:
    with pytest.raises(WrongValue, match=f"'{name}'"):
        make(sites, **given)
    stored = make(sites)
    with pytest.raises(WrongValue, match=f"'{name}'"):
        sites.change(stored.id, given)


def test_what_is_allowed_depends_on_another_property(sites: Shelf) -> None:
    stored = make(sites, city="Lyon", mood="sunny")
    with pytest.raises(WrongValue, match="'city'"):
        sites.change(stored.id, {"country": "DE"})
    assert sites.change(stored.id, {"country": "DE", "city": "Bonn"}).properties["city"] == ["Bonn"]
    sites.change(stored.id, {"country": "FR", "city": "Elsewhere"})


def test_a_value_from_before_the_list_may_stay(sites: Shelf) -> None:
    stored = make(sites, country="FR")
    change(sites, "site", PropertyForm("country", default=None, allowed=[AllowedForm("DE")]))
    assert sites.change(stored.id, {"country": "FR", "title": "new"}).properties["country"] == ["FR"]
    with pytest.raises(WrongValue):
        make(sites, country="FR")
    with sites.database.begin() as cx:
        original = copying.lock_originals(cx, sites.view(MARTA), stored.id, 1)
        copy = copying.copy(cx, sites.view(MARTA), original, None, sites.now, StorageQuota())
    assert copy.properties == original[0].properties


def test_a_form_is_offered_what_holds_for_the_object(sites: Shelf) -> None:
    catalogue = sites.catalogue()
    offered = {each.definition.name: each for each in offers.of_type(catalogue, "site", [], {"country": "DE"})}
    assert offered.keys() == {"country", "city", "mood", "marks"}
    assert [each.value for each in offered["city"].values] == ["Bonn", "Elsewhere"]
    assert [each.label for each in offered["country"].values] == ["", "Germany"]
    assert (offered["mood"].is_open, offered["city"].is_open) == (True, False)
    (code,) = offers.of_type(catalogue, "site", ["code"], {})
    assert (code.is_open, list(code.values)) == (True, [])


def test_a_file_is_loaded_again_without_a_change_and_changes_what_it_says(sites: Shelf) -> None:
    assert load(sites, SITES) == []
    changed = SITES.replace(b"length = 3", b"length = 5").replace(b"Building site", b"Site")
    assert load(sites, changed) == ["type site changed", "property site.code changed"]
    assert sites.catalogue().get("site").label == "Site"
    assert sites.catalogue().property("code").length == 5
    with pytest.raises(WrongValue, match="raised"):
        load(sites, SITES)


SHAFT = b"[types.shaft]\nparent = 'site'\n[types.shaft.properties]\nwidth = 'integer'\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "code = { kind = 'string', length = 4 }",
        "code = { kind = 'string', label = 'Code' }",
        "code = { kind = 'string', searchable = false }",
        "code = { kind = 'string', default = 'abc' }",
        "mood = { kind = 'string', allowed = ['good'] }",
        "mood = { kind = 'string', open = false }",
        "mood = { kind = 'string', depends_on = 'code' }",
        "country = { kind = 'string', default = '' }",
        "marks = 'integer'",
        "code = 'integer'",
        "title = { kind = 'string', length = 10 }",
    ],
)
@pytest.mark.parametrize("is_new", [True, False])
def test_a_file_cannot_change_what_a_type_inherits(sites: Shelf, line: str, is_new: bool) -> None:
    if not is_new:
        load(sites, SHAFT)
    before = sites.catalogue().types()
    with pytest.raises(WrongValue, match=f"'{line.split()[0]}'"):
        load(sites, SHAFT + line.encode())
    assert sites.catalogue().types() == before


@pytest.mark.slow
def test_a_file_may_repeat_what_a_type_inherits(sites: Shelf) -> None:
    lines = SITES.partition(b"[types.site.properties]")[2] + b"title = 'string'"
    assert load(sites, SHAFT + lines) == ["type shaft", "property shaft.width"]
    assert load(sites, SHAFT + lines) == []
    assert load(sites, SHAFT + b"code = 'string'\nmood = 'string'\nsecret = 'string'") == []
    assert (
        load(
            sites,
            b"types.document.properties.title = { kind = 'string', length = 4000 }\n"
            b"types.document.parent = 'sysobject'",
        )
        == []
    )


@pytest.mark.slow
@pytest.mark.campaign_on("postgresql")
@pytest.mark.parametrize(
    "form",
    [
        PropertyForm("new", "string", length=0),
        PropertyForm("new", "string", length=4001),
        PropertyForm("new", "integer", length=5),
        PropertyForm("new", "integer", default="one"),
        PropertyForm("new", "string", length=2, default="abc"),
        PropertyForm("new", "string", default="a", allowed=[AllowedForm("b")]),
        PropertyForm("new", "string", allowed=[AllowedForm("b"), AllowedForm("b")]),
        PropertyForm("new", "string", allowed=[AllowedForm("")]),
        PropertyForm("new", "date", allowed=[AllowedForm("soon")]),
        PropertyForm("new", "string", allowed=[AllowedForm(f"{number}") for number in range(1001)]),
        PropertyForm("new", "string", allowed=[AllowedForm("b", when="FR")]),
        PropertyForm("new", "string", depends_on="nothing"),
        PropertyForm("new", "string", depends_on="new"),
        PropertyForm("new", "string", depends_on="opened", allowed=[AllowedForm("b", when="soon")]),
        PropertyForm("new", "string", label="x" * 256),
        PropertyForm("new", "string", label="\ud800"),
        PropertyForm("new", "string", searchable=False, default="x" * 4001),
        PropertyForm("new"),
        PropertyForm("New", "string"),
        PropertyForm("r_new", "string"),
        PropertyForm("title", "string", label="inherited"),
        PropertyForm("code", "integer"),
        PropertyForm("code", repeating=True),
        PropertyForm("code", length=2),
    ],
)
def test_a_definition_that_cannot_hold_changes_nothing(sites: Shelf, form: PropertyForm) -> None:
    before = sites.catalogue()
    with pytest.raises(WrongValue):
        change(sites, "site", form)
    assert sites.catalogue().types() == before.types()


@pytest.mark.slow
@pytest.mark.campaign_on("postgresql")
def test_there_are_no_more_properties_than_a_process_can_keep(sites: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [PropertyForm(f"p{number}", "string") for number in range(10_000)]
    with pytest.raises(WrongValue, match="10000 properties at once: 1000"):
        change(sites, "site", *many)
    with pytest.raises(WrongValue, match="at most 1000 properties"):
        change(sites, "site", *many[:990])
    lines = "\n".join(f'p{number} = "string"' for number in range(10_000))
    with pytest.raises(WrongValue, match="10000 properties"):
        load(sites, f"[types.wide.properties]\n{lines}".encode())
    with pytest.raises(BadTypesFile):
        load(sites, b"#" * 10_000_001)
    monkeypatch.setattr(type_editing, "MOST_TYPES", 1)
    monkeypatch.setattr(type_editing, "MOST_DEFINITIONS", 12)
    with pytest.raises(WrongValue, match="at most 1 types"):
        load(sites, b"[types.one_more]")
    with pytest.raises(WrongValue, match="at most 12 properties together"):
        change(sites, "site", *many[:6])
    change(sites, "site", *many[:5])  # the site has 7 of its own; the built-in ones do not count


def test_a_type_lies_at_most_32_levels_deep_the_root_included(sites: Shelf) -> None:
    lines = [f"[types.t{n}]\nparent = '{f't{n - 1}' if n else 'document'}'\n".encode() for n in range(40)]
    with pytest.raises(BadTypesFile, match="below it on more than 32 levels"):
        load(sites, b"".join(reversed(lines)))
    with pytest.raises(WrongValue, match="'t30' would lie more than 32 levels deep"):
        load(sites, b"".join(lines[:31]))
    load(sites, b"".join(lines[:30]))
    assert len(sites.catalogue().lineage("t29")) == 32


def test_a_type_keeps_what_another_property_depends_on(sites: Shelf) -> None:
    with sites.database.begin() as cx, pytest.raises(InUse, match="'city'"):
        removal.remove_property(cx, sites.repository, "site", "country")


def test_built_in_and_unknown_types_are_not_changed(sites: Shelf) -> None:
    with pytest.raises(WrongValue):
        change(sites, "document", PropertyForm("x", "string"))
    with pytest.raises(UnknownType):
        change(sites, "nothing", PropertyForm("x", "string"))
    with pytest.raises(NameTaken), sites.database.begin() as cx:
        type_editing.define_type(cx, sites.repository.id, TypeForm("site"), sites.now)


def test_who_finishes_a_reindexing_late_does_not_end_the_next_one_of_the_property(sites: Shelf) -> None:
    change(sites, "site", PropertyForm("code", searchable=False))
    with sites.database.begin() as cx:
        (begun,) = reindexing.under_way(cx)
        done = reindexing.advance(cx, begun.id, sites.now)
        assert done is not None
        reindexing.finish(cx, done)
    assert not sites.catalogue().awaiting_index
    change(sites, "site", PropertyForm("code", searchable=True))
    with sites.database.begin() as cx:
        reindexing.finish(cx, done)
        (under_way,) = reindexing.under_way(cx)
    assert under_way.property == "code"
    assert sites.catalogue().awaiting_index == {"code"}


def test_who_finishes_a_reindexing_late_does_not_end_that_of_another_property(sites: Shelf) -> None:
    load(sites, b"[types.site.properties]\nother = 'string'")
    change(sites, "site", PropertyForm("code", searchable=False))
    with sites.database.begin() as cx:
        (begun,) = reindexing.under_way(cx)
        done = reindexing.advance(cx, begun.id, sites.now)
        assert done is not None
        assert done.after is None
        reindexing.finish(cx, done)
    change(sites, "site", PropertyForm("other", searchable=False))
    with sites.database.begin() as cx:
        (begun,) = reindexing.under_way(cx)
        assert reindexing.advance(cx, begun.id, sites.now) is not None
        reindexing.finish(cx, done._replace(id=begun.id))
        assert [each.property for each in reindexing.under_way(cx)] == ["other"]
    assert sites.catalogue().awaiting_index == {"other"}


def test_a_property_that_was_removed_while_it_was_reindexed_can_be_made_and_changed_again(sites: Shelf) -> None:
    change(sites, "site", PropertyForm("code", searchable=False))
    with sites.database.begin() as cx:
        type_editing.remove_property(cx, sites.repository.id, "site", "code")
    load(sites, b"[types.site.properties]\ncode = 'string'")
    change(sites, "site", PropertyForm("code", searchable=False))
    with sites.database.begin() as cx:
        assert [each.property for each in reindexing.under_way(cx)] == ["code"]


def test_a_name_is_searchable_throughout_a_repository_or_not_at_all(sites: Shelf) -> None:
    with pytest.raises(WrongValue, match="not searchable in this repository already"):
        load(sites, b"[types.other.properties]\nsecret = 'string'")
    load(sites, b"[types.other.properties]\nsecret = { kind = 'string', searchable = false }")
    change(sites, "site", PropertyForm("secret", searchable=True))
    assert all(
        each.searchable for kind in sites.catalogue().types() for each in kind.properties if each.name == "secret"
    )


def test_reading_the_types_again_takes_one_statement(sites: Shelf) -> None:
    with sites.database.read() as cx:
        first = object_types.catalogue(cx, sites.repository.id)
    with sites.database.read() as cx, cost(sites.database) as counted:
        for _ in range(2):
            assert object_types.catalogue(cx, sites.repository.id) is first
    (statement,) = counted.statements
    assert "marks" in statement


def test_what_a_transaction_undoes_is_not_remembered(sites: Shelf) -> None:
    with sites.database.begin() as cx, cx.begin_nested() as undone:
        type_editing.add_properties(cx, sites.repository.id, "site", [PropertyDefinition("gone", "string")], sites.now)
        assert "gone" in object_types.catalogue(cx, sites.repository.id).properties_of("site")
        undone.rollback()
        assert "gone" not in object_types.catalogue(cx, sites.repository.id).properties_of("site")
    assert "gone" not in sites.catalogue().properties_of("site")


def test_an_object_is_not_kept_by_rules_that_changed_meanwhile(sites: Shelf) -> None:
    view = sites.view(MARTA)
    change(sites, "site", PropertyForm("secret", label="Secret", searchable=True), label="Site")
    with sites.database.begin() as cx:
        creation.create(cx, view, "site", {"object_name": "x", "code": "b"}, None, None, sites.now)
    change(sites, "site", PropertyForm("code", allowed=[AllowedForm("a")]))
    with sites.database.begin() as cx, pytest.raises(VersionConflict):
        creation.create(cx, view, "site", {"object_name": "x", "code": "b"}, None, None, sites.now)


@pytest.mark.slow
def test_a_type_is_changed_after_the_transactions_that_write_objects_of_it(sites: Shelf) -> None:
    changer = threading.Thread(
        target=change, args=(sites, "site", PropertyForm("code", allowed=[AllowedForm("a")])), daemon=True
    )
    view = sites.view(MARTA)
    with sites.database.begin() as cx:
        creation.create(cx, view, "site", {"object_name": "x", "code": "b"}, None, None, sites.now)
        changer.start()
        changer.join(0.3)
        assert changer.is_alive()
        assert not object_types.catalogue(cx, sites.repository.id).property("code").assistance.values
    changer.join(30)
    assert sites.catalogue().property("code").assistance.values
