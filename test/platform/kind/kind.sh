#!/usr/bin/env bash
# Judges a kind cluster of two nodes that the runner makes and deletes, on a Docker of its own that reaches no registry. Use:
# kind.sh DIRECTORY IMAGE [flags for the runner]
#
# DIRECTORY holds what image.sh made, and gets the reports, the daemon's log and its storage, which is kept for the next time. The
# daemon is Debian's, with a network and processes that nobody else on the machine sees, and ends with this script. Needs Linux, root,
# and what `make kind-deps` installs.
set -euo pipefail
results=$(realpath "$1") image=$2
shift 2
command -v dockerd > /dev/null || { echo "dockerd is not installed: run make kind-deps" >&2; exit 2; }
[ -e "$results/node.tar" ] || { echo "there is no $results/node.tar: run make kind-image" >&2; exit 2; }

# inside is what happens in the namespaces of this trial.
inside() {
  ip link set lo up
  mount -t tmpfs -o mode=755 tmpfs /run # with sockets that are nobody else's
  # Containers stay in the control group of this process, with its share of the processors.
  local group
  group=$(sed -n 's/^[0-9]*:\(.*,\)\?cpu\(,.*\)\?:\(.*\)$/\3/p' /proc/self/cgroup)
  dockerd --data-root "$results/docker" --add-runtime "narrow=$work/runtime" --default-runtime narrow \
    --cgroup-parent "${group%/}/deletion-conformance-kind" > "$results/dockerd.log" 2>&1 &
  for _ in $(seq 600); do
    docker version > /dev/null 2>&1 && break
    sleep 0.1
  done
  docker ps --all --quiet | xargs --no-run-if-empty docker rm --force --volumes > /dev/null # of a trial that was killed
  if [ ! "$results/docker/loaded" -nt "$results/node.tar" ]; then
    docker load --quiet --input "$results/node.tar" >&2
    docker load --quiet --input "$results/pods.tar" >&2
    touch "$results/docker/loaded"
  fi
  local code=0
  bin/runner --provider kind --kind-image "$image" --kind-config test/platform/kind/kind.yaml --report-dir "$results/reports" \
    --kubectl "$results/kubectl" "$@" || code=$?
  if [ -n "$(docker ps --all --quiet)$(docker volume ls --quiet)" ]; then
    echo "containers or volumes were left:" >&2
    docker ps --all >&2
    docker volume ls >&2
    code=1
  fi
  rmdir /sys/fs/cgroup{,/*}"${group%/}/deletion-conformance-kind" 2> /dev/null || true # Docker leaves it
  return "$code"
}

if [ -n "${INSIDE:-}" ]; then
  work=$INSIDE
  unset INSIDE KUBERNETES_VERSION
  inside "$@"
  exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/runtime" ./test/platform/kind/runtime
INSIDE=$work unshare --mount --net --pid --fork --kill-child --mount-proc "$0" "$results" "$image" "$@"
