"""The supervisor with real processes that do next to nothing, run in a process of its own because it forks."""

import re
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow


def supervised(roles: str, *, seconds: float = 20, stop_at: str = "", times: int = 1) -> tuple[int, str]:
    """Run a supervisor over roles written as Python; give its exit code and what was printed.

    It is told to stop when it has printed ``stop_at`` so many times. A role that reads a byte of the pipe ``announced``
    waits until all are ready and the supervisor knows it.
    """
    program = textwrap.dedent(
        """
        import os, sys, threading, time
        from muniment.server import logs
        from muniment.server.supervisor import Role, supervise
        from muniment.installation.settings import Settings
        from muniment.server import supervisor
        supervisor._LONGEST_PAUSE = 0.1
        logs.start(Settings())
        announced, announce = os.pipe()
        def all_ready():
            print("all ready", flush=True); os.write(announce, bytes(100))
        def steady(stop, ready):
            ready(); print("steady", os.getpid(), flush=True); stop.wait(); print("finished", flush=True)
        """
    )
    program += textwrap.dedent(roles) + "\n"
    program += "sys.exit(supervise(roles, 2, all_ready))\n"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        if stop_at:
            assert process.stdout is not None
            printed = ""
            while printed.count(stop_at) < times:
                line = process.stdout.readline()
                assert line, printed
                printed += line
            process.terminate()
            rest, _ = process.communicate(timeout=seconds)
            return process.returncode, printed + rest
        printed, _ = process.communicate(timeout=seconds)
        return process.returncode, printed
    finally:
        process.kill()
        process.wait()


def test_a_stop_lets_every_process_finish() -> None:
    code, printed = supervised("roles = [Role('one', steady), Role('two', steady)]", stop_at="all ready")
    assert code == 0
    assert printed.count("finished") == 2


def test_all_are_ready_before_ready_is_said() -> None:
    late = """
    def late(stop, ready):
        time.sleep(0.5); print("late", flush=True); ready(); stop.wait()
    roles = [Role('one', steady), Role('late', late)]
    """
    code, printed = supervised(late, stop_at="all ready")
    assert code == 0
    assert printed.index("late") < printed.index("all ready")


def test_a_process_for_which_the_system_has_no_room_is_started_later() -> None:
    crowded = """
    fork, number = os.fork, 0
    def crowded():
        global number
        number += 1
        if number == 3:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork()
    os.fork = crowded
    def falls(stop, ready):
        ready()
        if number == 2:
            os.read(announced, 1); os.kill(os.getpid(), 9)
        print("again", flush=True); stop.wait(); print("finished", flush=True)
    roles = [Role('one', steady), Role('falls', falls)]
    """
    code, printed = supervised(crowded, stop_at="again\n")
    assert code == 0
    assert "Resource temporarily unavailable" in printed
    assert printed.count("finished") == 2


def test_a_process_that_cannot_start_ends_everything() -> None:
    broken = """
    from muniment.installation.exit_codes import Failure
    def broken(stop, ready):
        raise Failure("The key is missing.")
    roles = [Role('one', steady), Role('broken', broken)]
    """
    code, printed = supervised(broken)
    assert code == 1
    assert "The key is missing." in printed
    assert "Traceback" not in printed
    assert "finished" in printed or "steady" not in printed


def test_a_bug_leaves_its_trace_in_the_log() -> None:
    broken = """
    def broken(stop, ready):
        raise KeyError("nobody saw this coming")
    roles = [Role('broken', broken)]
    """
    code, printed = supervised(broken)
    assert code == 1
    assert "Traceback" in printed


def test_one_that_falls_is_started_again_after_a_pause() -> None:
    falling = """
    supervisor._LONGEST_PAUSE = 2
    def falling(stop, ready):
        ready(); os.read(announced, 1); print("begun", flush=True)
    roles = [Role('one', steady), Role('falling', falling)]
    """
    code, printed = supervised(falling, stop_at="begun", times=3)
    assert code == 0
    pauses = [float(pause) for pause in re.findall(r'"again_in_seconds": ?([0-9.]+)', printed)]
    assert len(pauses) >= 2
    assert 0 < pauses[0] < pauses[1], "it waits longer each time"
    assert printed.count("steady") == 1


@pytest.mark.parametrize("vital", [False, True])
def test_one_that_could_work_and_is_killed_while_another_starts_is_started_again(vital: bool) -> None:
    killed = f"""
    import signal
    begun, begin = os.pipe()
    def killed(stop, ready):
        ready(); print("begun", flush=True); os.write(begin, os.getpid().to_bytes(4)); stop.wait()
    def late(stop, ready):
        os.kill(int.from_bytes(os.read(begun, 4)), signal.SIGKILL); os.read(begun, 4); ready(); stop.wait()
    roles = [Role('killed', killed, vital={vital}), Role('late', late)]
    """
    code, printed = supervised(killed, stop_at="all ready")
    assert code == 0, printed
    assert printed.count("begun") == 2
    assert "could not start" not in printed


def test_when_a_vital_one_falls_everything_ends() -> None:
    vital = """
    def vital(stop, ready):
        ready(); os.read(announced, 1)
    roles = [Role('one', steady), Role('vital', vital, vital=True)]
    """
    code, printed = supervised(vital)
    assert code == 1
    assert "finished" in printed


def test_a_vital_one_that_is_killed_is_started_again_and_the_others_go_on() -> None:
    vital = """
    import signal
    def vital(stop, ready):
        ready()
        if not os.path.exists(mark):
            open(mark, "w").close(); os.read(announced, 1); os.kill(os.getpid(), signal.SIGKILL)
        print("begun again", flush=True); stop.wait()
    import tempfile
    mark = tempfile.mkdtemp() + "/mark"
    roles = [Role('one', steady), Role('vital', vital, vital=True)]
    """
    code, printed = supervised(vital, stop_at="begun again")
    assert code == 0
    assert printed.count("steady") == printed.count("finished") == 1


@pytest.mark.timeout(60)
def test_a_signal_that_is_sent_to_the_process_and_to_its_group_is_one_request_to_stop() -> None:
    slow = """
    import signal
    def slow(stop, ready):
        ready(); stop.wait(); os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(0.3); print("finished", flush=True)
    roles = [Role('slow', slow)]
    """
    code, printed = supervised(slow, stop_at="all ready")
    assert code == 0
    assert "finished" in printed
    assert "stopped by force" not in printed


def test_one_that_does_not_stop_in_time_is_stopped_by_force() -> None:
    stubborn = """
    def stubborn(stop, ready):
        ready()
        while True: time.sleep(60)
    supervisor._GRACE_SECONDS = 0
    roles = [Role('stubborn', stubborn)]
    """
    code, printed = supervised(stubborn, stop_at="all ready", seconds=40)
    assert code == 0
    assert "stopped by force" in printed


def test_what_a_thread_has_freed_goes_back_to_the_system() -> None:
    hashing = """
        import ctypes, pathlib
        def resident():
            said = pathlib.Path("/proc/self/statm").read_text().split()
            return int(said[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
        def hash():
            for _ in range(3):
                bytearray(b"x") * (19 << 20)
        def work(stop, ready):
            before = resident()
            thread = threading.Thread(target=hash)
            thread.start()
            thread.join()
            ctypes.CDLL(None).malloc_trim(0)
            print("more by", resident() - before, "MiB", flush=True)
            ready(); stop.wait()
        roles = [Role('passwords', work)]
        """
    code, printed = supervised(hashing, stop_at="all ready")
    assert code == 0
    assert int(printed.partition("more by ")[2].split()[0]) < 5, printed
