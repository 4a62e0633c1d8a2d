"""On which database and with which names does each test run: in `make test`, and in which part of the campaign?"""

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from hypothesis import settings

from tests.properties.lengths import CAMPAIGN
from tests.scenes import NAMES

TESTS = Path(__file__).parent
DATABASES = ("sqlite", "postgresql")
CORE = "core"
"""The part of the campaign that every run of `.ci/run` takes."""

_CLAUSE = re.compile(r"interface/test_[2-7]_")
"""The tests of the given interface's clauses."""

_OF_INDEX = ("contract/test_search_sorts", "contract/test_long_questions")
"""The contracts of the index alone: which database is below it says little."""

_LONGER = ("properties/", "campaign/")
"""What `make test` runs for a moment, and the campaign for long, on each database."""

PARTS: Mapping[str, tuple[str, ...]] = {
    CORE: (
        "e2e/test_kills",
        "e2e/test_applications",
        "properties/test_twin_index",
        "properties/test_score_attack",
        "rights/test_every_address",
        "contract/test_grants_races",
        "contract/test_remembered_answers",
        "contract/test_types_races",
        "contract/test_guard_races",
        "peers/test_javascript_clients",
    ),
    "postgresql": ("interface/", "console/"),
    "s3": (
        "contract/test_content_",
        "contract/test_exports",
        "e2e/test_content_in_s3",
        "campaign/test_altered_content",
    ),
    "rooms": ("unit/", "contract/", "rights/", "corpus/test_cases", "bench/", "house/"),
    "applications": ("peers/test_spring", "peers/test_apache"),
    "clients": ("peers/", "e2e/test_wheel", "e2e/test_quality", "corpus/"),
    "browsers": ("e2e/test_browser", "e2e/test_search_page", "e2e/test_pages", "e2e/test_tour"),
    "generated": ("campaign/test_generated_requests", "campaign/test_document", "campaign/test_readers"),
    "disks": ("campaign/test_full_disk", "campaign/test_full_backup_disk", "campaign/test_locked_database"),
    "kills": ("e2e/test_backup", "e2e/test_exports", "campaign/test_pack_kills", "e2e/"),
    "purges": ("campaign/test_purge", "campaign/test_shares", "campaign/test_long_lists"),
    "scans": ("campaign/",),
    "laws": ("properties/",),
    "opensearch": ("opensearch/",),
}
"""What each part of the campaign runs, by beginnings of paths below `tests`; the first part that fits has a module."""

LONG_SECONDS = 3
LONG: tuple[str, ...] = (
    "e2e/test_kills.py::test_what_was_answered_survives_kills",
    "campaign/test_generated_requests.py::test_requests_by_the_document",
    "e2e/test_halves.py::test_a_repository_alone_asks_another_directory_whose_token_it_is",
    "e2e/test_exports.py::test_an_import_that_is_killed_goes_on_and_is_found",
    "unit/directory/sign_in/test_passwords.py::test_no_stored_password_is_never_right_and_costs_as_much",
    "e2e/test_requests.py::test_every_request_gets_the_answer_that_is_printed",
    "e2e/test_languages.py::test_texts_are_found_by_the_stems_of_their_languages_once_the_setting_names_them",
    "e2e/test_backup.py::test_what_was_answered_before_the_backup_is_there_after_the_restore",
    "e2e/test_search_page.py::test_every_page_fits_its_width_can_be_read_and_is_clean_to_axe",
    "contract/test_lists.py::test_no_list_is_forgotten",
    "unit/repository/search/index/tantivy/test_engine.py::test_hostile_queries_stay_cheap",
    "contract/test_migrations.py::test_a_migration_killed_at_any_statement_is_finished_by_the_next",
    "unit/repository/store/extraction/test_extractor.py::test_poison_files_are_parked_after_three_tries_and_stop_nobody",
    "e2e/test_search_page.py::test_somebody_searches_from_the_front_page_to_a_document_and_out_again",
    "unit/repository/search/agent/test_agent.py::test_a_repository_gets_another_language_while_searches_go_on",
    "rights/test_every_address.py::test_a_right_that_ends_while_a_request_is_under_way_is_not_used",
    "rights/test_every_address.py::test_a_right_that_holds_is_used",
    "e2e/test_browser.py::test_an_administrator_permits_plain_http_and_takes_it_back",
    "e2e/test_backup.py::test_a_restore_killed_at_any_step_is_not_served_and_can_be_given_again",
    "corpus/test_cases.py::test_a_search_finds_what_a_person_would_expect",
    "e2e/test_exports.py::test_an_export_that_is_killed_goes_on",
    "e2e/test_counts.py::test_each_kind_of_request_takes_what_the_table_says",
    "rights/test_every_address.py::test_a_guard_that_changes_while_a_request_is_under_way_is_obeyed",
    "unit/repository/store/content/test_archive.py::test_an_archive_that_is_given_up_is_let_go",
    "e2e/test_browser.py::test_every_page_fits_its_width_and_can_be_read",
    "unit/cli/test_watching.py::test_what_happens_in_a_watched_folder_happens_in_the_repository",
    "e2e/test_backup.py::test_a_backup_killed_at_any_step_is_not_there_and_can_be_made_again",
    "e2e/test_serve.py::test_a_folder_in_use_is_one_line_that_says_what_to_do",
    "contract/test_each_step_fails.py::test_packs_are_compacted_or_stay",
    "campaign/test_generated_requests.py::test_requests_that_no_document_describes",
    "unit/repository/store/extraction/confined/test_sandbox.py::test_a_poison_file_costs_little_and_the_next_one_is_read",
    "properties/test_twin_index.py::test_set_total_terms_excerpts_and_facets_are_those_of_the_twin",
    "properties/test_explanation.py::test_an_explanation_is_that_of_a_repository_with_nothing_but_what_its_caller_may_see",
    "e2e/test_tour.py::test_started_again_it_keeps_its_passwords_and_its_documents",
    "properties/test_languages.py::test_hits_are_those_of_the_oracle",
    "e2e/test_serve.py::test_a_folder_of_another_schema_is_refused_and_left_as_it_is",
    "properties/test_versions.py::test_versions_live_as_the_model_says",
    "contract/test_each_step_fails.py::test_an_import_says_what_it_could_not_keep_and_the_next_brings_the_rest",
    "e2e/test_pages.py::test_the_commands_of_a_page_print_what_the_page_shows",
    "contract/test_remembered_answers.py::test_a_token_that_another_process_ends_is_refused_from_the_next_question_on",
    "properties/test_aql_oracle.py::test_the_index_finds_what_the_oracle_finds",
    "campaign/test_altered_content.py::test_altered_content_is_found_named_and_never_served_as_good",
    "campaign/test_pack_kills.py::test_packs_survive_kills",
    "contract/test_grants_races.py::test_after_a_revocation_nothing_of_the_grant_lives",
    "contract/test_lists.py::test_a_list_of_people_fetches_a_row_for_each_member_of_a_page_and_one_more",
    "contract/test_slow_downloads.py::test_downloads_that_nobody_reads_are_cut_off_and_their_places_are_free_again",
    "contract/test_unread_answers.py::test_who_reads_slowly_but_fast_enough_gets_the_whole",
    "e2e/test_browser.py::test_a_user_in_the_role_sees_who_and_for_what_until_he_is_disabled",
    "e2e/test_halves.py::test_a_namesake_elsewhere_inherits_nothing_of_whoever_has_made_a_request",
    "e2e/test_languages.py::test_a_language_without_stems_is_refused_at_the_start",
    "e2e/test_requests.py::test_every_request_gets_the_same_answer_by_name_and_password",
    "e2e/test_search_page.py::test_everything_is_reached_from_the_keyboard",
    "e2e/test_secrets.py::test_after_the_tour_no_secret_is_kept_anywhere",
    "e2e/test_serve.py::test_a_body_that_nobody_waits_for_any_more_is_cut_off",
    "e2e/test_serve.py::test_a_head_that_never_ends_is_cut_off",
    "e2e/test_serve.py::test_children_do_not_outlive_their_supervisor",
    "e2e/test_serve.py::test_it_serves_both_halves_over_tls_and_links_everything",
    "e2e/test_serve.py::test_workers_share_a_port_a_fallen_one_is_started_again_and_a_stop_closes_idle_connections",
    "e2e/test_tour.py::test_the_server_outlives_the_demos_own_process",
    "interface/test_ours_1_matrix.py::test_every_cell_has_its_status_and_its_media_type",
    "interface/test_security_headers.py::test_no_answer_lacks_a_header",
    "peers/test_field_client.py::test_it_gets_a_token_and_asks_whose_it_is",
    "properties/test_explanation.py::test_an_object_is_explained_as_a_hit_when_the_search_finds_it_and_its_weights_are_its_score",
    "properties/test_people.py::test_people_of_any_name_are_listed_linked_and_found",
    "properties/test_twin_index.py::test_whole_answers_are_those_of_the_twin",
    "rights/test_every_address.py::test_a_password_and_a_ticket_are_not_used_either_once_the_right_has_ended",
    "unit/cli/test_departures.py::test_a_removal_killed_anywhere_is_finished_by_the_next",
    "unit/cli/test_watching.py::test_an_error_of_one_file_does_not_end_the_watch",
    "unit/repository/store/extraction/test_formats.py::test_a_bomb_is_refused_before_it_costs_much",
    "unit/repository/search/agent/test_agent.py::test_an_object_that_kills_every_writer_is_passed_over",
    "unit/repository/store/permissions/test_acl_lists.py::test_what_a_search_asks_of_acls_grows_with_what_is_granted_alone",
    "unit/repository/search/answering/kept/test_kept_searches.py::test_one_run_of_the_chores_leaves_nothing_expired",
    "unit/server/test_supervisor.py::test_a_process_for_which_the_system_has_no_room_is_started_later",
    "unit/server/test_supervisor.py::test_one_that_falls_is_started_again_after_a_pause",
)
"""The tests of which a run of `make test` takes `LONG_SECONDS` or more on an idle machine. They run first."""


def is_long(nodeid: str) -> bool:
    """Say whether a test is in `LONG`."""
    return nodeid.partition("[")[0].removeprefix("tests/") in LONG


def of_campaign() -> bool:
    """Say whether the campaign runs: it chooses among all tests, and tries laws for longer."""
    return settings.get_current_profile_name() == CAMPAIGN


def usual_databases(path: Path, marks: Iterable[pytest.Mark]) -> tuple[str, ...]:
    """List the databases on which `make test` runs a test that runs on each."""
    for mark in marks:
        if mark.name == "only":
            return (str(mark.args[0]),)
        if mark.name == "campaign_on":
            return tuple(each for each in DATABASES if each != mark.args[0])
    where = _below(path)
    return DATABASES if where.startswith("contract/") and not where.startswith(_OF_INDEX) else ("sqlite",)


def usual_names(path: Path) -> tuple[str, ...]:
    """List the names with which `make test` runs a test that runs with each."""
    where = _below(path)
    return NAMES if _CLAUSE.match(where) or where == "peers/test_clients.py" else NAMES[:1]


def waits_for_campaign(item: pytest.Item) -> bool:
    """Say whether `make test` leaves a test to the campaign: for its database, its names, because it takes
    long, or because it needs what has to be built."""
    where = _below(item.path)
    if where.startswith("opensearch/") or (of_campaign() and where.startswith(_LONGER)):
        return True
    return uses_s3(item) or not all(_sides(item))


def uses_s3(item: pytest.Item) -> bool:
    """Say whether a test needs a store that speaks S3, which is built first."""
    return isinstance(item, pytest.Function) and ("s3" in item.fixturenames or "s3" in parameters(item).values())


def waits_for_whole_campaign(item: pytest.Item) -> bool:
    """Say whether a short campaign leaves a test out, because `make test` runs it on this database or with these
    names."""
    return sorted(_sides(item)) == [False, True]


def applies(item: pytest.Item) -> bool:
    """Say whether a test applies to the database that it would run on."""
    mark = item.get_closest_marker("only")
    return mark is None or parameters(item).get("engine") in (None, mark.args[0])


def part_of(path: Path) -> str:
    """Name the part of the campaign to which a module of tests belongs. Raises LookupError."""
    where = _below(path)
    for part, prefixes in PARTS.items():
        if where.startswith(prefixes):
            return part
    raise LookupError(f"{path} is in no part of the campaign: tests/runs.py lists them.")


def parameters(item: pytest.Item) -> Mapping[str, object]:
    """Give the parameters with which a test runs."""
    return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


def _sides(item: pytest.Item) -> list[bool]:
    """Say for the database and the names of a test whether `make test` runs it with these, if it runs it with one."""
    chosen = parameters(item)
    usual = {
        "engine": usual_databases(item.path, item.iter_markers()),
        "site": usual_names(item.path),
    }
    return [chosen[name] in allowed for name, allowed in usual.items() if name in chosen and len(allowed) == 1]


def _below(path: Path) -> str:
    return path.relative_to(TESTS).as_posix()


def main() -> None:
    """Print the part whose turn it is: each commit moves on by one, so that a run can be repeated."""
    counted = subprocess.run(["git", "rev-list", "--count", "HEAD"], capture_output=True, check=True, cwd=TESTS)
    by_turns = [part for part in PARTS if part != CORE]
    print(by_turns[int(counted.stdout) % len(by_turns)])


if __name__ == "__main__":
    main()
