#!/usr/bin/env bash
# Tries the embedded Kubernetes and its real node on a Debian as people have it: systemd, control groups of version 2,
# AppArmor, Debian's kernel, and a container runtime of the machine's own that must not notice anything. It runs in a
# virtual machine without any network. Use: debian.sh IMAGE PACKAGES VERSION [flags for the runner]
#
# IMAGE is the file of the virtual machine's disk, made with debootstrap if it is not there (remove it to have it made
# anew); PACKAGES are installed on it. The reports go beside it. Needs Linux on amd64, root, and what `make debian-deps` installs. Without KVM the machine
# is emulated, which takes some 10 minutes.
set -euo pipefail
image=$1 packages=$2 version=$3
shift 3
results=$(dirname "$image")/results
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# make_image makes the disk: Debian with the packages, and a service that runs the trial and turns the machine off.
make_image() {
  echo "making $image, which takes some minutes" >&2
  debootstrap --variant=minbase --include="systemd-sysv,udev,kmod,linux-image-amd64,apparmor,iproute2,procps,${packages// /,}" \
    bookworm "$work/root" > "$work/debootstrap.log" 2>&1 || { tail "$work/debootstrap.log" >&2; exit 1; }
  cat > "$work/root/etc/systemd/system/trial.service" << 'UNIT'
[Unit]
After=multi-user.target containerd.service
[Service]
Type=oneshot
TimeoutStartSec=infinity
StandardOutput=tty
StandardError=tty
TTYPath=/dev/hvc0
ExecStartPre=/bin/mkdir -p /trial /given /results
ExecStartPre=/bin/mount -t 9p -o trans=virtio,ro trial /trial
ExecStartPre=/bin/mount -t 9p -o trans=virtio,ro given /given
ExecStartPre=/bin/mount -t 9p -o trans=virtio results /results
ExecStart=/bin/bash /trial/trial.sh
ExecStopPost=/bin/systemctl poweroff --force
UNIT
  ln -s ../trial.service "$work/root/etc/systemd/system/multi-user.target.wants/trial.service"
  ln -s /dev/null "$work/root/etc/systemd/system/serial-getty@hvc0.service"
  mkdir -p "$(dirname "$image")"
  truncate --size 8G "$image.new"
  mke2fs -q -t ext4 -d "$work/root" "$image.new"
  cp "$work"/root/boot/vmlinuz-* "$image.kernel"
  cp "$work"/root/boot/initrd.img-* "$image.initrd"
  mv "$image.new" "$image"
  rm -rf "$work/root"
}

share() { echo "local,id=$1,mount_tag=$1,path=$2,security_model=none$3"; }

for program in qemu-system-x86_64 debootstrap mke2fs; do
  command -v "$program" > /dev/null || { echo "$program is not installed: run make debian-deps" >&2; exit 2; }
done
[ -e "$image" ] || make_image
rm -rf "$results"
mkdir "$work/given" "$results"
cp bin/runner "$work/given/"
cp -r --parents "bin/kubernetes/v$version" "$work/given/"
printf '%s\n' "$@" > "$work/given/flags"
# A /dev/kvm alone says little: inside of other virtual machines it can be there and not work.
accelerator=(-accel tcg,thread=multi -cpu max)
if [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then
  accelerator=(-accel kvm -cpu host)
fi
qemu-system-x86_64 "${accelerator[@]}" -smp 2 -m 6G -no-reboot -net none \
  -display none -monitor none -serial null -chardev stdio,id=out,signal=off -device virtio-serial -device virtconsole,chardev=out \
  -kernel "$image.kernel" -initrd "$image.initrd" -append "root=/dev/vda rw console=ttyS0 quiet" \
  -drive "file=$image,format=raw,if=virtio,snapshot=on" \
  -virtfs "$(share trial "$(dirname "$0")" ,readonly=on)" \
  -virtfs "$(share given "$work/given" ,readonly=on)" \
  -virtfs "$(share results "$results" "")" < /dev/null
[ "$(cat "$results/code" 2> /dev/null)" = 0 ]
