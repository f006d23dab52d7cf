"""Man pages, one for each command, and completion for bash and zsh, from the parsers of the command line."""

from __future__ import annotations

import argparse

import shtab
from build_manpages.manpage import Manpage

from drainwise import __version__
from drainwise.cli.command_line.commands import COMMANDS
from drainwise.cli.main import whole_parser
from drainwise.install.rendered_tree import RenderedFile, write_tree

BASH, ZSH = "/usr/share/bash-completion/completions/drainwise", "/usr/share/zsh/vendor-completions/_drainwise"
MAN = "/usr/share/man/man1"

_ALL_CHOICES = (
    ('choices_var="${current_action}_choices"\n', 'choices_var="${current_action}_choices[@]"\n'),
    (
        'current_action_choices="${!current_action_choices_var}"\n',
        'current_action_choices="$(printf \'%s\\n\' "${!current_action_choices_var}")"\n',
    ),
)
"""Lines of older shtab's, and those that take all elements of the list, a line each."""


def write_pages(root: str) -> None:
    """Write them below `root`."""
    parser = whole_parser()
    _make_choices_sequences(parser)
    files = [RenderedFile(BASH, bash_completion(parser)), RenderedFile(ZSH, _ascii(shtab.complete(parser, "zsh")))]
    for one in (parser, *commands_of(parser)):
        name = one.prog.replace(" ", "-")
        files.append(RenderedFile(f"{MAN}/{name}.1", _ascii(_page(one, name))))
    write_tree(files, root)


def bash_completion(parser: argparse.ArgumentParser) -> str:
    """Write what bash completes. Older shtab (Debian 12's) completes the first of several choices alone."""
    text = _ascii(shtab.complete(parser, "bash"))
    for first, every in _ALL_CHOICES:
        text = text.replace(first, every)
    return text


def _page(parser: argparse.ArgumentParser, name: str) -> str:
    words = parser.prog.split()
    parser.man_short_description = COMMANDS[words[1]] if len(words) > 1 else "cores back from pilots"  # type: ignore[attr-defined]
    page = Manpage(parser)
    # What it finds itself stops at the last colon, of which our usages have several.
    page.synopsis = parser.format_usage().partition(":")[2].split()
    _, _, rest = str(page).partition("\n")
    return f'.TH {name.upper()} 1 "" "drainwise {__version__}"\n' + rest.replace(
        f"\n{parser.prog} \\-", f"\n{name} \\-", 1
    )


def commands_of(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return the parsers of the commands, not those of their own sub-commands, which their pages contain."""
    [actions] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return list(actions.choices.values())


def _make_choices_sequences(parser: argparse.ArgumentParser) -> None:
    """Older shtab takes the first of the choices, of which some are tables."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                _make_choices_sequences(one)
        elif action.choices is not None:
            action.choices = tuple(action.choices)


def _ascii(text: str) -> str:
    """Write the signs of our texts in roff's names."""
    names = {"…": "\\&...", "×": "\\(mu", "−": "\\-", "–": "\\(en", "≤": "\\(<=", "≥": "\\(>="}
    for sign, name in names.items():
        text = text.replace(sign, name)
    return text.encode("ascii", "replace").decode()
