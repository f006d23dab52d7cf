"""A plain pilot that nobody changed: a shell script that runs two payloads.

Each works for about a twentieth of the time, since several pools share a machine, and writes what it has used."""

from __future__ import annotations

PYTHON = (
    r"import sys,time\nwhile True:\n until=time.process_time()+0.02\n while time.process_time()<until: pass\n"
    r" print(time.process_time(),file=open(sys.argv[1],'a'))\n time.sleep(0.4)\n"
)
SHELL = 'while :; do i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done; times >> "$1"; sleep 0.2; done'


def plain_pilot(place: str, seconds: int, between: int = 0) -> str:
    """Return the script: both payloads run for `seconds`, the second begins `between` seconds after the first."""
    return f"""\
rm -f {place}/python.cpu {place}/shell.cpu
printf "{PYTHON}" > {place}/payload.py
echo '{SHELL}' > {place}/payload.sh
timeout {seconds} python3 {place}/payload.py {place}/python.cpu &
sleep {between}
timeout {seconds} sh {place}/payload.sh {place}/shell.cpu &
wait
sleep 600
"""


def ending_pilot(place: str, until: str) -> str:
    """Return a script with one payload that ends when there is a file `until`; then it stays, without any.

    place: a directory that the script makes.
    """
    return f"""\
mkdir -p {place}
printf "{PYTHON}" > {place}/payload.py
python3 {place}/payload.py {place}/python.cpu & payload=$!
until [ -e {until} ]; do sleep 1; done
kill $payload
sleep 3600
"""


def claim(part: int, minutes: int = 60) -> str:
    """Return what writes a report of `part` 1024ths of the cores in use, by payloads that end in so many minutes."""
    return f"""\
(cd "${{_CONDOR_SCRATCH_DIR:-$JOBSTATUS}}"
now=$(date +%s)
end=$((now + {60 * minutes}))
cat > .pilot.ad.new <<END
LAST_JOB_START = $now
FIRST_EXP_JOB_END = $end
LAST_EXP_JOB_END = $end
LAST_MAX_JOB_END = $end
USED_FRACTION1k = {part}
ADD_UNCOM_TIME1k = 0
ADD_FINAL_EXP_WASTE1k = 0
PRIORITY_FACTOR = 0
CAN_POSTPONE_LAST_JOB = True
END
mv .pilot.ad.new .pilot.ad)
"""
