"""Readers under atheris, each in a process of its own: bytes that reach new code are kept and changed further.

``python -m tests.campaign.coverage_guided`` reads lines of JSON: a reader's name, a file for what is printed, and
libFuzzer's options. For each line it forks a process, so that the modules are loaded and instrumented only once, and
prints the status with which that process ended. The status is not 0, and the input is left in a file, if a reader
raises anything but a refusal, if an input takes too long, or if memory is over the limit.
"""

import json
import os
import sys

import atheris

with atheris.instrument_imports(
    include=["muniment.web", "muniment.repository", "muniment.directory", "python_multipart"]
):
    from tests.campaign import readers


def main() -> None:
    """Run one reader after the other, each until libFuzzer's options say to stop."""
    for line in sys.stdin:
        name, printed, options = json.loads(line)
        if (child := os.fork()) == 0:
            _run(name, printed, options)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(name: str, printed: str, options: list[str]) -> None:
    file = os.open(printed, os.O_WRONLY | os.O_CREAT)
    os.dup2(file, sys.stdout.fileno())
    os.dup2(file, sys.stderr.fileno())
    atheris.Setup([sys.argv[0], *options], lambda data: readers.read_one(name, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
