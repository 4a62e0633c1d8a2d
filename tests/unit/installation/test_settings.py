import re
from pathlib import Path

import pytest

from muniment.installation import settings
from muniment.installation.layout import Installation
from muniment.installation.settings import BadSettings

ROOT = Path(__file__).parents[3]


def test_a_later_source_wins(tmp_path: Path) -> None:
    file = tmp_path / "muniment.toml"
    file.write_text('[web]\nport = 1001\nhost = "127.0.0.2"\nworkers = 3\n')
    found = settings.read(file, {"MUNIMENT_WEB_PORT": "1002", "MUNIMENT_WEB_WORKERS": "4"}, ["web.port=1003"])
    assert (found.web.host, found.web.workers, found.web.port) == ("127.0.0.2", 4, 1003)


def test_a_setting_with_a_fraction_is_read_from_a_variable_and_from_the_command_line() -> None:
    key, variable = "repository.index_check_seconds", "MUNIMENT_REPOSITORY_INDEX_CHECK_SECONDS"
    assert settings.read(None, {variable: "2.5"}).repository.index_check_seconds == 2.5
    assert settings.read(None, {}, [f"{key}=0"]).repository.index_check_seconds == 0
    for text in ("nan", "inf", "soon", "-0.5"):
        with pytest.raises(BadSettings, match=f"'{key}' does not fit"):
            settings.read(None, {}, [f"{key}={text}"])


def test_lists_and_tables_are_written_with_commas() -> None:
    found = settings.read(
        None, {"MUNIMENT_WEB_TRUSTED_PROXIES": "10.0.0.1, 10.0.0.2"}, ["directory.names.attributes=cn=name,sn=family"]
    )
    assert found.web.trusted_proxies == ("10.0.0.1", "10.0.0.2")
    assert found.directory.names.attributes == {"cn": "name", "sn": "family"}


@pytest.mark.parametrize(
    ("content", "named", "meant"),
    [
        ("[web]\nprot = 1\n", "web.prot", "web.port"),
        ("port = 1\n", "'port'", "web.port"),
        ("[directory.names]\nprefx = 'a'\n", "directory.names.prefx", "directory.names.prefix"),
        ("[wbe]\nport = 1\n", "wbe", "web"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_one(tmp_path: Path, content: str, named: str, meant: str) -> None:
    file = tmp_path / "muniment.toml"
    file.write_text(content)
    with pytest.raises(BadSettings) as refused:
        settings.read(file, {})
    assert str(file) in refused.value.sentence
    assert named in refused.value.sentence
    assert meant in refused.value.sentence


def test_a_section_without_lines_counts_as_nothing(tmp_path: Path) -> None:
    file = tmp_path / "muniment.toml"
    file.write_text("[web]\n# port = 1\n[repository.s3]\n[directory]\nnames = {}\n")
    assert settings.read(file, {}) == settings.Settings()


@pytest.mark.parametrize("section", ["wbe", "web.nonsense", "web.port.more"])
def test_an_unknown_section_is_refused_even_without_lines(tmp_path: Path, section: str) -> None:
    file = tmp_path / "muniment.toml"
    file.write_text(f"[{section}]\n")
    with pytest.raises(BadSettings):
        settings.read(file, {})


@pytest.mark.parametrize("variable", ["MUNIMENT_WEB_PROT", "MUNIMENT_LOG_LEVLE", "MUNIMENT_REPOSITORY_NONSENSE"])
def test_an_unknown_variable_is_refused(variable: str) -> None:
    with pytest.raises(BadSettings, match=variable):
        settings.read(None, {variable: "1"})


def test_somebody_elses_variable_is_left_alone() -> None:
    assert settings.read(None, {"MUNIMENT_SERVICE_HOST": "10.0.0.1", "MUNIMENT_DATA": "x"}) == settings.Settings()


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("web.port=http", "'web.port' does not fit: Expected `int`"),
        ("web.port=0", "'web.port' does not fit: Expected `int` >= 1"),
        ("log_level=loud", "'log_level' does not fit"),
        ("halves=library", "'halves' does not fit"),
        ("halves=", "at least one"),
        ("halves=repository", "tokeninfo_url"),
        ("web.port", "--set key=value"),
        ("web.key_file=x", "go together"),
        ("web.http_port=8443", "a port of its own"),
        ("web.base_address=files.example.org", "is not an address"),
        ("directory.names.prefix=rest", "the same"),
        ("directory.names.prefix=a b", "first path segment"),
        ("repository.names.prefix=health", "first path segment"),
        ("repository.basic_secret=x", "repository.basic_client"),
        ("directory_database=mysql://x/y", "'mysql' is not offered"),
        ("directory_database=nothing", "no database address"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(override: str, said: str) -> None:
    with pytest.raises(BadSettings) as refused:
        settings.read(None, {}, [override])
    assert said in refused.value.sentence


def test_a_refused_value_is_not_repeated_as_it_may_hold_a_password(tmp_path: Path) -> None:
    file = tmp_path / "muniment.toml"
    file.write_text('directory_database = ["postgresql://u:sesame@h/n"]')
    with pytest.raises(BadSettings) as refused:
        settings.read(file, {})
    assert "sesame" not in refused.value.sentence


def test_basic_at_a_directory_elsewhere_needs_an_address_from_which_the_sign_in_follows() -> None:
    elsewhere, client = "repository.tokeninfo_url=https://x.example/", "repository.basic_client=muniment-basic"
    for path in ("dirws/v1/authentication/oauth/tokeninfo", "a/b/rest/authentication/tokeninfo"):
        settings.read(None, {}, [elsewhere + path, client])
    with pytest.raises(BadSettings, match="basic_client"):
        settings.read(None, {}, [f"{elsewhere}whoami", client])


def test_the_settings_in_force_are_shown_without_the_secret() -> None:
    address = "postgresql+psycopg://me@here/papers?password=sesame&sslmode=require"
    chosen = settings.read(
        None, {}, ["repository.basic_client=c", "repository.basic_secret=sesame", f"directory_database={address}"]
    )
    shown = {key: value for key, value, _ in settings.values_in_force(chosen)}
    assert shown["repository.basic_secret"] == '"***"'
    assert "sesame" not in shown["directory_database"]
    assert "sslmode=require" in shown["directory_database"]


def test_a_file_that_is_no_toml_is_named_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "muniment.toml"
    file.write_text("[web\n")
    with pytest.raises(BadSettings, match="line 1"):
        settings.read(file, {})


def test_a_file_asked_for_must_exist(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="cannot be read"):
        settings.read(tmp_path / "none.toml", {}, file_must_exist=True)
    assert settings.read(tmp_path / "none.toml", {}) == settings.Settings()


def test_a_renamed_administration_partition_keeps_its_administrators() -> None:
    found = settings.read(None, {}, ["directory.names.administration_partition=boss"])
    assert found.repository.administrators == ("administrators@boss",)


def test_databases_lie_in_the_data_folder_unless_told_otherwise(tmp_path: Path) -> None:
    here = Installation(tmp_path, settings.read(None, {}, ["directory_database=postgresql://u:p@h/n"]))
    assert here.database_url("repository") == f"sqlite:///{tmp_path}/repository.db"
    assert here.database_url("directory") == "postgresql+psycopg://u:p@h/n"


@pytest.mark.parametrize(
    ("overrides", "base"),
    [
        ([], "https://127.0.0.1:8443"),
        (["web.host=::1"], "https://[::1]:8443"),
        (["web.host=0.0.0.0", "web.port=1"], "https://localhost:1"),
        (["web.base_address=https://files.example.org/"], "https://files.example.org"),
    ],
)
def test_the_base_of_links(tmp_path: Path, overrides: list[str], base: str) -> None:
    assert Installation(tmp_path, settings.read(None, {}, overrides)).base == base


def test_every_setting_has_a_meaning_and_a_variable_of_its_own() -> None:
    rows = list(settings.table())
    assert all(row.meaning.endswith((".", "...")) for row in rows)
    assert len({row.variable for row in rows}) == len(rows)


def test_the_settings_page_is_current() -> None:
    assert (ROOT / "docs" / "settings.md").read_text() == settings.markdown(), (
        "run: muniment settings --markdown > docs/settings.md"
    )


@pytest.mark.parametrize(
    "origin",
    [
        "app.example.org",
        "https://app.example.org/",
        "https://App.example.org",
        "https://app.example.org:443",
        "null",
        "https://*.example.org",
        "ftp://app.example.org",
    ],
)
def test_an_origin_is_written_as_browsers_send_it(origin: str) -> None:
    with pytest.raises(BadSettings, match="is no origin as browsers send it"):
        settings.read(None, {}, [f"repository.cors_origins=https://other.example.org,{origin}"])


@pytest.mark.parametrize("origin", ["https://app.example.org", "http://localhost:3000", "https://[::1]:8443", "*"])
def test_an_origin_may_be_any_site(origin: str) -> None:
    assert settings.read(None, {}, [f"repository.cors_origins={origin}"]).repository.cors_origins == (origin,)


def test_every_origin_together_with_credentials_is_refused() -> None:
    with pytest.raises(BadSettings, match="cannot go with cors_credentials"):
        settings.read(None, {}, ["repository.cors_origins=*", "repository.cors_credentials=true"])


@pytest.mark.parametrize("major", ["16.4.0000", "16", "16.x", ""])
def test_the_release_that_clients_compare_is_a_decimal(major: str) -> None:
    with pytest.raises(BadSettings, match=r"repository\.names\.major"):
        settings.read(None, {}, [f"repository.names.major={major}"])


_S3 = {
    "repository.s3.endpoint": "https://s3.example.org:9000",
    "repository.s3.bucket": "documents",
    "repository.s3.access_key": "key",
    "repository.s3.access_secret": "hidden",
    "repository.content_store": "s3",
}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"repository.s3.endpoint": ""}, "endpoint"),
        ({"repository.s3.endpoint": "s3.example.org"}, "not an address"),
        ({"repository.s3.endpoint": "https://s3.example.org/path"}, "without a path"),
        ({"repository.s3.endpoint": "https://key:secret@s3.example.org"}, "not an address"),
        ({"repository.s3.bucket": ""}, "bucket"),
        ({"repository.s3.bucket": "Upper"}, "repository.s3.bucket"),
        ({"repository.s3.prefix": "../x"}, "repository.s3.prefix"),
        ({"repository.s3.prefix": "x/"}, "repository.s3.prefix"),
        ({"repository.s3.access_key": ""}, "access_key"),
        ({"repository.s3.access_secret": ""}, "'access_secret' or 'access_secret_file'"),
        ({"repository.s3.access_secret_file": "/secret"}, "not both"),
        ({"repository.max_content_bytes": str(10**12)}, "max_content_bytes"),
        ({"repository.content_store": "ftp"}, "content_store"),
    ],
)
def test_a_store_in_the_network_needs_all_that_describes_it(changes: dict[str, str], sentence: str) -> None:
    assert settings.read(None, {}, [f"{key}={value}" for key, value in _S3.items()]).repository.content_store == "s3"
    with pytest.raises(BadSettings, match=sentence) as refused:
        settings.read(None, {}, [f"{key}={value}" for key, value in (_S3 | changes).items()])
    assert "hidden" not in refused.value.sentence


_CLUSTER = {
    "repository.index": "opensearch",
    "repository.opensearch.address": "https://search.example.org:9200",
    "repository.opensearch.name": "muniment",
    "repository.opensearch.password": "hidden",
}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"repository.opensearch.address": ""}, "needs 'address'"),
        ({"repository.opensearch.address": "https://key:secret@search.example.org"}, "repository.opensearch.address"),
        ({"repository.opensearch.address": "https://search.example.org/path"}, "repository.opensearch.address"),
        ({"repository.opensearch.address": "http://search.example.org:99999"}, "has no port"),
        ({"repository.opensearch.address": "http://search.example.org:x"}, "has no port"),
        ({"repository.opensearch.address": "http://[::1"}, "has no port"),
        ({"repository.opensearch.name": ""}, "set both"),
        ({"repository.opensearch.password_file": "/secret"}, "not both"),
        ({"repository.opensearch.prefix": "Upper"}, "repository.opensearch.prefix"),
        ({"repository.index": "solr"}, "repository.index"),
    ],
)
def test_an_index_in_a_cluster_needs_all_that_describes_it(changes: dict[str, str], sentence: str) -> None:
    found = settings.read(None, {}, [f"{key}={value}" for key, value in _CLUSTER.items()])
    assert found.repository.index == "opensearch"
    assert "hidden" not in str(list(settings.values_in_force(found)))
    with pytest.raises(BadSettings, match=sentence) as refused:
        settings.read(None, {}, [f"{key}={value}" for key, value in (_CLUSTER | changes).items()])
    assert "hidden" not in refused.value.sentence


@pytest.mark.parametrize("group", [" ops", "ops ", "o\x07ps", "ops@staff", "o\u200bps", "x" * 121])
def test_the_group_of_the_administrators_gets_a_name_that_a_group_may_have(group: str) -> None:
    with pytest.raises(BadSettings, match=r"^directory\.names\.administrators_group: "):
        settings.read(None, {"MUNIMENT_DIRECTORY_NAMES_ADMINISTRATORS_GROUP": group})


def test_the_secret_of_the_store_is_not_shown() -> None:
    found = settings.read(None, {"MUNIMENT_REPOSITORY_S3_ACCESS_SECRET": "hidden"}, [])
    assert found.repository.s3.access_secret == "hidden"
    assert "hidden" not in str(list(settings.values_in_force(found)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tika": "tika.example.org:9998"}, "not an address"),
        ({"tika": "http://tika.example.org/path"}, "without a path"),
        ({"tika": "http://name:secret@tika.example.org"}, "not an address"),
        ({"tika": "http://tika.example.org:99999"}, "not an address"),
        ({"tika_header": "X-A: b"}, "repository.extraction.tika_header"),
        ({"tika_secret": "a\r\nX-B: c"}, "printable ASCII"),
        ({"tika_secret": "a", "tika_secret_file": "/b"}, "not both"),
    ],
)
def test_the_settings_of_a_tika_server_are_checked(changes: dict[str, str], said: str) -> None:
    with pytest.raises(BadSettings, match=re.escape(said)):
        settings.read(None, {}, [f"repository.extraction.{key}={value}" for key, value in changes.items()])
