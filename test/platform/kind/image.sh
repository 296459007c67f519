#!/usr/bin/env bash
# Makes an image for the nodes of kind clusters, of Debian's packages and of Kubernetes from source, as kind's own images
# are made: no registry is needed. Use: image.sh DIRECTORY VERSION IMAGE
#
# DIRECTORY gets node.tar, an archive with the image under the name IMAGE, pods.tar, an archive with the images that pods run
# in node behaviors, and the kubectl that belongs to it. It keeps what Debian's part is made of (base.tar; remove it to have it made anew). VERSION
# is that in kubernetes/go.mod, and was built (make build). Needs Linux, root, and what `make kind-deps` installs.
set -euo pipefail
results=$1 version=$2 image=$3
built=bin/kubernetes/v$version
for program in debootstrap jq; do
  command -v "$program" > /dev/null || { echo "$program is not installed: run make kind-deps" >&2; exit 2; }
done
grep -q "k8s.io/kubernetes v$version\$" kubernetes/go.mod ||
  { echo "nodes are made of the Kubernetes in kubernetes/go.mod only, which is not $version" >&2; exit 2; }
[ -x "$built/kubelet" ] || { echo "Kubernetes $version was not built: run make build" >&2; exit 2; }
mkdir -p "$results"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir "$root"

# What a node needs of Debian: an init, a container runtime with a network, and what kind, kubeadm and the kubelet call.
packages=systemd,systemd-sysv,containerd,runc,containernetworking-plugins,conntrack,iptables,nftables,iproute2,ethtool,mount,kmod
packages+=,util-linux,bash,ca-certificates,curl,jq,procps,socat,hostname,busybox-static

debian() {
  if [ ! -e "$results/base.tar" ]; then
    echo "installing Debian, which takes some minutes" >&2
    debootstrap --variant=minbase --include="$packages" bookworm "$root" > "$work/debootstrap.log" 2>&1 ||
      { tail "$work/debootstrap.log" >&2; exit 1; }
    rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,locale,man}
    tar --numeric-owner -C "$root" -cf "$results/base.tar.new" .
    mv "$results/base.tar.new" "$results/base.tar"
  else
    tar --numeric-owner -C "$root" -xf "$results/base.tar"
  fi
}

# kind's files, and its changes to what Debian has: see images/base/Dockerfile in kind's module.
kind_files() {
  go mod download sigs.k8s.io/kind
  local files
  files=$(go list -m -f '{{.Dir}}' sigs.k8s.io/kind)/images/base/files
  cp -r --no-preserve=mode,ownership "$files/etc/." "$root/etc"
  cp -r --no-preserve=mode,ownership "$files/kind" "$root/kind"
  chmod 755 "$root"/kind/bin/*
  install -m 755 "$files"/usr/local/bin/* "$root/usr/local/bin/"
  rm -f "$root"/lib/systemd/system/{multi-user,local-fs,basic}.target.wants/* "$root"/etc/systemd/system/*.wants/* \
    "$root"/lib/systemd/system/sockets.target.wants/*{udev,initctl}* \
    "$root"/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service
  echo "ReadKMsg=no" >> "$root/etc/systemd/journald.conf"
  mkdir -p "$root/etc/kubernetes/manifests" "$root/opt/cni"
  ln -s /usr/bin/containerd "$root/usr/local/bin/containerd" # where kind's unit looks for it
  ln -s /usr/lib/cni "$root/opt/cni/bin"
  chroot "$root" systemctl --quiet enable kubelet.service containerd.service undo-mount-hacks.service
  chroot "$root" systemctl --quiet mask systemd-binfmt.service
  chroot "$root" ctr oci spec | jq 'del(.process.rlimits) |
    .hooks.createContainer += [{path: "/kind/bin/mount-product-files.sh"}]' > "$root/etc/containerd/cri-base.json"
}

# The network of pods, instead of kindnet, which is an image of kind's: each reaches its node, which is all that behaviors
# need. containerd fills in the addresses that the controllers give the node. Protection from the memory killer is not asked for,
# as machines without CAP_SYS_RESOURCE do not give it.
network() {
  cat > "$root/etc/containerd/cni.template" << 'TEMPLATE'
{"cniVersion": "0.4.0", "name": "ptp", "plugins": [{"type": "ptp", "ipMasq": false,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "{{.PodCIDR}}"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
TEMPLATE
  sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' "$root/etc/containerd/config.toml"
  cat >> "$root/etc/containerd/config.toml" << 'TOML'

[plugins."io.containerd.grpc.v1.cri".cni]
  conf_template = "/etc/containerd/cni.template"
TOML
}

# kubeadm and kubectl are built with the module that Kubernetes is built with, and what kubeadm needs beyond that.
programs() {
  cp kubernetes/go.mod kubernetes/go.sum "$work/"
  local stamps="" holder
  for holder in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    stamps+=" -X $holder.gitVersion=v$version -X $holder.gitMajor=1 -X $holder.gitMinor=$(cut -d. -f2 <<< "$version") -X $holder.gitTreeState=clean"
  done
  CGO_ENABLED=0 GOWORK=off go -C kubernetes build -mod=mod -modfile="$work/go.mod" -trimpath -tags=providerless \
    -ldflags="-s -w$stamps" -o "$root/usr/bin/" k8s.io/kubernetes/cmd/kubeadm ./kubectl
  cp "$root/usr/bin/kubectl" "$results/"
}

# Kubernetes on the node, and its control plane as images under the names by which kubeadm asks for them.
kubernetes() {
  install -m 755 "$built/kubernetes" "$root/usr/bin/kubelet"
  echo "v$version" > "$root/kind/version"
  local names
  names=$("$root/usr/bin/kubeadm" config images list --kubernetes-version "v$version" 2> /dev/null |
    grep -E '/(kube-apiserver|kube-controller-manager|kube-scheduler|etcd):')
  mkdir "$root/kind/images"
  go run ./test/platform/kind/archive programs "$root/kind/images/control-plane.tar" "$built/kubernetes" $names
  go run ./test/platform/kind/archive pods "$results/pods.tar" "$root/bin/busybox"
  cp "$results/pods.tar" "$root/kind/images/pods.tar"
}

# The images are given to containerd here, as kind does it, and not when a node starts. Of those of pods a node has only the one
# that holds a pod together; it gets the others from the runner.
import() {
  unshare --mount --pid --net --fork --kill-child --mount-proc="$root/proc" chroot "$root" bash -euc '
    containerd --log-level error > /dev/null 2>&1 &
    until ctr version > /dev/null 2>&1; do sleep 0.1; done
    for archive in /kind/images/*; do
      ctr --namespace k8s.io images import --snapshotter overlayfs "$archive" > /dev/null
    done
    ctr --namespace k8s.io images ls -q | grep /e2e-test-images/ | xargs ctr --namespace k8s.io images rm > /dev/null
    kill $! && wait $! || true'
  rm -r "$root/kind/images"
}

debian
kind_files
network
programs
kubernetes
import
tar --numeric-owner -C "$root" --exclude=./run/containerd -cf "$work/root.tar" .
go run ./test/platform/kind/archive node "$results/node.tar.new" "$work/root.tar" "$image"
mv "$results/node.tar.new" "$results/node.tar"
echo "$results/node.tar holds $image, $(du -h "$results/node.tar" | cut -f1)" >&2
