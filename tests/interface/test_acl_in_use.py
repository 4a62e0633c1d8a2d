"""Why an ACL cannot be removed: objects carry it, or folders have it as their default.

How many and which, an administrator alone is told.
"""

import re

from tests.scenes import Person, Site


def make(site: Site, owner: Person, **entries: str) -> str:
    """Make an ACL of the owner's that permits the accessors so much, and give its id."""
    permitted = [{"accessor": name, "basic-permission": level} for name, level in entries.items()]
    body = {"name": site.world.word(), "permitted": permitted}
    made = site.http.post(f"{site.repository}/acls", json=body, headers=site.bearer(owner))
    assert made.status_code == 201, made.text
    return made.headers["Location"].rpartition("/")[2]


def refusal(site: Site, acl: str, caller: Person) -> str:
    """Try to remove the ACL, and give the sentence that says no."""
    refused = site.http.delete(f"{site.repository}/acls/{acl}", headers=site.bearer(caller))
    assert refused.status_code == 409, refused.text
    assert refused.json()["code"] == "E_IN_USE"
    return str(refused.json()["message"])


def test_its_owner_learns_that_objects_carry_it_and_neither_which_nor_how_many(site: Site) -> None:
    owner, other, word = site.world.person(), site.world.person(), site.world.word()
    acl = make(site, owner, **{other.id: "Delete"})
    hidden = site.create(f"hidden {word}", person=other)
    site.share(hidden, acl, person=other)
    assert site.http.get(f"{site.repository}/objects/{hidden}", headers=site.bearer(owner)).status_code == 404
    sentence = refusal(site, acl, owner)
    site.share(site.create(f"own {word}", person=owner), acl, person=owner)
    assert refusal(site, acl, owner) == sentence
    assert not re.search(r"[0-9]|hidden", sentence.partition("is still on")[2]), sentence


def test_who_may_not_remove_it_learns_nothing(site: Site) -> None:
    owner, other = site.world.person(), site.world.person()
    acl = make(site, owner, **{other.id: "Delete"})
    site.share(site.create("one", person=other), acl, person=other)
    refused = site.http.delete(f"{site.repository}/acls/{acl}", headers=site.bearer(other))
    assert refused.status_code == 403
    assert "object" not in refused.json()["message"]


def test_an_administrator_is_told_the_first_ten_by_id_and_name(site: Site) -> None:
    admin, owner, word = site.world.admin(site.directory_names), site.world.person(), site.world.word()
    site.world.admit(site.world.admin(site.world.names), site.world.resource_id)
    acl = make(site, owner, **{owner.id: "Delete"})
    made = [site.create(f"{word} {number}", person=owner) for number in range(12)]
    for object_id in made:
        site.share(object_id, acl, person=owner)
    sentence = refusal(site, acl, admin)
    assert "is still on 12 objects: " in sentence
    assert [object_id in sentence for object_id in made] == [True] * 10 + [False] * 2
    assert f"{made[9]} '{word} 9', 2 more." in sentence
    headers, named = site.bearer(owner), {"properties": {"object_name": f"{word} folder"}}
    cabinet = site.http.post(f"{site.repository}/cabinets", json=named, headers=headers)
    folder = cabinet.json()["properties"]["r_object_id"]
    default = f"{site.repository}/folders/{folder}/default-permission-set"
    assert site.http.put(default, json={"acl-name": acl}, headers=headers).status_code == 200
    assert refusal(site, acl, admin) == f"{sentence[:-1]}; and the default of 1 folder: {folder} '{word} folder'."
    for object_id in made:
        site.http.delete(f"{site.repository}/objects/{object_id}", headers=site.bearer(owner))
    only_default = f" is still the default of 1 folder: {folder} '{word} folder'."
    assert refusal(site, acl, admin).endswith(only_default)
    assert refusal(site, acl, owner).endswith(" is still on objects, or the default of folders.")
    assert site.http.delete(default, headers=headers).status_code == 204
    removed = site.http.delete(f"{site.repository}/acls/{acl}", headers=site.bearer(admin))
    assert removed.status_code == 204, removed.text
