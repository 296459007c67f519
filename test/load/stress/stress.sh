#!/usr/bin/env bash
# Runs the suites many times, then some times with all cores loaded, and then four at a time on one cluster, as shards and pipelines do. Counts
# the runs that were not conformant, and those on the shared cluster whose results differ from the first one's.
# Flakes are bugs: one such run fails the whole. Use: stress.sh RUNS LOADED SHARED [flags for the runner]
set -uo pipefail
runs=$1 loaded=$2 shared=$3
shift 3
logs=$(mktemp -d)
background=()
trap 'kill "${background[@]}" 2>/dev/null; wait' EXIT
failed=0
attempt() {
  local log=$logs/$1.log
  if bin/runner --report-dir "$logs/$1" "${@:2}" > "$log" 2>&1; then
    echo "$1: $(tail -n 1 "$log")"
  else
    echo "$1: not conformant, see $log and the reports in $logs/$1"
    grep -vE '^(passed|skipped) ' "$log"
    return 1
  fi
}
# same reports whether two runs have tested the same behaviors with the same results.
same() {
  bin/runner compare --fail-on-lost "$logs/$1/report.json" "$logs/$2/report.json" > /dev/null &&
    bin/runner compare --fail-on-lost "$logs/$2/report.json" "$logs/$1/report.json" > /dev/null
}
for i in $(seq "$runs"); do attempt "run-$i" --provider embedded "$@" || failed=$((failed + 1)); done

for _ in $(seq "$(nproc)"); do
  while :; do :; done &
  background+=($!)
done
for i in $(seq "$loaded"); do attempt "loaded-$i" --provider embedded "$@" || failed=$((failed + 1)); done
kill "${background[@]}" && background=()

if [ "$shared" -gt 0 ]; then
  bin/runner cluster up --nodes 0 --write-kubeconfig "$logs/kubeconfig" > "$logs/cluster.log" 2>&1 &
  background+=($!)
  until [ -s "$logs/kubeconfig" ] || ! kill -0 "${background[0]}"; do sleep 1; done
fi
for first in $(seq 1 4 "$shared"); do
  attempts=()
  for i in $(seq "$first" "$((first + 3 < shared ? first + 3 : shared))"); do
    attempt "shared-$i" --kubeconfig "$logs/kubeconfig" "$@" &
    attempts+=($!)
  done
  for i in "${!attempts[@]}"; do
    wait "${attempts[$i]}" && same shared-1 "shared-$((first + i))" ||
      { failed=$((failed + 1)); echo "shared-$((first + i)): another result than shared-1"; }
  done
done
echo "$((runs + loaded + shared - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
