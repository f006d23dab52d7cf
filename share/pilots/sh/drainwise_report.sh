#!/bin/sh
# Tell the site what draining or ending this pilot would waste: for any wrapper that starts payloads. sh, awk and /proc.
#
#   drainwise_report.sh watch CORES $$ &                       once, in the directory in which the site started the job
#   drainwise_report.sh payload CORES EXPECTED MAXIMUM PID...  a payload has begun: seconds it should take, and may take
#   drainwise_report.sh checkpoint PID [NEXT]                  the payload of that process has saved its work, and will
#                                                              again in so many seconds
#   drainwise_report.sh draining yes|no                        whether no further payload will begin; no at first
#
# `watch` writes .pilot.ad there, and $JOBSTATUS where the site names it: when a payload begins or has ended, and each
# half hour. A payload has ended when all its processes have. It ends with the process whose number it got; without one
# with the process that started it.
# DRAINWISE_PLACE names that directory to calls from elsewhere. See docs/pilots.md of drainwise.
set -u
umask 022
place=${DRAINWISE_PLACE:-$PWD}
known=$place/.drainwise-payloads
look=${DRAINWISE_LOOK:-5} refresh=1800

# A field of /proc/PID/stat, counted from the state on; nothing for a dead process.
field() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk -v field="$2" '$1 !~ /[ZXx]/ { print $field }'; }

# When a process was born, by the kernel's clock.
birth() { field "$1" 20; }

is_number() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }

wrong() {
  echo "drainwise_report.sh: $1" >&2
  exit 2
}

payload() {
  for word; do is_number "$word" || wrong "payload $*: expected whole numbers"; done
  [ $# -ge 4 ] && [ "$1" -gt 0 ] && [ "$2" -le "$3" ] || wrong "payload $*: expected CORES EXPECTED MAXIMUM PID..."
  line="$1 $(date +%s) $2 $3" first=
  shift 3
  for pid; do
    born=$(birth "$pid")
    [ -z "$born" ] || line="$line $pid:$born" first=${first:-$pid.$born}
  done
  [ -n "$first" ] || return 0
  mkdir -p "$known" && echo "$line" >"$known/.$first" && mv "$known/.$first" "$known/$first"
}

# What a payload lost before is saved: `@WHEN:NEXT` stands behind its processes.
checkpoint() {
  file=$known/$1.$(birth "$1") now=$(date +%s)
  [ -f "$file" ] || wrong "checkpoint $1: no payload was told with this process first"
  line="$(sed 's/ @[0-9:]*//' "$file") @$now:${2:+$((now + $2))}"
  echo "$line" >"$known/.saved" && mv "$known/.saved" "$file"
}

# Forget what has ended; a payload that runs beyond what was expected ends a minute and a tenth of its time later.
look_after() {
  for file in "$known"/*; do
    [ -f "$file" ] || continue
    read -r cores start expected maximum processes <"$file" || continue
    alive=
    for process in $processes; do
      [ "$(birth "${process%:*}")" != "${process#*:}" ] || alive=yes
    done
    if [ -z "$alive" ]; then
      rm -f "$file"
    elif [ $((start + expected)) -le "$now" ] && [ "$expected" -lt "$maximum" ]; then
      expected=$((now - start + 60 + (now - start) / 10))
      [ "$expected" -le "$maximum" ] || expected=$maximum
      echo "$cores $start $expected $maximum $processes" >"$known/.new" && mv "$known/.new" "$file"
    fi
  done
}

# Print `ad_name status_name scaled absolute` for each attribute. The sums belong to the whole seconds that are stated.
figures() {
  awk -v now="$now" -v lease="$lease" -v stays="$1" '
    function say(ad, status, value, whole) {
      printf "%s %s %.0f %.0f\n", ad, status, whole ? value : value * 1024 / lease, value
    }
    $1 > 0 && $2 > 0 {
      n++; c[n] = $1; s[n] = $2 < now ? $2 : now; x[n] = $2 + $3; used += $1
      if (x[n] < now) x[n] = now
      if (match($0, /@[0-9]+:[0-9]*/)) {
        split(substr($0, RSTART + 1, RLENGTH - 1), at, ":"); s[n] = at[1] > now ? now : at[1]; kept++
        if (kept == 1 || s[n] < saved) saved = s[n]
        if (at[2]) { coming++; if (at[2] > following) following = at[2] }
      }
      if ($2 + $4 > most) most = $2 + $4
      if (s[n] > e) e = s[n]
      if (n == 1 || x[n] < h) h = x[n]
      if (x[n] > g) g = x[n]
    }
    END {
      if (!n) { e = now; h = now; g = now }
      if (most < g) most = g
      share = used > lease ? lease / used : 1
      for (i = 1; i <= n; i++) { lost += share * c[i] * (e - s[i]); busy += share * c[i] * (x[i] - h) }
      say("LAST_JOB_START", "last_job_start", e, 1); say("FIRST_EXP_JOB_END", "first_exp_job_end", h, 1)
      say("LAST_EXP_JOB_END", "last_exp_job_end", g, 1); say("LAST_MAX_JOB_END", "last_max_job_end", most, 1)
      say("USED_FRACTION1k", "used_CPU", used > lease ? lease : used, 0)
      say("ADD_UNCOM_TIME1k", "add_uncom_time", lost, 0)
      say("ADD_FINAL_EXP_WASTE1k", "add_final_exp_waste", lease * (g - h) - busy, 0)
      say("PRIORITY_FACTOR", "priority_factor", 0, 1)
      if (n && kept == n) say("LAST_CHECKPOINT", "last_checkpoint", saved, 1)
      if (n && coming == n) say("NEXT_CHECKPOINT", "next_checkpoint", following, 1)
      print "CAN_POSTPONE_LAST_JOB can_postpone_last_job", stays, stays
    }'
}

# The files are written in place; used_CPU is blank until the others are there, and locked where there is a flock.
status() {
  [ -d "${JOBSTATUS-}" ] || return 0
  (
    if command -v flock >/dev/null; then flock -w 1 9 || exit 0; fi
    : >"$JOBSTATUS/used_CPU"
    rm -f "$JOBSTATUS/last_checkpoint" "$JOBSTATUS/next_checkpoint"
    used=0
    while read -r _ name _ value; do
      if [ "$name" = used_CPU ]; then used=$value; else echo "$value" >"$JOBSTATUS/$name" || exit 0; fi
    done
    echo "$used" >"$JOBSTATUS/used_CPU"
  ) 9<>"$JOBSTATUS/used_CPU"
}

report() {
  said=$(echo "$1" | figures "$2")
  echo "$said" | awk '{ print $1 " = " $3 }' >"$place/.pilot.ad.new" && mv "$place/.pilot.ad.new" "$place/.pilot.ad"
  echo "$said" | status
}

# Whether process $1 may have started this one. Where that has ended already, $PPID is whoever takes in orphans: process
# 1 or a subreaper, such as a batch system's, with a session and a directory of its own.
is_starter() {
  [ "$(field "$1" 4)" = "$(field $$ 4)" ] || [ "$(cd -P "/proc/$1/cwd" 2>/dev/null && pwd -P)" = "$(pwd -P)" ]
}

watch() {
  lease=$1 wrapper=${2:-$PPID} written=0 before=
  if ! is_number "$lease" || [ "$lease" -eq 0 ]; then wrong "watch $lease: expected the cores of the lease"; fi
  is_number "$wrapper" || wrong "watch $lease $wrapper: expected the number of the wrapper's process"
  [ -n "${2-}" ] || is_starter "$wrapper" || wrong "watch $lease: its wrapper has ended, or is to be named: watch $lease PID"
  mkdir -p "$known" || exit 1
  born=$(birth "$wrapper")
  # One that is younger than this process has only the wrapper's number.
  [ -n "$born" ] && [ "$born" -le "$(birth $$)" ] || born=ended
  while [ "$(birth "$wrapper")" = "$born" ]; do
    now=$(date +%s)
    look_after
    stays=True
    [ ! -e "$known/.draining" ] || stays=False
    running=$(cat "$known"/* 2>/dev/null)
    if [ "$running $stays" != "$before" ] || [ $((now - written)) -ge $refresh ]; then
      report "$running" "$stays"
      before="$running $stays" written=$now
    fi
    sleep "$look"
  done
}

case "${1-} ${2-}" in
"watch "*) watch "${2-}" "${3-}" ;;
"payload "*)
  shift
  payload "$@"
  ;;
"checkpoint "*)
  is_number "${2-}" && is_number "${3:-0}" || wrong "checkpoint ${2-} ${3-}: expected PID [NEXT], whole numbers"
  checkpoint "$2" "${3-}"
  ;;
"draining yes") mkdir -p "$known" && : >"$known/.draining" ;;
"draining no") rm -f "$known/.draining" ;;
*) wrong "expected watch CORES [PID], payload CORES EXPECTED MAXIMUM PID..., checkpoint PID [NEXT] or draining yes|no" ;;
esac
