#!/usr/bin/env bash
# Tests a kind cluster of two nodes on a Docker of its own that reaches no registry. Use:
# kind.sh DIRECTORY IMAGE outside|job [flags for the runner]
#
# With "outside" the runner creates the cluster and deletes it. Without further flags, all behaviors run, and a claim is written to
# docs/results. With "job" the script creates it, runs the same behaviors in a Job and from outside with the credentials of the Job, and
# fails if any result differs.
#
# DIRECTORY holds what image.sh made, and gets the reports, the daemon's log and its storage, which is kept for the next time. The
# daemon is Debian's, with a network and processes that nobody else on the machine sees, and ends with this script. Needs Linux, root,
# and what `make kind-deps` installs.
set -euo pipefail
results=$(realpath "$1") image=$2 mode=$3 claims=${TRIAL:+bin}
claims=${claims:-docs}/results
shift 3
case $mode in outside | job) ;; *) echo "the mode is $mode: use outside or job" >&2; exit 2 ;; esac
command -v dockerd > /dev/null || { echo "dockerd is not installed: run make kind-deps" >&2; exit 2; }
[ -e "$results/node.tar" ] || { echo "there is no $results/node.tar: run make kind-image" >&2; exit 2; }

# outside tests a cluster that the runner creates.
outside() {
  local code=0 version flags=("$@")
  [ $# -gt 0 ] || flags=(--slow --redact)
  bin/runner --provider kind --kind-image "$image" --kind-config test/platform/kind/kind.yaml --report-dir "$results/reports" \
    --kubectl "$results/kubectl" "${flags[@]}" || code=$?
  [ "$code" -le 1 ] && [ $# -eq 0 ] || return "$code"
  mkdir -p "$claims"
  version=$(go list -m -f '{{.Version}}' sigs.k8s.io/kind)
  cat > "$work/implementation.yaml" << IMPLEMENTATION
organization: deletion-conformance
project: kind
version: ${version#v}
url: https://github.com/deletion-conformance/deletion-conformance
contact: [https://github.com/deletion-conformance/deletion-conformance/issues]
reproduce: make kind
IMPLEMENTATION
  bin/runner claim --report "$results/reports" --implementation "$work/implementation.yaml" --output-file "$claims/kind-${version#v}.json"
  return "$code"
}

# cluster creates a cluster whose pods reach its API server and each other. It has neither kindnet nor kube-proxy, so that routes and a rule do
# what these would do: pods of one node reach those of another, and everything reaches the Service of the API server. The API server sends
# webhooks to the endpoints of a Service (--enable-aggregator-routing).
cluster() {
  "$work/kind" create cluster --image "$image" --config test/platform/kind/kind.yaml --kubeconfig "$work/kubeconfig" --wait 10m
  local node
  for archive in "$results/pods.tar" "$work/image.tar"; do
    for node in $("$work/kind" get nodes); do
      docker exec --interactive "$node" ctr --namespace k8s.io images import - > /dev/null < "$archive"
    done
  done
  local server
  server=$(docker inspect --format '{{.NetworkSettings.Networks.kind.IPAddress}}' kind-control-plane)
  for node in $("$work/kind" get nodes); do
    for chain in PREROUTING OUTPUT; do
      docker exec "$node" iptables -t nat -A "$chain" -d 10.96.0.1 -p tcp --dport 443 -j DNAT --to-destination "$server:6443"
    done
    "${kubectl[@]}" get nodes --output jsonpath='{range .items[*]}{.metadata.name} {.spec.podCIDR} {.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}' |
      while read -r other range address; do
        [ "$other" = "$node" ] || docker exec "$node" ip route add "$range" via "${address%% *}" < /dev/null
      done
  done
}

# job runs behaviors in a Job and from outside, and compares the results.
job() {
  local kubectl=("$results/kubectl" --kubeconfig "$work/kubeconfig") code=0
  go build -o "$work/kind" sigs.k8s.io/kind
  go run ./internal/release/image -archive "$work/image.tar" -version test -platforms "linux/$(go env GOARCH)" -kubernetes-version "${image##*:v}"
  trap '"$work/kind" delete cluster' EXIT
  cluster
  mkdir "$work/job"
  cat > "$work/job/kustomization.yaml" << KUSTOMIZATION
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [$(realpath --relative-to="$work/job" deploy/job/overlays/cluster)]
images: [{name: registry.invalid/deletion-conformance/runner, newTag: test}]
patches:
  - target: {kind: Job}
    patch: |
      - {op: replace, path: /spec/template/spec/containers/0/args, value: $(jq --null-input --compact-output '$ARGS.positional' --args -- --in-cluster --store-report "$@")}
KUSTOMIZATION
  "${kubectl[@]}" apply --kustomize "$work/job"
  bin/runner collect --kubeconfig "$work/kubeconfig" --job deletion-conformance --report-dir "$results/job" || code=$?
  cp "$work/kubeconfig" "$work/account"
  "$results/kubectl" --kubeconfig "$work/account" config unset users.kind-kind > /dev/null
  "$results/kubectl" --kubeconfig "$work/account" config set-credentials kind-kind \
    --token "$("${kubectl[@]}" create token deletion-conformance-runner --namespace deletion-conformance --duration 2h)" > /dev/null
  local here # where the API server reaches this script
  here=$(docker network inspect kind | jq --raw-output '[.[0].IPAM.Config[].Gateway | select(. and contains("."))][0]')
  bin/runner --kubeconfig "$work/account" --kubectl "$results/kubectl" --webhook-host "$here" --report-dir "$results/reports" "$@" || code=$?
  for reports in job reports; do
    jq --raw-output '.clusters[0].results[] | "\(.id) \(.outcome)"' "$results/$reports/report.json" > "$work/$reports.outcomes"
  done
  diff "$work/job.outcomes" "$work/reports.outcomes" || { echo "a run in a Job differs from one from outside" >&2; return 1; }
  echo "the run in a Job has the results of the one from outside: $(sed 's/.* //' "$work/job.outcomes" | sort | uniq --count | xargs)"
  return "$code"
}

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
  if [ "$mode" = outside ]; then
    outside "$@" || code=$?
  else # in the background, because errors would not end it on the left of ||
    job "$@" &
    wait $! || code=$?
  fi
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
INSIDE=$work unshare --mount --net --pid --fork --kill-child --mount-proc "$0" "$results" "$image" "$mode" "$@"
