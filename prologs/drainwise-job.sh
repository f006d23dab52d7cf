# shellcheck shell=sh
# Sourced in a job: the variables that name its features, where its prolog has made them.
if [ -n "${LSB_JOBID-}" ]; then
    drainwise_tree=/run/drainwise/lsf.$LSB_JOBID.${LSB_JOBINDEX:-0}
elif [ -n "${PBS_JOBID-}" ]; then
    drainwise_tree=/run/drainwise/pbs.$(printf %s "$PBS_JOBID" | tr '[]' '__')
elif [ -n "${SGE_JOB_SPOOL_DIR-}" ]; then
    drainwise_tree=${TMPDIR-}
else
    drainwise_tree=
fi
if [ -n "$drainwise_tree" ] && [ -d "$drainwise_tree/.jobfeatures" ]; then
    for drainwise_name in MACHINEFEATURES JOBFEATURES JOBSTATUS; do
        drainwise_directory=$drainwise_tree/.$(printf %s "$drainwise_name" | tr '[:upper:]' '[:lower:]')
        [ ! -d "$drainwise_directory" ] || export "$drainwise_name=$drainwise_directory" \
            "APPTAINERENV_$drainwise_name=$drainwise_directory" "SINGULARITYENV_$drainwise_name=$drainwise_directory"
    done
fi
unset drainwise_tree drainwise_name drainwise_directory
