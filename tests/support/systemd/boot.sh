#!/bin/sh
# Run systemd as the first process of the namespaces that this script is in, on a copy-on-write view of this machine.
# Usage: systemd_boot.sh FOLDER PREPARE; PREPARE is a script that gets the root of the view as $1.
set -eu
folder=$1 prepare=$2
mount --make-rprivate /
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
root=$folder/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$root"

# As in a container: the kernel's settings cannot be changed, and there are no devices.
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do
  touch "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
for name in dev/shm run tmp; do
  mount -t tmpfs -o mode=1777 tmpfs "$root/$name"
done
chmod 755 "$root/run"

# Of the units of this machine none starts.
rm -rf "$root/etc/systemd/system"
mkdir "$root/etc/systemd/system"
: >"$root/etc/machine-id"
: >"$root/etc/fstab"
/bin/sh -eu "$prepare" "$root"

cd "$root"
mkdir -p old
pivot_root . old
umount -l /old
mount --make-rshared /
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=basic.target \
  --show-status=no --log-target=console
