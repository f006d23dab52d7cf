"""What other batch systems say of a job that starts: environments, and answers of their commands.

The texts of Grid Engine are those of a real 8.1.9. Those of LSF, PBS and Flux follow their manuals: none of
their daemons has run here.
"""

from __future__ import annotations

BJOBS = """{"COMMAND":"bjobs","JOBS":1,"RECORDS":[
  {"JOBID":"4711","RUNTIMELIMIT":"%s","MEMLIMIT":"%s","SWAPLIMIT":"8 G"}]}"""
BHOSTS = '{"COMMAND":"bhosts","HOSTS":1,"RECORDS":[{"HOST_NAME":"n1.pool","MAX":"24"}]}'
LSF = {"LSB_JOBID": "4711", "LSB_JOBINDEX": "0", "LSB_MCPU_HOSTS": "n1 8 n2 4", "LSFUSER": "alice"}
PBS_PRO = """\
Job Id: 4711.head
    Job_Name = work
    Job_Owner = alice@head.pool
    exec_host = n1/0*8+n2/0*4
    exec_vnode = (n1:ncpus=8:mem=16777216kb)+(n2:nc
\tpus=4)
    Resource_List.cput = 48:00:00
    Resource_List.mem = 16gb
    Resource_List.ncpus = 12
    Resource_List.walltime = 24:00:00
    stime = Mon Nov 23 01:00:00 2026
    euser = alice
    Variable_List = PBS_O_HOME=/home/alice,PBS_O_SHELL=/bin/bash,
\tPBS_O_WORKDIR=/home/alice
"""
TORQUE = """\
Job Id: 4711[2].head
    Job_Owner = alice@head.pool
    exec_host = n1/0-3+n1/6+n2/0
    Resource_List.mem = 4096mb
    Resource_List.nodes = 1:ppn=5
    Resource_List.walltime = 1:00:00:00
    start_time = Mon Nov 23 01:00:00 2026
"""
CONFIG = """\
h_vmem=2G
s_vmem=INFINITY
h_cpu=1000
s_cpu=INFINITY
h_rss=1G
h_fsize=10G
job_owner=alice
pe_slots=4
host_slots=4
job_id=1
"""
QSTAT = """\
==============================================================
job_number:                 1
owner:                      alice
hard resource_list:         h_rt=600,h_vmem=2G
script_file:                STDIN
"""
QUEUE = (
    "qname                 main\nslots                 1,[central=16]\nh_rt                  24:00:00\ns_rt  INFINITY\n"
)
SGE = {"JOB_ID": "1", "SGE_TASK_ID": "undefined", "NSLOTS": "8", "QUEUE": "main", "SGE_JOB_SPOOL_DIR": "/spool/1.1"}
R = """{"version": 1, "execution": {"R_lite": [
  {"rank": "0-1", "children": {"core": "0-7", "gpu": "0"}}, {"rank": "2", "children": {"core": "0-3"}}],
  "nodelist": ["n[0-2]"], "starttime": 1795398000.25, "expiration": 1795401600.25}}"""
FLUX = {"FLUX_JOB_ID": "186579", "FLUX_JOB_USERID": "1001"}
