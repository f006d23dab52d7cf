"""The user's environment survives letter by letter, ours wins: judged by HTCondor's own library."""

from __future__ import annotations

import classad2
import htcondor2  # noqa: F401 - it registers HTCondor's own ClassAd functions
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.node.prepare_hook import assignment, from_old_syntax, with_variables
from drainwise.node.ad_text import raw_values

# A newline cannot stand in a job's attribute (HTCondor refuses it), a NUL in no environment.
letters = st.characters(max_codepoint=126, exclude_characters="\n\r\0")
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}(%%)?", fullmatch=True)
environments = st.dictionaries(names, st.text(letters, max_size=20), max_size=6)


def evaluated(function: str, text: str) -> str:
    """What HTCondor's own function makes of a string."""
    ad = classad2.ClassAd()
    ad["Given"] = text
    ad["Made"] = classad2.ExprTree(f"{function}(Given)")
    made = ad.eval("Made")
    assert isinstance(made, str), f"{text!r} is no environment: {made!r}"
    return made


def split(text: str) -> dict[str, str]:
    """The variables of an environment string, by HTCondor's manual: blanks separate, single quotes quote, '' is one."""
    tokens: list[str] = []
    token, quoted, at = "", False, 0
    started = False
    while at < len(text):
        letter = text[at]
        if letter == "'":
            if quoted and text[at + 1 : at + 2] == "'":
                token, at = token + "'", at + 1
            else:
                quoted = not quoted
            started = True
        elif letter in " \t\r\n" and not quoted:
            if started:
                tokens.append(token)
            token, started = "", False
        else:
            token, started = token + letter, True
        at += 1
    if started:
        tokens.append(token)
    return {name: value for name, _, value in (one.partition("=") for one in tokens)}


def set_by(line: str) -> dict[str, str]:
    """The variables that the starter would set after merging the hook's line into the job."""
    text = classad2.parseOne(line)["Environment"]
    assert split(evaluated("mergeEnvironment", text)) == split(text)  # our reading of the manual is HTCondor's
    return split(text)


def raw(environment: str) -> str:
    """The right-hand side as it stands in the job ad that the hook reads."""
    ad = classad2.ClassAd()
    ad["Environment"] = environment
    return raw_values(ad.printOld().encode("latin-1"), ("Environment",))["Environment"]


@given(environments, environments)
def test_users_variables_survive_and_ours_win(users: dict[str, str], ours: dict[str, str]) -> None:
    """HOSTILE 46: whatever the user set is there as it was, except where we set the same name."""
    written = " ".join(assignment(name, value) for name, value in users.items())
    assert set_by(with_variables(raw(written), None, ";", ours)) == {**users, **ours}


@pytest.mark.parametrize(
    "written",
    [
        "A=two' 'words B='x y'",
        "'A=x y' B=it''''s",
        "  A=1   B=2  ",
        'Q="quoted" E=',
        "B=\\x\\",
        "T='\t' S=;|&$(x)`y`",
        "A=1 A=2",
        "",
    ],
)
def test_the_users_own_quoting_is_kept(written: str) -> None:
    """Quoting that we would not have chosen stays letter by letter."""
    line = with_variables(raw(written), None, ";", {"JOBFEATURES": "/x"})
    text = classad2.parseOne(line)["Environment"]
    assert text == (f"{written} " if written else "") + "JOBFEATURES=/x"
    assert set_by(line) == {**split(written), "JOBFEATURES": "/x"}


old_syntax = st.lists(st.builds("{}={}".format, names, st.text(letters, max_size=9)), max_size=4).map(";".join)


@given(st.text(letters, max_size=40) | old_syntax)
def test_the_old_syntax_means_what_it_meant(text: str) -> None:
    """The old `Env` becomes the same variables that HTCondor's own conversion makes of it."""
    ad = classad2.ClassAd()
    ad["Env"] = f"A=1;{text}"  # HTCondor's function takes a first character that is no letter for the delimiter
    ad["New"] = classad2.ExprTree("envV1ToV2(Env)")
    expected = ad.eval("New")
    if isinstance(expected, str):  # else it is no environment in HTCondor's eyes either
        escaped = raw_values(ad.printOld().encode("latin-1"), ("Env",))["Env"]
        assert set_by(with_variables(None, escaped, ";", {"X": "1"})) == {**split(expected), "X": "1"}


def test_what_the_old_syntax_keeps_without_an_equals_sign() -> None:
    """A `$$` may stand for an assignment; any other piece without `=` is none."""
    assert from_old_syntax("A=1;$$(OpSysEnv);B;=2", ";") == "A=1 $$(OpSysEnv)"


def test_the_old_syntax_with_another_delimiter() -> None:
    """`EnvDelim` says what separates."""
    assert from_old_syntax("A=1;2|B=two words", "|") == "A=1;2 'B=two words'"


def test_both_syntaxes_at_once() -> None:
    """HTCondor takes the new one, and so do we."""
    assert set_by(with_variables('"A=new"', '"A=old"', ";", {"B": "1"})) == {"A": "new", "B": "1"}


@pytest.mark.parametrize("text", ["undefined", 'strcat("A=", "1")', '"A=1" + "B=2"', '"', "A=1"])
def test_an_environment_that_is_no_string_is_left_alone(text: str) -> None:
    """HOSTILE 33: an expression cannot be added to, so nothing is printed and the job keeps it."""
    with pytest.raises(ValueError, match="not a string"):
        with_variables(text, None, ";", {"A": "1"})
    with pytest.raises(ValueError, match="not a string"):
        with_variables(None, text, ";", {"A": "1"})


@pytest.mark.parametrize("value", ["a\nb", "\0"])
def test_what_cannot_be_written_is_refused(value: str) -> None:
    """HOSTILE 41: a newline would begin another attribute of the job."""
    with pytest.raises(ValueError, match="newline"):
        with_variables(None, None, ";", {"A": value})
