"""A stand-in for `scontrol`, for the tests of the agent and for measurements: it answers as a recorded real one did.

It reads its standard input like the real one (echoing what it reads) and knows the few lines that the agent writes;
anything else is written to `complaints` and fails. A job is a file in `jobs`, in the words of the real output.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from drainwise.slurm.jobs.admin_comment import is_ours
from drainwise.slurm.jobs.order_mark import entries_in, marked, with_entry

PROGRAM = r"""#!{python} -IS
import os, re, sys, time
place = "{place}"
def path(*names): return os.path.join(place, *names)
def note(file, text):
    with open(path(file), "a") as stream: stream.write(text)
def complain(what):
    note("complaints", what + "\n")
    sys.exit("scontrol: " + what)
if sys.argv[1:] == ["listpids"]:
    if os.path.exists(path("pids")):
        with open(path("pids")) as stream: print(stream.read())
    sys.exit(0)
if sys.argv[1:] not in (["--oneliner"], ["--oneliner", "--local"]): complain("called with " + repr(sys.argv[1:]))
down = os.path.exists(path("down"))
lines = sys.stdin.read().split("\n")
if lines.pop() != "": complain("half a line")
note("calls", "\n".join(lines) + "\n\n")
if os.path.exists(path("hang")): time.sleep(60)
code = 0
for number, line in enumerate(lines):
    if os.path.exists(path("half")) and number > len(lines) // 2: sys.exit(0)
    print("scontrol: " + line)
    words = line.split(" ")
    job = words[-1] if words[:2] == ["show", "job"] else ""
    if words[:2] == ["show", "hostnames"] and len(words) == 3: print(words[2])
    elif down:
        sys.stderr.write("slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"); code = 1
    elif re.fullmatch(r"\d+([_+]\d+)?", job):
        if os.path.exists(path("jobs", job)):
            sys.stdout.flush()
            with open(path("jobs", job), "rb") as stream: sys.stdout.buffer.write(stream.read())
        else:
            sys.stderr.write("slurm_load_jobs error: Invalid job id specified\n"); code = 1
    elif words[:2] == ["show", "node"] and len(words) == 3:
        print("NodeName=%s Arch=x86_64 CoresPerSocket=1  CPUAlloc=11 CPUEfctv=64 CPUTot=64 CPULoad=9.35 "
              "AvailableFeatures=fast,rack1 ActiveFeatures=fast,rack1 Gres=(null) " % words[2], end="")
        if os.path.exists(path("extra")):
            with open(path("extra")) as stream: print("Extra=" + stream.read(), end=" ")
        print()
    elif words[0] == "update" and len(words) == 3 and words[1][:9] == "NodeName=" and words[2][:6] == "Extra=":
        if os.path.exists(path("refuse")):
            sys.stderr.write("Access/permission denied\n"); code = 1
        else:
            with open(path("extra"), "w") as stream: stream.write(words[2][6:])
    elif words[0] == "update" and len(words) == 3 and words[1][:6] == "JobId=" and words[2][:13] == "AdminComment=":
        name, comment = words[1][6:], words[2][13:]
        if os.path.exists(path("refuse")):
            sys.stderr.write("Access/permission denied for job %s\n" % name); code = 1
        elif not os.path.exists(path("jobs", name)):
            sys.stderr.write("Invalid job id specified for job %s\n" % name); code = 1
        else:
            with open(path("jobs", name)) as stream: text = stream.read()
            text = re.sub(r" AdminComment=[^ ]*  ", " ", text)
            text = re.sub(r"( WorkDir=\S*)", lambda match: match[1] + " AdminComment=" + comment + " ", text)
            with open(path("jobs", name), "w") as stream: stream.write(text)
    else: complain("unknown line: " + line)
print("scontrol: ")
sys.exit(code)
"""

SQUEUE = r"""#!{python} -IS
import os, re, sys
place = "{place}"
if os.path.exists(os.path.join(place, "down")): sys.exit("slurm_load_jobs error: Unable to contact slurm controller")
uid = sys.argv[4].partition("--user=")[2]
if sys.argv[6:] != ["--Format=JobID:|,WorkDir:|"]: sys.exit("squeue: called with " + repr(sys.argv[1:]))
with open(os.path.join(place, "questions"), "a") as stream: stream.write(uid + "\n")
for name in os.listdir(os.path.join(place, "jobs")):
    with open(os.path.join(place, "jobs", name)) as stream: text = stream.read()
    number, user = re.search(r"JobId=(\d+)", text), re.search(r"UserId=\S*\((\d+)\)", text)
    where = re.search(r" WorkDir=(\S*)", text)
    if user[1] == uid and "JobState=RUNNING" in text: print(number[1] + "|" + where[1] + "|")
"""


class MadeUpScontrol:
    """The program in `bin_dir`, and what it knows. `template`: a real line of `show job` for a running job."""

    def __init__(self, bin_dir: str, python: str, template: str) -> None:
        self.bin_dir, self._template = bin_dir, template
        os.makedirs(f"{bin_dir}/jobs", exist_ok=True)
        program = PROGRAM.replace("{python}", python).replace("{place}", bin_dir)
        squeue = SQUEUE.replace("{python}", python).replace("{place}", bin_dir)
        for name, text in (("scontrol", program), ("squeue", squeue)):
            Path(bin_dir, name).write_text(text, encoding="ascii")
            os.chmod(f"{bin_dir}/{name}", 0o755)  # noqa: S103 - a program

    def job(
        self,
        number: int,
        uid: int,
        start: int,
        end: int,
        facts: Mapping[str, object],
        name: str = "",
        comment: str = "",
    ) -> None:
        """Have a running job. `facts`: more fields as Slurm prints them; `name`: its label where not its number."""
        values = {"JobId": number, "UserId": f"user({uid})", "StartTime": start, "EndTime": end, **facts}
        text = re.sub(r" AdminComment=\S+  ", " ", self._template)
        for field, value in values.items():
            pattern = rf"(?<![^\s]){re.escape(field)}=\S*"
            if re.search(pattern, text):
                text = re.sub(pattern, lambda _, word=f"{field}={value}": word, text, count=1)  # type: ignore[misc]
            else:
                text = text.replace(" JobName=", f" {field}={value} JobName=", 1)
        if comment:
            text = text.replace(" StdErr=", f" AdminComment={comment}  StdErr=", 1)
        Path(self.bin_dir, "jobs", name or str(number)).write_text(text, encoding="utf-8")

    def set(self, name: str | int, **fields: object) -> None:
        """Change fields of a job; whoever changes its end marks the node, as the reclaim agent does."""
        path = Path(self.bin_dir, "jobs", str(name))
        text = path.read_text(encoding="utf-8")
        for field, value in fields.items():
            text = re.sub(rf"(?<![^\s]){field}=\S*", lambda _, word=f"{field}={value}": word, text, count=1)  # type: ignore[misc]
        path.write_text(text, encoding="utf-8")
        if "EndTime" in fields:
            self.mark(int(str(name).partition("_")[0]), fields["EndTime"])

    def mark(self, job: int, end: object) -> None:
        """Mark the node for a job whose lease has changed: in the comment of the first job that can carry it."""
        for name in sorted((name for name in os.listdir(f"{self.bin_dir}/jobs") if name.isdigit()), key=int):
            path, before = Path(self.bin_dir, "jobs", name), self.comment(name)
            text = path.read_text(encoding="utf-8")
            if "JobState=RUNNING" not in text or not is_ours(before):
                continue
            after = marked(before, with_entry(entries_in(before), str(job), end if isinstance(end, int) else 0))
            text = re.sub(r" AdminComment=[^ ]*  ", " ", text)
            text = re.sub(r"( WorkDir=\S*)", lambda match, after=after: f"{match[1]} AdminComment={after} ", text)  # type: ignore[misc]
            path.write_text(text, encoding="utf-8")
            return

    def comment(self, name: str | int) -> str:
        """The AdminComment of a job, "" when it has none."""
        text = Path(self.bin_dir, "jobs", str(name)).read_text(encoding="utf-8")
        return text.partition(" AdminComment=")[2].split(" ")[0]

    def end(self, name: str | int) -> None:
        """The job is not known any more."""
        os.unlink(f"{self.bin_dir}/jobs/{name}")

    def calls(self, signs: bool = False) -> list[list[str]]:
        """The lines of each run so far; signs: those that gave the node's signs of life, else the others."""
        path = Path(self.bin_dir, "calls")
        runs = [run.split("\n") for run in path.read_text().split("\n\n")[:-1]] if path.exists() else []
        return [run for run in runs if run[0].startswith("update NodeName=") == signs]

    def extra(self, text: str | None = None) -> str:
        """What stands in the node's Extra; text: is there from now on."""
        path = Path(self.bin_dir, "extra")
        if text is not None:
            path.write_text(text)
        return path.read_text() if path.exists() else ""

    def questions(self) -> list[str]:
        """The users for whose jobs it was asked."""
        path = Path(self.bin_dir, "questions")
        return path.read_text().split() if path.exists() else []

    def complaints(self) -> str:
        """What it was asked and does not know."""
        path = Path(self.bin_dir, "complaints")
        return path.read_text() if path.exists() else ""

    def mode(self, name: str, on: bool = True) -> None:
        """`down` (no slurmctld), `hang`, `half` (it dies in mid-answer), `refuse` (no right to update)."""
        path = Path(self.bin_dir, name)
        if on:
            path.touch()
        else:
            path.unlink(missing_ok=True)


def recorded_job(recorded: str, job: int) -> str:
    """The real output of `show job` for a job in a recorded session."""
    part = recorded.partition(f"scontrol: show job {job}\n")[2]
    return part.partition("scontrol: show hostnames")[0]
