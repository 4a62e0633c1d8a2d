"""Read every setting once.

The environment wins over the file, and the command line over both. An unknown key is refused, and so is a variable that
looks misspelt.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec
import sqlalchemy as sa

from muniment.database.connections import Half
from muniment.directory.entries import names
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import BadName
from muniment.ground.refusals import Refusal
from muniment.repository.content_options import LARGEST_OBJECT
from muniment.repository.extraction_options import ExtractionOptions
from muniment.repository.options import TOKENINFO_ADDRESS, RepositoryOptions
from muniment.web.options import WebOptions

Doc = msgspec.Meta

_PREFIX = re.compile(r"[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*")
_ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?")
_ENDPOINT = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_DEFAULT_PORT = re.compile(r"http://.*:80|https://.*:443")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an operator may set."""

    halves: Annotated[
        tuple[Half, ...], Doc(description="Which halves run in this process: `directory`, `repository`, or both.")
    ] = ("directory", "repository")
    directory_database: Annotated[
        str,
        Doc(
            description="The directory's database, such as `postgresql://user@host/name`; "
            "empty = `directory.db` in the data folder (SQLite)."
        ),
    ] = ""
    repository_database: Annotated[
        str, Doc(description="The repository's database; empty = `repository.db` in the data folder (SQLite).")
    ] = ""
    disk_reserve_mib: Annotated[
        int,
        Doc(
            description="MiB that content in the data folder leaves free on the disks of content and of SQLite "
            "databases. With less, new content is refused (507). What ends rights, deletions and the purge may use "
            "them. 0 = none.",
            ge=0,
            le=1_048_576,
        ),
    ] = 64
    audit_days: Annotated[
        int,
        Doc(
            description="How many days audit events and the history of rights are kept; 0 = for ever.",
            ge=0,
            le=36_500,
        ),
    ] = 0
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Doc(description="The lowest level that is logged.")
    ] = "info"
    log_format: Annotated[
        Literal["auto", "json", "console"],
        Doc(description="How log lines look; `auto` = `console` on a terminal, else `json`."),
    ] = "auto"
    web: WebOptions = WebOptions()
    directory: DirectoryOptions = DirectoryOptions()
    repository: RepositoryOptions = RepositoryOptions()


class BadSettings(Refusal):
    """A setting is unknown, has a wrong value, or contradicts another one; the sentence names it."""


class Setting(msgspec.Struct, frozen=True):
    """``key`` is as in ``web.port``."""

    key: str
    kind: Any
    default: Any
    meaning: str

    @property
    def variable(self) -> str:
        return "MUNIMENT_" + self.key.upper().replace(".", "_")


def read(
    file: Path | None,
    environment: Mapping[str, str] | None = None,
    overrides: Sequence[str] = (),
    *,
    file_must_exist: bool = False,
) -> Settings:
    """Without ``file_must_exist`` a missing file counts as empty. Raises BadSettings."""
    settings_by_key = {setting.key: setting for setting in table()}
    values: dict[str, Any] = {}
    if file is not None and (file_must_exist or file.exists()):
        values |= _from_file(file, settings_by_key)
    values |= _from_environment(os.environ if environment is None else environment, settings_by_key)
    for override in overrides:
        values |= _from_override(override, settings_by_key)
    if "repository.administrators" not in values:
        group, partition = (
            values.get(key, settings_by_key[key].default)
            for key in ("directory.names.administrators_group", "directory.names.administration_partition")
        )
        values["repository.administrators"] = (f"{group}@{partition}",)
    nested: dict[str, Any] = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        section_values = nested
        for section in sections:
            section_values = section_values.setdefault(section, {})
        section_values[name] = value
    settings = msgspec.convert(nested, Settings)
    _check(settings)
    return settings


def table() -> Iterator[Setting]:
    yield from _rows(Settings, "")


def markdown() -> str:
    lines = [
        "# Settings",
        "",
        "`muniment settings --markdown` generates this page from the code; a test compares the two.",
        "",
        "Settings come from one TOML file (`muniment.toml` in the data folder, or `--config FILE`), from the",
        "environment, and from `--set key=value` on the command line; a later source wins. An unknown key is refused,",
        "and so is a variable that looks like a misspelt setting.",
        "In the environment and on the command line write a list with commas (`a,b`) and a table as `a=b,c=d`.",
        "",
        "The data folder itself is not a setting: name it by `--data FOLDER` or `MUNIMENT_DATA`. The default is",
        "`./muniment-data`.",
        "",
    ]
    sections: dict[str, list[Setting]] = {}
    for setting in table():
        sections.setdefault(setting.key.rpartition(".")[0], []).append(setting)
    for section, settings in sections.items():
        lines += [f"## `[{section}]`" if section else "## Top of the file", ""]
        lines += ["| Key | Environment | Default | Meaning |", "|---|---|---|---|"]
        for setting in settings:
            name = setting.key.rpartition(".")[2]
            meaning = setting.meaning + _bounds(setting)
            lines.append(f"| `{name}` | `{setting.variable}` | `{_toml(setting.default)}` | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def values_in_force(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Passwords and secrets are hidden."""
    for setting in table():
        value: Any = attrgetter(setting.key)(settings)
        if setting.key.endswith("_database") and value:
            url = sa.make_url(value)
            hidden = {name: "hidden" for name in url.query if "password" in name}
            value = url.update_query_dict(hidden).render_as_string(hide_password=True)
        if setting.key.endswith(("_secret", ".password")) and value:
            value = "***"
        yield setting.key, _toml(value), setting.meaning


def _rows(struct: type[msgspec.Struct], prefix: str) -> Iterator[Setting]:
    hints = get_type_hints(struct, include_extras=True)
    sections: list[Iterator[Setting]] = []
    for field in msgspec.structs.fields(struct):
        key = prefix + field.name
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            sections.append(_rows(field.type, key + "."))
            continue
        default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
        meaning = next((m.description or "" for m in get_args(hints[field.name])[1:] if isinstance(m, Doc)), "")
        yield Setting(key, hints[field.name], default, meaning)
    for section in sections:
        yield from section


def _from_file(file: Path, settings_by_key: Mapping[str, Setting]) -> dict[str, Any]:
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise BadSettings(f"The settings file {file} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"The settings file {file} is not TOML: {error}.") from error
    values: dict[str, Any] = {}
    for key, value in _leaves(content, "", settings_by_key):
        values[key] = _convert(_find_setting(key, settings_by_key, str(file)), value, str(file))
    return values


def _leaves(
    content: Mapping[str, Any], prefix: str, settings_by_key: Mapping[str, Setting]
) -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        key = prefix + name
        is_section = any(other.startswith(key + ".") for other in settings_by_key)
        if isinstance(value, dict) and key not in settings_by_key and (value or is_section):
            yield from _leaves(value, key + ".", settings_by_key)
        else:
            yield key, value


_OTHER_VARIABLES = {"MUNIMENT_DATA", "MUNIMENT_CONFIG", "MUNIMENT_PASSWORD", "MUNIMENT_TOKEN"}


def _from_environment(environment: Mapping[str, str], settings_by_key: Mapping[str, Setting]) -> dict[str, Any]:
    variables = {setting.variable: setting for setting in settings_by_key.values()}
    sections = ("MUNIMENT_WEB_", "MUNIMENT_DIRECTORY_", "MUNIMENT_REPOSITORY_")
    values: dict[str, Any] = {}
    for variable, text in environment.items():
        if variable in variables:
            setting = variables[variable]
            values[setting.key] = _convert(setting, _parse_text(setting, text), f"environment variable {variable}")
        elif variable.startswith("MUNIMENT_") and variable not in _OTHER_VARIABLES:
            # Others may set such variables (a cluster sets MUNIMENT_SERVICE_HOST), so only near misses are refused.
            candidates = difflib.get_close_matches(
                variable, variables, 1, 0.6 if variable.startswith(sections) else 0.85
            )
            if candidates or variable.startswith(sections):
                raise BadSettings(
                    f"There is no setting for the environment variable {variable}{_suggestion(candidates)}"
                )
    return values


def _from_override(override: str, settings_by_key: Mapping[str, Setting]) -> dict[str, Any]:
    key, equals, text = override.partition("=")
    if not equals:
        raise BadSettings(f"--set {override}: write it as --set key=value.")
    setting = _find_setting(key.strip(), settings_by_key, "--set")
    return {setting.key: _convert(setting, _parse_text(setting, text), "--set")}


def _find_setting(key: str, settings_by_key: Mapping[str, Setting], source: str) -> Setting:
    if key in settings_by_key:
        return settings_by_key[key]
    candidates = difflib.get_close_matches(key, settings_by_key, 1, 0.5)
    if not candidates:
        candidates = [other for other in settings_by_key if other.rpartition(".")[2] == key.rpartition(".")[2]][:1]
    raise BadSettings(f"{source}: there is no setting {key!r}{_suggestion(candidates)}")


def _suggestion(candidates: Sequence[str]) -> str:
    return f"; did you mean {candidates[0]!r}?" if candidates else "; docs/settings.md lists them all."


def _parse_text(setting: Setting, text: str) -> Any:
    plain_type = get_args(setting.kind)[0]
    if get_origin(plain_type) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    if get_origin(plain_type) is dict:
        return dict(part.strip().partition("=")[::2] for part in text.split(",") if part.strip())
    if plain_type in {int, float, bool}:
        try:
            return msgspec.convert(text, plain_type, strict=False)
        except msgspec.ValidationError:
            return text
    return text


def _convert(setting: Setting, value: Any, source: str) -> Any:
    try:
        return msgspec.convert(value, setting.kind)
    except msgspec.ValidationError as error:
        # The message leaves out the value, which may be a database address with a password.
        raise BadSettings(f"{source}: the setting {setting.key!r} does not fit: {error}.") from error


def _check(settings: Settings) -> None:
    if not settings.halves:
        raise BadSettings("halves: at least one of 'directory' and 'repository' must run.")
    if "directory" not in settings.halves and not settings.repository.tokeninfo_url:
        raise BadSettings("repository.tokeninfo_url: a repository without the directory in one process needs it.")
    _check_basic(settings.repository)
    _check_web(settings.web)
    _check_prefixes(settings)
    _check_administrators(settings.directory.names.administrators_group)
    _check_cors(settings.repository)
    _check_s3(settings.repository)
    _check_index(settings.repository)
    _check_tika(settings.repository.extraction)
    for key in ("directory_database", "repository_database"):
        _check_database(key, getattr(settings, key))


def _check_web(web: WebOptions) -> None:
    if bool(web.certificate_file) != bool(web.key_file):
        raise BadSettings("web.certificate_file and web.key_file go together: set both, or neither.")
    if web.http_port == web.port:
        raise BadSettings("web.http_port and web.port are the same: give plain HTTP a port of its own, or 0.")
    addresses = [
        ("web.base_address", web.base_address),
        *(("web.other_addresses", other) for other in web.other_addresses),
    ]
    for key, address in addresses:
        parts = urlsplit(address)
        if address and (parts.scheme not in {"http", "https"} or not parts.netloc or parts.query or parts.fragment):
            raise BadSettings(f"{key}: {address!r} is not an address such as 'https://files.example.org'.")


def _check_basic(repository: RepositoryOptions) -> None:
    url = repository.tokeninfo_url
    for use in ("basic", "search_page"):
        if getattr(repository, f"{use}_secret") and not getattr(repository, f"{use}_client"):
            raise BadSettings(
                f"repository.{use}_secret is the secret of repository.{use}_client: set both, or neither."
            )
    for key, what in (("basic_client", "the sign-in"), ("resource_secrets_file", "users and groups")):
        if getattr(repository, key) and url and not TOKENINFO_ADDRESS.fullmatch(url):
            raise BadSettings(
                f"repository.{key}: the address of {what} follows from repository.tokeninfo_url, "
                f"so that has to end in '/v1/authentication/oauth/tokeninfo'; it is {url!r}."
            )
    if repository.resource_secrets_file and not url:
        raise BadSettings(
            "repository.resource_secrets_file is for a directory elsewhere, so repository.tokeninfo_url has to be set."
        )


def _check_prefixes(settings: Settings) -> None:
    prefixes = {
        "directory.names.prefix": settings.directory.names.prefix,
        "repository.names.prefix": settings.repository.names.prefix,
    }
    for key, prefix in prefixes.items():
        if not _PREFIX.fullmatch(prefix) or prefix.split("/")[0] in {"health", "docs"}:
            raise BadSettings(f"{key}: {prefix!r} cannot be the first path segment of a half's addresses.")
    if len(set(prefixes.values())) == 1:
        raise BadSettings("directory.names.prefix and repository.names.prefix are the same: each half needs its own.")


def _check_administrators(group: str) -> None:
    key = "directory.names.administrators_group"
    if "@" in group:
        raise BadSettings(f"{key}: without a partition, so without '@'.")
    try:
        names.check(group)
    except BadName as refusal:
        raise BadSettings(f"{key}: {refusal.sentence}") from refusal


def _check_cors(repository: RepositoryOptions) -> None:
    if "*" in repository.cors_origins and repository.cors_credentials:
        raise BadSettings("repository.cors_origins: '*' cannot go with cors_credentials: name each origin.")
    for origin in repository.cors_origins:
        if origin != "*" and (not _ORIGIN.fullmatch(origin) or _DEFAULT_PORT.fullmatch(origin)):
            raise BadSettings(
                f"repository.cors_origins: {origin!r} is no origin as browsers send it: 'https://app.example.org', in "
                "lower case, with a port only if it is not the default one, and without a path."
            )


def _check_s3(repository: RepositoryOptions) -> None:
    s3 = repository.s3
    texts = {"endpoint": s3.endpoint, "bucket": s3.bucket, "access_key": s3.access_key}
    texts["access_secret' or 'access_secret_file"] = s3.access_secret or s3.access_secret_file
    missing = [name for name, text in texts.items() if not text]
    if repository.content_store == "s3" and missing:
        raise BadSettings(f"repository.content_store is 's3', so repository.s3 needs '{missing[0]}'.")
    if s3.access_secret and s3.access_secret_file:
        raise BadSettings("Set repository.s3.access_secret or repository.s3.access_secret_file, not both.")
    if s3.endpoint and not _ENDPOINT.fullmatch(s3.endpoint):
        raise BadSettings(
            f"repository.s3.endpoint: {s3.endpoint!r} is not an address such as 'https://s3.example.org:9000', "
            "without a path."
        )
    if repository.content_store == "s3" and repository.max_content_bytes > LARGEST_OBJECT:
        raise BadSettings(f"repository.max_content_bytes: with content_store = 's3', this is at most {LARGEST_OBJECT}.")


def _check_index(repository: RepositoryOptions) -> None:
    options = repository.opensearch
    if repository.index == "opensearch" and not options.address:
        raise BadSettings("repository.index is 'opensearch', so repository.opensearch needs 'address'.")
    if options.address and not _has_port(options.address):
        raise BadSettings(f"repository.opensearch.address: {options.address!r} has no port from 1 to 65535.")
    if options.password and options.password_file:
        raise BadSettings("Set repository.opensearch.password or repository.opensearch.password_file, not both.")
    if (options.password or options.password_file) and not options.name:
        raise BadSettings("repository.opensearch.password is the password of repository.opensearch.name: set both.")


def _has_port(address: str) -> bool:
    try:
        return urlsplit(address).port != 0
    except ValueError:
        return False


def _check_tika(extraction: ExtractionOptions) -> None:
    if extraction.tika and not (_ENDPOINT.fullmatch(extraction.tika) and _has_port(extraction.tika)):
        raise BadSettings(
            f"repository.extraction.tika: {extraction.tika!r} is not an address such as 'http://127.0.0.1:9998', "
            "without a path."
        )
    if extraction.tika_secret and extraction.tika_secret_file:
        raise BadSettings("Set repository.extraction.tika_secret or repository.extraction.tika_secret_file, not both.")
    if not extraction.tika_secret.isprintable() or not extraction.tika_secret.isascii():
        raise BadSettings("repository.extraction.tika_secret: a header holds printable ASCII characters only.")


def _check_database(key: str, url: str) -> None:
    try:
        backend = sa.make_url(url).get_backend_name() if url else "sqlite"
    except sa.exc.ArgumentError as error:
        raise BadSettings(f"{key}: this is no database address.") from error
    if backend not in {"sqlite", "postgresql"}:
        raise BadSettings(f"{key}: {backend!r} is not offered; use sqlite or postgresql.")


def _bounds(setting: Setting) -> str:
    plain_type, *metas = get_args(setting.kind)
    if get_origin(plain_type) is Literal:
        return " One of " + ", ".join(f"`{choice}`" for choice in get_args(plain_type)) + "."
    for meta in metas:
        low, high = meta.ge, meta.le
        if low is not None and high is not None:
            return f" {low:,} to {high:,}."
        if low is not None:
            return f" At least {low:,}."
    return ""


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)
