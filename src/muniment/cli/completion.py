"""Write a script with which a shell completes commands and options.

It holds every word, so the shell starts no program to complete one.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer
import typer.main

from muniment.cli import terminal

_WORD = re.compile(r"[A-Za-z0-9_-]+")


def completion_command(
    context: typer.Context,
    shell: Annotated[Literal["bash", "zsh"], typer.Argument(metavar="SHELL", help="bash or zsh.")],
) -> None:
    """Print a script that completes commands and options: source it from ~/.bashrc or ~/.zshrc."""
    terminal.line(script(context.find_root().command, shell))


def script(program: Any, shell: Literal["bash", "zsh"]) -> str:
    words = dict(_words(program, ()))
    leading = " ".join(sorted(_options(program)))
    takes_value = "|".join(sorted(_options(program, with_value=True)))
    cases = "\n".join(
        f'    "{path}") choices="{" ".join(sorted(following))}" ;;' for path, following in sorted(words.items())
    )
    body = _SCRIPT.format(cases=cases, leading=leading, takes_value=takes_value)
    return f"autoload -U +X bashcompinit && bashcompinit\n{body}" if shell == "zsh" else body


def _words(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    inner = {name: subcommand for name, subcommand in getattr(command, "commands", {}).items() if not subcommand.hidden}
    yield " ".join(path), [*inner, *(_options(command) if path else ())]
    for name, subcommand in inner.items():
        yield from _words(subcommand, (*path, name))


def _options(command: Any, *, with_value: bool = False) -> list[str]:
    options = [option for option in command.params if option.param_type_name == "option" and not option.hidden]
    if with_value:
        options = [option for option in options if not option.is_flag]
    names = [name for option in options for name in (*option.opts, *option.secondary_opts) if name.startswith("--")]
    return [name for name in (*names, *(() if with_value else ("--help",))) if _WORD.fullmatch(name)]


_SCRIPT = """\
_muniment() {{
  local word typed="" choices="" skip=""
  COMPREPLY=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    if [ -n "$skip" ]; then skip=""; continue; fi
    case "$word" in
      {takes_value}) skip=1 ;;
      -*) ;;
      *) _muniment_choices "${{typed:+$typed }}$word" && typed="${{typed:+$typed }}$word" ;;
    esac
  done
  _muniment_choices "$typed"
  case "${{COMP_WORDS[COMP_CWORD]}}" in
    -*) choices="$choices {leading}" ;;
  esac
  COMPREPLY=($(compgen -W "$choices" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}

_muniment_choices() {{
  case "$1" in
{cases}
    *) return 1 ;;
  esac
}}

complete -o default -F _muniment muniment"""
