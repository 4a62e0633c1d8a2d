"""One reader under atheris, in a process of its own: bytes that reach new code are kept and changed further.

``python -m tests.campaign.coverage_guided <reader> <libFuzzer's options>`` ends with a status other than 0,
and leaves what the reader was given, when anything but a refusal comes out, when an input takes over a second, or
memory is over the limit.
"""

import sys

import atheris

with atheris.instrument_imports(
    include=["muniment.web", "muniment.repository", "muniment.directory", "python_multipart"]
):
    from tests.campaign import readers


def main() -> None:
    """Run until libFuzzer's options say to stop."""
    name = sys.argv[1]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], lambda data: readers.read_one(name, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
