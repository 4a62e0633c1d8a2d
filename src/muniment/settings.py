"""Every setting: read once from one file, the environment and the command line, then checked and frozen.

A later source wins: the file, then the environment, then the command line. An unknown key is refused, and the message
names the nearest known key. So a typing error never leaves a default in force unnoticed.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec
import sqlalchemy as sa

from muniment.db import Half
from muniment.directory.options import DirectoryOptions
from muniment.repository.options import RepositoryOptions
from muniment.web.options import WebOptions
from muniment.web.refusals import Refusal

Doc = msgspec.Meta

_PREFIX = re.compile(r"[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*")


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
    """A setting is unknown, has a wrong value, or contradicts another setting. The sentence names it."""


class Setting(msgspec.Struct, frozen=True):
    """One row of the table of settings: its key, its annotated type, its default, its meaning."""

    key: str
    kind: Any
    default: Any
    meaning: str

    @property
    def variable(self) -> str:
        """Name the environment variable that sets it."""
        return "MUNIMENT_" + self.key.upper().replace(".", "_")


def read(
    file: Path | None,
    environment: Mapping[str, str] | None = None,
    overrides: Sequence[str] = (),
    *,
    file_must_exist: bool = False,
) -> Settings:
    """Read the settings from a TOML file, the environment and ``key=value`` texts of the command line.

    Raises BadSettings with the source and the key.
    """
    settings_by_key = {setting.key: setting for setting in table()}
    values: dict[str, Any] = {}
    if file is not None and (file_must_exist or file.exists()):
        values |= _from_file(file, settings_by_key)
    values |= _from_environment(os.environ if environment is None else environment, settings_by_key)
    for override in overrides:
        values |= _from_override(override, settings_by_key)
    if "directory.names.administration_partition" in values and "repository.administrators" not in values:
        values["repository.administrators"] = (f"administrators@{values['directory.names.administration_partition']}",)
    nested: dict[str, Any] = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        place = nested
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = value
    settings = msgspec.convert(nested, Settings)
    _check(settings)
    return settings


def table() -> Iterator[Setting]:
    """List every setting in the order of the sources."""
    yield from _rows(Settings, "")


def markdown() -> str:
    """Write docs/settings.md."""
    lines = [
        "# Settings",
        "",
        "`muniment settings --markdown` generates this page from the code; a test compares the two.",
        "",
        "Settings come from one TOML file (`muniment.toml` in the data folder, or `--config FILE`), from the",
        "environment, and from `--set key=value` on the command line; a later source wins. An unknown key is refused.",
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
    """List every setting with its value in force and its meaning; a password in a database address is left out."""
    for setting in table():
        value: Any = settings
        for name in setting.key.split("."):
            value = getattr(value, name)
        if setting.key.endswith("_database") and value:
            value = sa.make_url(value).render_as_string(hide_password=True)
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
        if isinstance(value, dict) and value and key not in settings_by_key:
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
            # Other names may be somebody else's (a cluster sets MUNIMENT_SERVICE_HOST) unless they are nearly ours.
            near = difflib.get_close_matches(variable, variables, 1, 0.6 if variable.startswith(sections) else 0.85)
            if near or variable.startswith(sections):
                raise BadSettings(f"There is no setting for the environment variable {variable}{_suggestion(near)}")
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
    near = difflib.get_close_matches(key, settings_by_key, 1, 0.5)
    if not near:
        near = [other for other in settings_by_key if other.rpartition(".")[2] == key.rpartition(".")[2]][:1]
    raise BadSettings(f"{source}: there is no setting {key!r}{_suggestion(near)}")


def _suggestion(near: Sequence[str]) -> str:
    return f"; did you mean {near[0]!r}?" if near else "; docs/settings.md lists them all."


def _parse_text(setting: Setting, text: str) -> Any:
    plain = get_args(setting.kind)[0]
    if get_origin(plain) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    if get_origin(plain) is dict:
        return dict(part.strip().partition("=")[::2] for part in text.split(",") if part.strip())
    if plain in {int, bool}:
        try:
            return msgspec.convert(text, plain, strict=False)
        except msgspec.ValidationError:
            return text
    return text


def _convert(setting: Setting, value: Any, source: str) -> Any:
    try:
        return msgspec.convert(value, setting.kind)
    except msgspec.ValidationError as error:
        # The value itself may be a database address with a password: it is not repeated.
        raise BadSettings(f"{source}: the setting {setting.key!r} does not fit: {error}.") from error


def _check(settings: Settings) -> None:
    if not settings.halves:
        raise BadSettings("halves: at least one of 'directory' and 'repository' must run.")
    if "directory" not in settings.halves and not settings.repository.tokeninfo_url:
        raise BadSettings("repository.tokeninfo_url: a repository without the directory in one process needs it.")
    _check_web(settings.web)
    _check_prefixes(settings)
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


def _check_database(key: str, url: str) -> None:
    try:
        backend = sa.make_url(url).get_backend_name() if url else "sqlite"
    except sa.exc.ArgumentError as error:
        raise BadSettings(f"{key}: this is no database address.") from error
    if backend not in {"sqlite", "postgresql"}:
        raise BadSettings(f"{key}: {backend!r} is not offered; use sqlite or postgresql.")


def _bounds(setting: Setting) -> str:
    plain, *metas = get_args(setting.kind)
    if get_origin(plain) is Literal:
        return " One of " + ", ".join(f"`{choice}`" for choice in get_args(plain)) + "."
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
