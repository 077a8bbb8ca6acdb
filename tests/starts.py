"""What tests start, so that nobody marks one by hand: by the fixtures they ask for, or by name where they ask for none.

The markers are explained in pyproject.toml. The guard (tests/guard) stops a test that starts what is not said here.
"""

import re
from pathlib import Path

# Fixtures that start something; what asks for these is found by itself.
FIXTURES = {
    "notebook": "ranks",  # four ranks in a notebook, or as many as a fault is tried on
    "one_rank": "ranks",
    "uneven": "ranks",
    "four": "ranks",
    "two": "ranks",
    "played": "ranks",  # the jobs of twenty drills
    "told": "ranks",  # what ranks of one launch tell
    "heard": "ranks",  # what the programs of the index of errors print
    "differed": "ranks",  # what ranks with different environments print
    "ssh_server": "ranks",
    "lab": "hosts",
    "known": "hosts",
    "debian": "hosts",
    "unknown": "hosts",
    "cluster": "hosts ranks",
    "hub": "build",  # with the servers of its learners, where it is installed
    "site": "site build",
    "family": "build",  # a shell, and chapters that are executed below it
    "chromium": "site",
}
# Tests that start it themselves: a whole file, or one test of a file.
NAMED = {
    "bookkit/test_build.py::test_a_site_is_built_from_stored_outputs_and_leaks_nothing": "build",
    "bookkit/test_build.py::test_a_warning_is_an_error_and_is_shown": "build",
    "bookkit/test_build.py::test_run_executes_a_copy_and_builds_from_what_it_prints": "build",
    "bookkit/test_execute.py": "build",
    "bookkit/test_main.py::test_run_executes_chapters_that_lack_hosts_and_says_so": "build",
    "bookkit/test_mutations.py::test_a_change_is_noticed_by_an_error_or_by_an_output_and_else_nobody_does": "build",
    "bookkit/test_needs.py::test_nbval_executes_in_the_environment_of_record": "build",
    "bookkit/test_record.py::test_a_chapter_that_fails_keeps_what_it_had": "build",
    "bookkit/test_record.py::test_only_the_chapter_that_is_named": "build",
    "bookkit/test_record.py::test_outputs_are_stored_in_place_and_normalised": "build",
    "bookkit/test_record.py::test_recording_twice_gives_the_same_bytes": "build",
    "bookkit/test_record.py::test_what_is_recorded_has_ruffs_format": "build",
    "bookkit/test_record_again.py::test_recording_again_gives_the_same_bytes": "ranks",
    "bookkit/test_recorded.py::test_a_cell_that_was_never_recorded_stays_so_and_no_rule_minds": "build",
    "bookkit/test_recorded.py::test_gpu_1_stores_the_cells_that_need_one_and_nothing_else": "build",
    "bookkit/test_recorded.py::test_nbval_skips_such_a_cell_with_one_sentence": "build",
    "bookkit/test_recorded.py::test_on_a_gpu_the_cell_runs_and_its_versions_are_noted": "build",
    "bookkit/test_recorded.py::test_on_a_machine_without_a_gpu_record_keeps_what_is_stored_to_the_letter": "build",
    "bookkit/test_recorded.py::test_run_shows_what_is_stored_and_what_was_never_recorded": "build",
    "bookkit/test_recorded.py::test_the_cells_below_a_kept_one_count_as_if_it_had_run": "build",
    "bookkit/test_run.py::test_a_damaged_chapter_is_a_failure_like_any_other": "build",
    "bookkit/test_run.py::test_after_a_chapter_that_fails_the_others_run_and_the_site_is_built": "build",
    "bookkit/test_run.py::test_each_failure_is_kept_with_its_chapter_in_the_order_of_the_book": "build",
    "bookkit/test_run.py::test_one_place_means_one_after_the_other": "build",
    "bookkit/test_run.py::test_two_chapters_wait_for_each_other": "build",
    "bookkit/test_wheel.py": "build ranks",
    "faults/test_gpu_memory.py": "ranks",
    "faults/test_machine.py": "ranks",
    "faults/test_matrix.py": "ranks",
    "ranklab/test_claims.py::test_gloo_raises_at_once_when_the_ranks_that_it_waits_for_exit": "ranks",
    "ranklab/test_copies.py::test_a_fresh_rank_imports_torch_itself": "ranks",
    "ranklab/test_copies.py::test_a_restart_gets_a_copy_too": "ranks",
    "ranklab/test_copies.py::test_a_program_that_sets_variables_before_it_imports_torch_is_fresh": "ranks",
    "ranklab/test_copies.py::test_two_copies_draw_different_numbers_and_have_one_parent_that_ends_with_them": "ranks",
    "ranklab/test_deadman.py": "ranks",
    "ranklab/test_doctor.py::test_an_all_reduce_that_does_not_come_back_ends_at_the_deadline": "ranks",
    "ranklab/test_doctor.py::test_this_machine_is_ready": "ranks hosts",
    "ranklab/test_elsewhere.py::test_a_launcher_that_fails_is_told": "ranks",
    "ranklab/test_elsewhere.py::test_mpi": "ranks",
    "ranklab/test_elsewhere.py::test_ranks_get_gpus_by_the_rules_of_ranks_started_here": "ranks",
    "ranklab/test_forkserver.py::test_a_killed_server_takes_its_ranks_along": "ranks",
    "ranklab/test_forkserver.py::test_a_stopped_server_can_be_ended": "ranks",
    "ranklab/test_forkserver.py::test_an_unsafe_server_is_not_forked": "ranks",
    "ranklab/test_forkserver.py::test_spawn_behaves_the_same": "ranks",
    "ranklab/test_forkserver.py::test_stop_ends_what_a_rank_has_started": "ranks",
    "ranklab/test_forkserver.py::test_what_an_imported_module_prints_is_no_report": "ranks",
    "ranklab/test_forkserver.py::test_what_torch_reads_when_imported_is_read_again": "ranks",
    "ranklab/test_gpu_programs.py::test_on_a_cpu_a_late_rank_is_told_by_an_exception": "ranks",
    "ranklab/test_gpu_programs.py::test_the_matrix_of_gloo_is_the_one_that_meeting_up_draws": "ranks",
    "ranklab/test_hosts.py": "hosts",
    "ranklab/test_hosts_devices.py": "hosts ranks",
    "ranklab/test_hosts_world.py": "hosts ranks",
    "ranklab/test_launch_clock.py::test_a_deadline_of_torchrun_goes_by_it": "ranks",
    "ranklab/test_launch_devices.py::test_torchrun_gives_each_rank_its_own_variables": "ranks",
    "ranklab/test_layout.py::test_the_environment_is_what_torchrun_sets_on_two_uneven_nodes": "ranks",
    "ranklab/test_meter.py::test_torchrun_has_the_same_meter": "ranks",
    "ranklab/test_names.py": "hosts ranks",
    "ranklab/test_progress.py::test_a_slow_start_says_what_it_waits_for": "ranks",
    "ranklab/test_partners.py::test_a_job_with_uneven_steps_says_who_had_ended": "ranks",
    "ranklab/test_slurm_desk.py": "hosts ranks",
    "ranklab/test_starting.py": "ranks",
    "ranklab/test_starts_in_trouble.py": "ranks",
    "ranklab/test_torchrun.py::test_a_flag_that_does_not_exist_is_told_in_torchruns_words": "ranks",
    "ranklab/test_torchrun.py::test_a_machine_whose_name_does_not_resolve_is_no_obstacle": "ranks hosts",
    "ranklab/test_torchrun.py::test_a_restart_keeps_what_each_attempt_printed": "ranks",
    "ranklab/test_torchrun.py::test_arguments_and_variables_arrive": "ranks",
    "ranklab/test_torchrun.py::test_outputs_come_in_rank_order": "ranks",
    "ranklab/test_torchrun.py::test_the_reader_sees_it_once": "ranks",
    "ranklab/test_torchrun_faults.py": "ranks",
    "ranklab/test_torchrun_hosts.py": "hosts ranks",
    "ranklab/test_world.py": "ranks",
}


def markers(path, name, fixtures):
    """The markers of a test.

    Args:
        path: its file below tests.
        name: its function.
        fixtures: the names of all fixtures that it asks for, by others too.
    """
    words = [FIXTURES.get(fixture, "") for fixture in fixtures]
    words += [NAMED.get(path, ""), NAMED.get(f"{path}::{name}", "")]
    return set(" ".join(words).split())


def seconds(path, name, fixtures):
    """About how long a test takes, to begin with the file that takes longest: its worker would be the last to end.

    Args:
        path: as for :func:`markers`, like the others.
        name: see there.
        fixtures: see there.
    """
    found = markers(path, name, fixtures)
    if "hosts" in found:
        return 8.0
    by_itself = path in NAMED or f"{path}::{name}" in NAMED  # and not with the ranks that the others of its file have
    return 4.0 if by_itself else 0.6 if found else 0.05


FUNCTION = re.compile(r"^(@pytest\.fixture.*\n)?def (\w+)\(([^)]*)\)", re.MULTILINE)


def always(path: Path, tests: Path) -> set[str]:
    """The markers that every test of a file has, as far as its text tells: to leave it out, nobody has to import it.

    Args:
        path: the file.
        tests: the folder of all tests.
    """
    asked: dict[str, set[str]] = {}  # by each fixture
    found = []
    for file in [*(folder / "conftest.py" for folder in reversed(path.parents) if folder.is_relative_to(tests)), path]:
        for fixture, name, arguments in FUNCTION.findall(file.read_text(encoding="utf-8") if file.exists() else ""):
            words = set(re.findall(r"\w+", arguments))
            if fixture:
                asked[name] = words
            elif file == path and name.startswith("test_"):
                found.append((name, words))
    told = []
    for name, words in found:
        while more := set().union(*(asked.get(word, ()) for word in words)) - words:
            words = words | more
        told.append(markers(path.relative_to(tests).as_posix(), name, words))
    return set.intersection(*told) if told else set()
