# Runs in the virtual machine that debian.sh starts: tests with a real node, is killed, is run without root, and
# compares what the machine shows before and after. Its last line is N passed, N failed.
stty -F /dev/hvc0 -onlcr
cp -r /given/. /root && cd /root && mv runner bin/
export HOME=/root CI=true PATH=/usr/sbin:/usr/bin:/sbin:/bin
mapfile -t flags < <(grep . flags)
# The machine may be emulated, and slow: what it does is tested, not how fast.
run=(bin/runner --provider embedded --procs 2 --wait-timeout 5m --timeout 20m "${flags[@]}")
passed=0 failed=0

check() { # NAME COMMAND: says whether it succeeds
  if "${@:2}"; then
    passed=$((passed + 1)); echo "ok      $1"
  else
    failed=$((failed + 1)); echo "NOT OK  $1"
  fi
}

state() { # what the machine shows that a node could have changed
  sort /proc/mounts
  find /sys/fs/cgroup -maxdepth 1 -type d | sort
  ip -oneline address
  iptables-save | grep -v '^#'
  ss --listening --numeric --no-header --tcp --udp --unix
  pgrep --list-name 'runner|kube|etcd|containerd|runc|sleep' | grep -v "^$$ " | sort
  ctr --namespace host containers list
  ctr --namespace k8s.io containers list
  ls /run /tmp /var/lib /var/lib/containerd/*
  grep --with-filename . /proc/sys/vm/{overcommit_memory,panic_on_oom} /proc/sys/kernel/{panic,panic_on_oops,keys/root_max*} \
    /proc/sys/net/ipv4/ip_forward
}

unchanged() { state > after 2>&1; diff before after; }

behaviors() { "${run[@]}" --nodes 1 --report-dir out 2>&1 | cat; return "${PIPESTATUS[0]}"; }

killed() { # while containers run
  "${run[@]}" --nodes 1 --label-filter graceful.node.pre-stop-first > killed.log 2>&1 &
  local runner=$!
  until pgrep --full '^sh -c trap' > /dev/null; do
    kill -0 "$runner" || return 1
    sleep 0.1
  done
  { kill -KILL "$runner" && wait "$runner"; } 2> /dev/null
  bin/runner cleanup
}

without_root() {
  chmod -R a+rX /root
  setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/tmp "${run[@]}" \
    --label-filter 'graceful.node.grace-zero || finalizers.held' > unprivileged.log 2>&1
  local code=$?
  cat unprivileged.log
  [ "$code" -eq 0 ] && grep -q 'a real node requires root' unprivileged.log && grep -q '^1 passed, 0 failed' unprivileged.log
}

echo "$(uname -sr), systemd $(systemctl is-system-running), control groups: $(cat /sys/fs/cgroup/cgroup.controllers)," \
  "AppArmor: $(cat /sys/module/apparmor/parameters/enabled), $(containerd --version | cut -d' ' -f1,3)"
mkdir -p rootfs/bin && cp /bin/busybox rootfs/bin/sleep
ctr --namespace host run --detach --rootfs /root/rootfs own /bin/sleep 1000000
state > before 2>&1
check "the behaviors, with a real node" behaviors
check "nothing has changed on the machine" unchanged
check "a run that was killed can be cleaned up" killed
check "nothing of it is left" unchanged
check "without root the behaviors of the node are skipped, with the reason" without_root
check "the machine's own container runs on" sh -c 'ctr --namespace host tasks list | grep -q "own .*RUNNING"'
cp out/* /results/
echo "$passed passed, $failed failed"
echo "$failed" > /results/code
