"""Strangers' generators make clients of the served OpenAPI document: no operation is lost, and the code compiles.

A client of each generator in Python signs in, creates, reads, checks in, searches and deletes. The generators are not
changed and get no options that the document needs.
"""

import json
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.environments import NoJar, environment, maven_jar, node_environment
from tests.scenes import Served

pytestmark = [
    pytest.mark.peers,
    pytest.mark.slow,
    pytest.mark.campaign,
    pytest.mark.only("sqlite"),
    pytest.mark.timeout(2 * 900),
]

HERE = Path(__file__).parent
LOCK = HERE / "generated_clients.lock"
GENERATOR = "org.openapitools:openapi-generator-cli:7.25.0"
SHA256 = "41ce4f6b07f196676439d710759fa1ced7a08066d06ff1bf314681470289efae"
CODE_ALONE = "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"
SECONDS = 900

BY_OPENAPI_PYTHON_CLIENT = """
import io, json, sys
from client import AuthenticatedClient, Client
from client.api.directory import directory_post_login as login
from client.api.repository import (
    repository_delete_repositories_repository_objects_id as delete,
    repository_get_repositories_repository_objects_id as read,
    repository_get_repositories_repository_objects_id_content_media as download,
    repository_get_repositories_repository_search as search,
    repository_post_repositories_repository_objects as create,
    repository_post_repositories_repository_objects_id_contents as add,
    repository_post_repositories_repository_objects_id_versions as check_in,
    repository_post_repositories_repository_search as search_by_document,
    repository_put_repositories_repository_objects_id_lock as check_out,
)
from client.models import DirectoryPostLoginBodyType0, JsonMetadata, QueryDocument
from client.types import File
asked = json.load(sys.stdin)
where, word = asked["repository"], asked["word"]
strict = {"verify_ssl": asked["ca"], "raise_on_unexpected_status": True}
form = DirectoryPostLoginBodyType0.from_dict(asked["form"])
token = login.sync(client=Client(asked["base"], **strict), body=form).access_token
client = AuthenticatedClient(asked["base"], token, **strict)
if asked["step"] == "make":
    made = create.sync(where, client=client, body=JsonMetadata.from_dict({"properties": asked["properties"]}))
    id = made.properties["r_object_id"]
    add.sync(where, id, client=client, body=File(io.BytesIO(word.encode())), format_="text/plain")
    check_out.sync(where, id, client=client)
    body = JsonMetadata.from_dict({"properties": {"title": "second"}})
    version = check_in.sync(where, id, client=client, body=body)
    told = {
        "read": read.sync(where, id, client=client).properties["object_name"],
        "downloaded": download.sync(where, id, client=client).payload.read().decode(),
        "checked in": [version.properties["title"], version.properties["r_object_id"] != id],
    }
else:
    found = search.sync(where, client=client, q=word)
    by_document = search_by_document.sync(where, client=client, body=QueryDocument.from_dict(asked["query"]))
    (id,) = [entry.id for entry in found.entries]
    told = {
        "found": [[entry.title, type(entry.score).__name__] for entry in found.entries],
        "found by document": [entry.title for entry in by_document.entries],
        "deleted": int(delete.sync_detailed(where, id, client=client).status_code),
        "read": read.sync(where, id, client=client).status,
    }
print(json.dumps(told))
"""

BY_OPENAPI_GENERATOR = """
import json, sys
from openapi_client import ApiClient, ApiException, Configuration, DirectoryApi, JsonMetadata, RepositoryApi
asked = json.load(sys.stdin)
where, word = asked["repository"], asked["word"]
settings = Configuration(host=asked["base"], ssl_ca_cert=asked["ca"])
settings.access_token = DirectoryApi(ApiClient(settings)).directory_post_login(**asked["form"]).access_token
api = RepositoryApi(ApiClient(settings))
here = "repositories_repository_objects_id"
if asked["step"] == "make":
    made = api.repository_post_repositories_repository_objects(where, JsonMetadata(properties=asked["properties"]))
    id = made.properties["r_object_id"]
    getattr(api, f"repository_post_{here}_contents")(where, id, word.encode(), format="text/plain")
    getattr(api, f"repository_put_{here}_lock")(where, id)
    body = JsonMetadata(properties={"title": "second"})
    version = getattr(api, f"repository_post_{here}_versions")(where, id, body)
    told = {
        "read": getattr(api, f"repository_get_{here}")(where, id).properties["object_name"],
        "downloaded": getattr(api, f"repository_get_{here}_content_media")(where, id).decode(),
        "checked in": [version.properties["title"], version.properties["r_object_id"] != id],
    }
else:
    found = api.repository_get_repositories_repository_search(where, q=word)
    by_document = api.repository_post_repositories_repository_search(where, asked["query"])
    (id,) = [entry.id for entry in found.entries]
    told = {
        "found": [[entry.title, type(entry.score).__name__] for entry in found.entries],
        "found by document": [entry.title for entry in by_document.entries],
        "deleted": getattr(api, f"repository_delete_{here}_with_http_info")(where, id).status_code,
    }
    try:
        getattr(api, f"repository_get_{here}")(where, id)
    except ApiException as refused:
        told["read"] = refused.status
print(json.dumps(told))
"""


class Language(NamedTuple):
    """A language of OpenAPI Generator: where the methods of its clients are, how one begins, and what compiles them."""

    name: str
    files: str
    method: str
    compile: tuple[str, ...]


LANGUAGES = (
    Language(
        "typescript-fetch",
        "apis/*.ts",
        r"^    async (\w+)\(",
        ("tsc", "--noEmit", "--strict", "--target", "es2022", "--moduleResolution", "bundler", "index.ts"),
    ),
    Language("java", "src/main/java/**/*Api.java", r"^    public \S+ (\w+)\(", ("mvn", "-B", "-q", "compile")),
    Language("go", "api_*.go", r"^func \(a \*\w+\) (\w+)\(", ("go", "vet", ".")),
)


@pytest.fixture(scope="module")
def description(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The document as it is served, in a file."""
    file = tmp_path_factory.mktemp("described") / "openapi.json"
    trusted = ssl.create_default_context(cafile=served.ca_file)
    file.write_text(httpx.get(f"{served.base}/openapi.json", verify=trusted, timeout=60).text)
    return file


def letters(names: Iterable[str]) -> set[str]:
    """What is left of names in every language."""
    return {re.sub(r"[^a-z0-9]", "", name.lower()) for name in names}


def lost(description: Path, methods: Iterable[str]) -> list[str]:
    """List the operations for which there is no method."""
    paths = json.loads(description.read_text())["paths"]
    ids = [operation["operationId"] for item in paths.values() for operation in item.values()]
    assert len(ids) > 150
    known = letters(methods)
    return [each for each in ids if not letters([each]) <= known]


def run(*command: str | Path, folder: Path, path: Path | None = None, typed: str = "") -> str:
    """Run a command in a folder to its good end, with what is typed; give what it prints.

    ``path`` is where its programs are before all others. Where the command is not installed, the test is skipped.
    """
    search = os.environ["PATH"] if path is None else f"{path}{os.pathsep}{os.environ['PATH']}"
    if shutil.which(command[0], path=search) is None:
        pytest.skip(f"{command[0]} is not installed.")
    variables = os.environ | {"PATH": search, "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        command, cwd=folder, env=variables, input=typed, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def generated(language: str, description: Path, folder: Path) -> Path:
    """Let OpenAPI Generator make a client; give its folder."""
    try:
        generator = maven_jar(GENERATOR, SHA256)
    except NoJar as missing:
        pytest.skip(str(missing))
    made = folder / language
    told = ("-i", description, "-g", language, "-o", made, "--global-property", CODE_ALONE)
    run("java", "-Xmx1g", "-jar", generator, "generate", *told, folder=folder)
    return made


def methods(folder: Path, files: str, method: str) -> set[str]:
    """Find the methods in a client's code."""
    code = "\n".join(file.read_text() for file in folder.glob(files))
    return set(re.findall(method, code, re.MULTILINE))


def check_use(served: Served, program: str, folder: Path) -> None:
    """Check what a client in a folder makes of the answers: first of objects, then of searches."""
    world, word = served.site.world, served.site.world.word()
    name = f"of {word}"
    asked: dict[str, Any] = {
        "base": served.base,
        "ca": str(served.ca_file),
        "form": {
            "grant_type": "password",
            "client_id": world.client_id,
            "username": world.writer.id,
            "password": world.writer.password,
            "scope": world.scope,
        },
        "repository": world.repository,
        "word": word,
        "properties": {"r_object_type": served.site.type("document"), "object_name": name, "title": "first"},
        "query": {"expression-set": {"expressions": [{"expression-type": "fulltext", "value": word}]}},
    }

    def told(step: str) -> Any:
        python = environment(LOCK) / "bin" / "python"
        return json.loads(run(python, "-c", program, folder=folder, typed=json.dumps(asked | {"step": step})))

    assert told("make") == {"read": name, "downloaded": word, "checked in": ["second", True]}
    world.catch_up()
    assert told("find") == {
        "found": [[name, "float"]],
        "found by document": [name],
        "deleted": 204,
        "read": 404,
    }


def test_openapi_python_client_loses_nothing_and_its_client_works(
    served: Served, description: Path, tmp_path: Path
) -> None:
    programs = environment(LOCK) / "bin"
    told = ("--path", description, "--meta", "none", "--output-path", tmp_path / "client")
    run(programs / "openapi-python-client", "generate", *told, folder=tmp_path, path=programs)
    assert lost(description, {file.stem for file in tmp_path.glob("client/api/*/*.py")}) == []
    check_use(served, BY_OPENAPI_PYTHON_CLIENT, tmp_path)


def test_openapi_generators_python_loses_nothing_and_its_client_works(
    served: Served, description: Path, tmp_path: Path
) -> None:
    made = generated("python", description, tmp_path)
    assert lost(description, methods(made, "openapi_client/api/*.py", r"^    def (\w+)\(")) == []
    check_use(served, BY_OPENAPI_GENERATOR, made)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_openapi_generator_loses_nothing_and_its_code_compiles(
    description: Path, tmp_path: Path, language: Language
) -> None:
    made = generated(language.name, description, tmp_path)
    assert lost(description, methods(made, language.files, language.method)) == []
    programs = node_environment(HERE / "typescript") if language.compile[0] == "tsc" else None
    run(*language.compile, folder=made, path=programs)
