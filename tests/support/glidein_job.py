"""A glidein as a job: a startd configured as glideinWMS does it, below the job's directory, and a small pool of its VO.

The VO's collector, negotiator and schedd run beside it in the same job, so that a test needs nothing else; what the
pilot's site sees of them is nothing. The glidein drains by the shutdown files, as check_wn_drainstate.sh makes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMMON = """\
CONDOR_HOST = 127.0.0.1
COLLECTOR_HOST = 127.0.0.1:@PORT@
NETWORK_INTERFACE = 127.0.0.1
BIND_ALL_INTERFACES = False
ENABLE_IPV6 = False
USE_SHARED_PORT = False
RELEASE_DIR = /usr
SBIN = /usr/sbin
LIB = /usr/lib/condor
LIBEXEC = /usr/libexec/condor
LOCAL_CONFIG_FILE =
LOCAL_CONFIG_DIR =
UID_DOMAIN = vo.test
TRUST_UID_DOMAIN = True
SEC_USE_FAMILY_SESSION = False
SEC_DEFAULT_AUTHENTICATION_METHODS = FS
SEC_READ_AUTHENTICATION = OPTIONAL
SEC_DEFAULT_ENCRYPTION = OPTIONAL
SEC_DEFAULT_INTEGRITY = OPTIONAL
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = *
ALLOW_ADMINISTRATOR = *
ALLOW_NEGOTIATOR = *
ENABLE_KERNEL_TUNING = False
FILETRANSFER_PLUGINS = $(LIBEXEC)/curl_plugin, $(LIBEXEC)/data_plugin
DISCARD_SESSION_KEYRING_ON_STARTUP = False
MAIL = /bin/true
RUNBENCHMARKS = 0
"""

_VO = """\
LOCAL_DIR = @PLACE@
LOG = @PLACE@/log
SPOOL = @PLACE@/spool
LOCK = @PLACE@/log
DAEMON_LIST = MASTER, COLLECTOR, NEGOTIATOR, SCHEDD
SCHEDD_INTERVAL = 3
SCHEDD_MIN_INTERVAL = 1
NEGOTIATOR_INTERVAL = 3
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_MIN_INTERVAL = 1
JOB_DEFAULT_REQUESTDISK = 1024
"""

_GLIDEIN = """\
LOCAL_DIR = @PLACE@
LOG = @PLACE@/log
EXECUTE = @PLACE@/execute
LOCK = $(LOG)
DAEMON_LIST = MASTER, STARTD
STARTD_LOG = $(LOG)/StartdLog
IS_GLIDEIN = True
GLIDEIN_ToDie = @TODIE@
GLIDEIN_ToRetire = @TORETIRE@
GLIDEIN_Max_Tail=@TAIL@
GLIDEIN_CPUS=@CORES@
UPDATE_INTERVAL = @LOOK@
MASTER_UPDATE_INTERVAL = @LOOK@
GLIDEIN_SiteWMS = "@SYSTEM@"
GLIDEIN_SiteWMS_JobId = "@JOB@"
GLIDEIN_SiteWMS_Queue = "@QUEUE@"
STARTD_ATTRS = IS_GLIDEIN, GLIDEIN_ToDie, GLIDEIN_ToRetire, GLIDEIN_Max_Tail, GLIDEIN_SiteWMS, GLIDEIN_SiteWMS_JobId, \
  GLIDEIN_SiteWMS_Queue
START = SiteWMS_WN_Draining =?= False
RANK = 0.0
NUM_CPUS = $(GLIDEIN_CPUS)
MEMORY = 1024
NUM_SLOTS = 1
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = cpus=$(GLIDEIN_CPUS)
SLOT_TYPE_1_PARTITIONABLE = True
STARTD_SLOT_ATTRS = State, Activity, JobStarts, ExpectedMachineGracefulDrainingCompletion
STARTD.DAEMON_SHUTDOWN = (DynamicSlot =!= True) && Slot1_Activity == "Idle" && Slot1_State =!= "Claimed" && \\
  Slot1_JobStarts > 0 && time() - Slot1_ExpectedMachineGracefulDrainingCompletion > GLIDEIN_Max_Tail
MASTER.DAEMON_SHUTDOWN_FAST = STARTD_StartTime =?= 0 && time() - DaemonStartTime > 15
STARTD_CRON_JOBLIST = SITEWMS @REPORT@
STARTD_CRON_REPORT_EXECUTABLE = @SCRIPT@
STARTD_CRON_REPORT_ARGS = @PLACE@/glidein_config
STARTD_CRON_REPORT_MODE = Periodic
STARTD_CRON_REPORT_PERIOD = 3s
STARTD_CRON_SITEWMS_EXECUTABLE = @PLACE@/drainstate
STARTD_CRON_SITEWMS_MODE = Periodic
STARTD_CRON_SITEWMS_PERIOD = 2s
"""

_DRAIN_STATE = """\
#!/bin/sh
if [ -e "$JOBFEATURES/shutdowntime_job" ] || [ -e "$MACHINEFEATURES/shutdowntime" ]
then echo "SiteWMS_WN_Draining = True"; else echo "SiteWMS_WN_Draining = False"; fi
"""

_PAYLOADS = """\
executable = @PLACE@/payload
arguments = {seconds}
transfer_executable = False
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
request_cpus = {cores}
request_memory = 1
request_disk = 1
+MaxWallTimeMins = {minutes}
queue {count}
"""

_SCRIPT = """\
place=$PWD; glide=$(mktemp -d "$place/glide_XXXXXX"); vo=$(mktemp -d "$place/vo_XXXXXX")
port=$((20000 + $$ % 20000)); now=$(date +%s)
system=SLURM; job=$SLURM_JOBID; queue=Unknown
if [ -n "$_CONDOR_JOB_AD" ]; then
  system=HTCondor; queue=$(sed -n "s/^GlobalJobId = .\\([^#]*\\)#.*/\\1/p" $_CONDOR_JOB_AD)
  job=$(sed -n "s/^ClusterId = //p" $_CONDOR_JOB_AD).$(sed -n "s/^ProcId = //p" $_CONDOR_JOB_AD)
fi
unset $(env | sed -n "s/^\\\\(_CONDOR_[A-Za-z_]*\\\\)=.*/\\\\1/p")
mkdir $glide/log $glide/execute $vo/log $vo/spool
fill() {{ sed "s|@PLACE@|$1|g; s|@PORT@|$port|; s|@TAIL@|{stay}|; s|@LOOK@|{look}|
  s|@TODIE@|$((now + {lease}))|; s|@TORETIRE@|$((now + {lease} / 2))|; s|@CORES@|{cores}|
  s|@SYSTEM@|$system|; s|@JOB@|$job|; s|@QUEUE@|$queue|
  s|@REPORT@|{report}|; s|@SCRIPT@|{reporter}|"; }}
echo "GLIDEIN_START_DIR_ORIG $place" >$glide/glidein_config
fill $vo <<"END" >$vo/condor_config
{vo}END
fill $glide <<"END" >$glide/condor_config
{glidein}END
cat <<"END" >$glide/drainstate
{drain_state}END
printf "#!/bin/sh\\nexec {work} \\$1\\n" >$vo/payload
chmod 755 $glide/drainstate $vo/payload
CONDOR_CONFIG=$vo/condor_config /usr/sbin/condor_master -f & master=$!
submit() {{
  fill $vo >$vo/submitted
  for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    CONDOR_CONFIG=$vo/condor_config /usr/bin/condor_submit -terse $vo/submitted && break; sleep 1
  done
}}
{payloads}
CONDOR_CONFIG=$glide/condor_config /usr/sbin/condor_master -f
echo "the glidein has ended at $(date +%s)"
export CONDOR_CONFIG=$vo/condor_config
/usr/bin/condor_history -af:j JobStatus ExitCode JobCurrentStartDate CompletionDate
echo "left with the VO"
/usr/bin/condor_q -af:j JobStatus
kill -QUIT $master
"""


@dataclass(frozen=True)
class Payloads:
    """Payloads of one kind: how many, cores, seconds, and the limit that their user stated in minutes."""

    count: int
    cores: int
    seconds: int
    minutes: int


def glidein_script(
    *payloads: Payloads,
    cores: int = 8,
    lease: int = 86400,
    stay: int = 20,
    look: int = 4,
    reporter: str = "",
    work: str = "/bin/sleep",
) -> str:
    """Return a shell script (`sh`) that is a glidein of `cores` in the current directory.

    lease: seconds until GLIDEIN_ToDie. stay: GLIDEIN_Max_Tail, s. look: UPDATE_INTERVAL, s. reporter: a
    periodic script that it runs, too. work: what a payload runs with its seconds behind it.
    """
    wanted = "".join(
        'submit <<"END"\n'
        + _PAYLOADS.format(seconds=each.seconds, cores=each.cores, minutes=each.minutes, count=each.count)
        + "END\n"
        for each in payloads
    )
    return _SCRIPT.format(
        report="REPORT" if reporter else "",
        reporter=reporter,
        work=work,
        lease=lease,
        stay=stay,
        look=look,
        cores=cores,
        vo=_COMMON + _VO,
        glidein=_COMMON + _GLIDEIN,
        drain_state=_DRAIN_STATE,
        payloads=wanted,
    )


@dataclass(frozen=True)
class Finished:
    """What a glidein's job has printed: when the glidein ended, when each payload did, their exit codes, what waits."""

    time: int
    ends: tuple[int, ...]
    codes: frozenset[int]
    left: int


def finished(output: str) -> Finished:
    """Read the output of a glidein's job; raises ValueError when it has not come to its end."""
    ended, found, left = output.partition("left with the VO\n")
    time = re.search(r"(?m)^the glidein has ended at (\d+)$", ended)
    if time is None or not found:
        raise ValueError(f"the glidein has not ended: {output[-500:]}")
    rows = [row.split() for row in re.findall(r"(?m)^\d+\.\d+ 4 .*$", ended)]
    ends, codes = tuple(int(row[4]) for row in rows), frozenset(int(row[2]) for row in rows)
    return Finished(int(time[1]), ends, codes, len(left.split("\n")) - 1)
