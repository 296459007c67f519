#!/usr/bin/env bash
# Runs the suites many times, then some times with all cores loaded, and counts the runs that were not conformant.
# Flakes are bugs: one such run fails the whole. Use: stress.sh RUNS LOADED [flags for the runner]
set -uo pipefail
runs=$1 loaded=$2
shift 2
logs=$(mktemp -d)
load=()
trap 'kill "${load[@]}" 2>/dev/null' EXIT
failed=0
attempt() {
  local log=$logs/$1.log
  if bin/runner --provider embedded --report-dir "$logs/$1" "${@:2}" > "$log" 2>&1; then
    echo "$1: $(tail -n 1 "$log")"
  else
    failed=$((failed + 1))
    echo "$1: not conformant, see $log and the reports in $logs/$1"
    grep -vE '^(passed|skipped) ' "$log"
  fi
}
for i in $(seq "$runs"); do attempt "run-$i" "$@"; done
for _ in $(seq "$(nproc)"); do
  while :; do :; done &
  load+=($!)
done
for i in $(seq "$loaded"); do attempt "loaded-$i" "$@"; done
echo "$((runs + loaded - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
