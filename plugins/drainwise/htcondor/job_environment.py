"""Adding variables to a job's environment through the prepare hook's answer, keeping the user's own quoting.

The starter merges the hook's `Environment = "…"` line into the job ad. The user's text is taken over letter by letter
(still escaped as it came) and ours is appended: of two assignments of one name the later wins.
"""

from __future__ import annotations

_QUOTED = frozenset(" \t\r'")  # what cannot stand outside single quotes; a newline cannot stand in an ad at all


def assignment(name: str, value: str) -> str:
    """`NAME=value` in HTCondor's environment syntax: quoted as a whole where it must be, `'` is then doubled.

    Raises ValueError when there is a newline or NUL in it.
    """
    return _quoted(f"{name}={value}")


def _quoted(text: str) -> str:
    if "\n" in text or "\0" in text:
        raise ValueError("a newline or NUL cannot stand in an environment variable")
    return text if _QUOTED.isdisjoint(text) else "'" + text.replace("'", "''") + "'"


def from_old_syntax(raw: str, delimiter: str) -> str:
    """The assignments of the old `Env` attribute (`A=1;B=2`, no quoting at all) in today's syntax.

    A piece without `=` is none, unless it has a `$$`, which HTCondor keeps for what it may stand for.
    """
    pieces = [piece.lstrip(" \t\r") for piece in raw.split(delimiter)]
    return " ".join(_quoted(piece) for piece in pieces if piece.find("=") > 0 or ("=" not in piece and "$$" in piece))


def _inside(raw: str) -> str:
    if len(raw) < 2 or raw[0] != '"' or raw[-1] != '"' or '"' in raw[1:-1].replace('\\"', ""):
        raise ValueError("the job's environment is not a string; it was left as it is")
    return raw[1:-1]


def with_variables(environment: str | None, old_env: str | None, delimiter: str, added: dict[str, str]) -> str:
    """The line for the hook's standard output.

    `environment` and `old_env` are the raw right-hand sides of the job ad's `Environment` and `Env` (with their
    quotation marks, still escaped) or None; `added` are the variables to set over the user's own. Raises ValueError
    when a value cannot be written or the job's own environment is not a string literal, which must not be lost.
    """
    kept = ""
    if environment is not None:
        kept = _inside(environment)
    elif old_env is not None:
        kept = from_old_syntax(_inside(old_env), delimiter)
    ours = " ".join(assignment(name, value) for name, value in added.items()).replace('"', '\\"')
    return f'Environment = "{kept + " " if kept else ""}{ours}"'
