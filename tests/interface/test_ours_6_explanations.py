"""Why an object is a hit, or none, through the whole server. Source: docs/interface.md, ours 6."""

from typing import Any

import httpx

from tests.scenes import Person, Site


def ask(site: Site, person: Person | None, object_id: str, word: str, **more: str) -> httpx.Response:
    return site.http.get(
        f"{site.search_address}/explanation",
        params={"object": object_id, "q": word, **more},
        headers=site.bearer(person) | {"Accept": "application/json"},
    )


def why(site: Site, person: Person | None, object_id: str, word: str, **more: str) -> dict[str, Any]:
    answer = ask(site, person, object_id, word, **more)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_ours_6_an_administrator_is_told_what_another_user_finds_and_by_which_right(site: Site) -> None:
    world, word = site.world, site.world.word()
    made = site.create("explained", f"a {word} in the text".encode())
    admin = world.admin(site.directory_names)
    world.admit(world.admin(world.names), world.resource_id)
    world.catch_up()
    colleague = world.person("writers", member=False)
    user = {"for": colleague.id}
    assert why(site, None, made, word)["hit"]
    hidden = why(site, admin, made, word, **user)
    assert (hidden["user"], hidden["hit"], hidden["right"]["outcome"]) == (colleague.id, False, "not-met")
    assert hidden["reasons"][0]["part"] == "right"
    assert ask(site, colleague, made, word).status_code == 404
    shown = f"shown {word}"
    entries = [{"accessor": f"writers@{world.partition}", "basic-permission": "Browse"}]
    acl = site.http.post(f"{site.repository}/acls", json={"name": shown, "permitted": entries}, headers=site.bearer())
    assert acl.status_code == 201, acl.text
    site.share(made, shown)
    world.catch_up()
    browsing = why(site, admin, made, word, **user)
    assert not browsing["hit"]
    assert browsing["right"]["permitted"] == entries
    assert browsing["reasons"][-1] == {
        "part": "right",
        "message": "The user may not read the text, which holds what the metadata lacks.",
    }
    own = why(site, colleague, made, word)
    assert [reason["part"] for reason in own["reasons"]] == ["condition"], "the text's words are not told"
    site.share(made)
    world.catch_up()
    found = why(site, admin, made, word, **user)
    assert found["hit"]
    assert found | {"right": {}} == why(site, colleague, made, word) | {"right": {}}


def test_ours_6_nobody_else_asks_for_another_user_and_an_unknown_one_is_unknown(site: Site) -> None:
    made = site.create("explained for others")
    admin = site.world.admin(site.directory_names)
    site.world.admit(site.world.admin(site.world.names), site.world.resource_id)
    site.world.catch_up()
    refused = ask(site, site.world.reader, made, "", **{"for": site.world.writer.id})
    assert (refused.status_code, refused.json()["code"]) == (403, "E_NOT_PERMITTED")
    for nobody in ("nobody@nowhere", site.world.outsider.id, "x"):
        unknown = ask(site, admin, made, "", **{"for": nobody})
        assert (unknown.status_code, unknown.json()["code"]) == (404, "E_UNKNOWN_PERSON"), unknown.text


def test_ours_6_explanations_are_asked_by_get_and_by_post(site: Site) -> None:
    options = site.http.options(f"{site.search_address}/explanation")
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
