"""What is published, and that every byte of the batch is one of ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.pilot_ad import parse_pilot_ad
from drainwise.pilotad.report import PilotReport
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.publish import batch, is_foreign, wanted_comment
from drainwise.slurm.jobs.scontrol_jobs import job_in

from .recorded_cluster import recorded

NOW = 1_795_249_000
OURS = frozenset(b'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789{}":,._+- =\n')


def facts(*comments: str) -> SlurmJob:
    """A job that runs, with these comments."""
    text = recorded("24.11", "scontrol.txt").decode("utf-8", "replace")
    block = text.partition("show job 10\n")[2].partition("\n")[0]
    before, _, after = block.partition(" AdminComment=")
    found = "".join(f" AdminComment={comment} " for comment in comments)
    known = job_in(f"{before}{found} {after.partition('  ')[2]}\n", 10)
    assert known is not None
    return known


def test_who_wrote_a_comment() -> None:
    """None, or ours of any version, may be replaced; one that only may be somebody else's may not."""
    for mine in ((), ("",), ('{"drainwise":1,"job":1}',), ('{"drainwise":7,"new":[]}',)):
        assert not is_foreign(facts(*mine)), mine
    for theirs in (("note",), (" note",), ('{"a":1}',), ('{"drainwise":1}', "note"), ('x{"drainwise":1}',)):
        assert is_foreign(facts(*theirs)), theirs


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"LAST_JOB_START", b"USED_FRACTION1k", b"ADD_UNCOM_TIME1k", b"PRIORITY_FACTOR"]),
            st.one_of(st.binary(max_size=30), st.integers(-(2**70), 2**70).map(lambda n: b"%d" % n)),
        ),
        max_size=6,
    ),
    st.sampled_from(["node1", "n-1.site.org", "N_2"]),
    st.integers(1, 512),
)
def test_whatever_a_pilot_writes_the_batch_is_ours(lines: list[tuple[bytes, bytes]], node: str, cores: int) -> None:
    """HOSTILE 30, 32, 36, 43: no byte of a user's, two words and a command, always one line."""
    report, _ = parse_pilot_ad(b"".join(name + b" = " + value + b"\n" for name, value in lines), cores, NOW)
    comment = wanted_comment(facts(), node, cores, report, NOW, 3600)
    assert comment is not None
    text = batch([("17_3", comment)])
    assert set(text.encode("ascii")) <= OURS
    assert text.count("\n") == 1 and text.count(" ") == 2
    assert text.startswith('update JobId=17_3 AdminComment={"drainwise":1,')


@pytest.mark.parametrize(
    ("label", "comment"),
    [
        ("17;18", '{"drainwise":1}'),
        ("17\n", '{"drainwise":1}'),
        ("17+0", '{"drainwise":1}'),
        ("17", '{"drainwise":1,"a":"x y"}'),
        ("17", '{"drainwise":1}\nshutdown'),
        ("17", '{"drainwise":1,"a":"b}'),
        ("17", '{"drainwise":1,"a":"\\"}'),
        ("17", "{'drainwise':1}"),
        ("17", '{"other":1}'),
        ("17", '{"drainwise":1,"a":' + "1" * 2000 + "}"),
        ("17", '{"drainwise":1,"a":"é"}'),
    ],
)
def test_what_is_not_ours_never_reaches_scontrol(label: str, comment: str) -> None:
    """Should anything ever make such a comment, nothing at all is sent."""
    with pytest.raises(ValueError, match="not a comment of ours"):
        batch([("16", '{"drainwise":1}'), (label, comment)])


def test_the_runs_age_is_no_change() -> None:
    """The same report makes the same comment, round after round."""
    report = PilotReport(NOW, used_cpu=99.0, last_job_start=NOW - 5, add_uncom_time=1e6)
    comments = {wanted_comment(facts(), "n1", 8, report, NOW + later, 3600) for later in (0, 30, 60, 3000)}
    [comment] = comments
    assert comment is not None and '"used_cpu":8' in comment
    old = wanted_comment(facts(), "n1", 8, report, NOW + 3700, 3600)
    assert old is not None and '"standing":"stale"' in old
