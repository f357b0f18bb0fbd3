# Ends what a test process leaves behind. $1 is the run's folder; standard input is a pipe whose only
# writer is the test process, so reading ends when that process ends, in whatever way it ended.
run=$1
cat >/dev/null

# A pid file holds: pid, start time of that process in ticks, signal that stops it, name.
started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

signal_all() {
  left=0
  for file in "$run"/pids/*; do
    [ -e "$file" ] || continue
    read -r pid start stop name <"$file" || continue
    if [ -e "/proc/$pid" ] && [ "$(started "$pid")" != "$start" ]; then
      continue # the number belongs to a stranger now
    fi
    if kill -s "${1:-$stop}" -- "-$pid" 2>/dev/null; then left=$((left + 1)); fi
  done
}

signal_all ''
tries=0
while [ $tries -lt 50 ]; do
  signal_all 0
  [ $left -eq 0 ] && break
  sleep 0.1
  tries=$((tries + 1))
done
signal_all KILL
if [ -n "$MAGNUM_TESTS_KEEP" ]; then exit; fi
while read -r folder; do rm -rf -- "$folder"; done <"$run/folders" 2>/dev/null
rm -rf -- "$run"
