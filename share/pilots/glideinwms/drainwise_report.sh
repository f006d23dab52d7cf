#!/bin/sh
# A periodic script for glideinWMS: tell the site by .pilot.ad what draining or killing this glidein would waste.
#
# A factory or frontend lists it as a custom script with a period, such as 300 s; the glidein's startd then runs it. It
# needs nothing but sh and awk. It reads what the startd writes beside each payload, and writes one small file into the
# directory in which the site started the job, and into $JOBSTATUS where the site names one.
# See docs/pilots.md of drainwise for what the attributes mean.

config=$1
local_dir=${CONDOR_CONFIG%/*}
start_dir=$(awk '$1 == "GLIDEIN_START_DIR_ORIG" { print $2 }' "$config" 2>/dev/null)
[ -d "$local_dir/execute" ] || exit 0

report() {
  now=$(date +%s)
  # Each payload: cores, start, limit in minutes. Since HTCondor 25.4 the ads lie one level deeper.
  for ad in "$local_dir"/execute/dir_*/.job.ad "$local_dir"/execute/dir_*/scratch/.job.ad; do
    [ -f "$ad" ] || continue
    awk -F ' = ' '$1 == "Cpus" { cores = $2 } $1 == "JobCurrentStartDate" { start = $2 }
      $1 == "MaxWallTimeMins" { minutes = int($2) } END { print "payload", cores, start, minutes }' \
      "${ad%.job.ad}.machine.ad" "$ad"
  done | awk -v now="$now" '
    BEGIN {
      while ((getline line < ARGV[1]) > 0) {
        split(line, word, /[ \t]*=[ \t]*/); name = toupper(word[1]); known[name] = word[2]
      }
      ARGV[1] = ""
      cores = known["GLIDEIN_CPUS"]; dies = known["GLIDEIN_TODIE"]; retires = known["GLIDEIN_TORETIRE"]
      stay = ("GLIDEIN_MAX_TAIL" in known) ? known["GLIDEIN_MAX_TAIL"] : 400
    }
    $1 == "payload" && $2 > 0 && $3 > 0 {
      n++; c[n] = $2; s[n] = $3; x[n] = $4 > 0 ? $3 + 60 * $4 : dies
      if (dies && x[n] > dies) x[n] = dies
      used += $2; if ($3 > e) e = $3
    }
    END {
      if (cores < 1) exit 1
      share = used > cores ? cores / used : 1
      for (i = 1; i <= n; i++) {
        if (x[i] < e) x[i] = e
        if (i == 1 || x[i] < h) h = x[i]
        if (i == 1 || x[i] > g) g = x[i]
        f += share * c[i] * (e - s[i])
      }
      if (!n) { e = now; h = now; g = now }
      for (i = 1; i <= n; i++) busy += share * c[i] * (x[i] - h)
      last = g + stay + 160; most = g + stay + 370
      if (dies && last > dies) last = g > dies ? g : dies
      if (dies && most > dies) most = last
      if (used > cores) used = cores
      idle = cores * (last - h) - busy
      printf "LAST_JOB_START = %d\nFIRST_EXP_JOB_END = %d\nLAST_EXP_JOB_END = %d\nLAST_MAX_JOB_END = %d\n", e, h, last, most
      printf "USED_FRACTION1k = %.0f\nADD_UNCOM_TIME1k = %.0f\n", used * 1024 / cores, f * 1024 / cores
      printf "ADD_FINAL_EXP_WASTE1k = %.0f\nPRIORITY_FACTOR = 0\n", idle * 1024 / cores
      printf "CAN_POSTPONE_LAST_JOB = %s\n", (retires && now >= retires) ? "False" : "True"
    }' "$CONDOR_CONFIG" -
}

for place in "$start_dir" "$JOBSTATUS"; do
  [ -d "$place" ] && report >"$place/.pilot.ad.new" && mv "$place/.pilot.ad.new" "$place/.pilot.ad"
done
exit 0
