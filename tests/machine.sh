#!/bin/sh
# The first process of a machine of its own: a copy of this one, with systemd, and processes, a network and a name of its own.
# What is written there stays in memory, in the folder $1. tests/machine.py starts this in new namespaces.
set -eu
mount -t tmpfs tmpfs "$1"
cd "$1"
mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
cat /etc/resolv.conf > resolv.conf  # which may be a mount, as in Docker
cd root
for folder in dev run tmp; do mount -t tmpfs tmpfs $folder; done
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs tmpfs sys/fs/cgroup
mount -t cgroup2 cgroup2 sys/fs/cgroup
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/pts dev/shm
mount -t devpts devpts dev/pts -o newinstance,ptmxmode=0666
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
rm -f etc/resolv.conf usr/sbin/policy-rc.d  # the latter keeps services in a container from being started
cp ../resolv.conf etc/resolv.conf
echo mail.example.org > etc/hostname
echo mail.example.org > etc/mailname
echo '127.0.0.1 mail.example.org localhost' > etc/hosts
mkdir -p mnt
pivot_root . mnt
umount -l /mnt
mount --make-rshared /  # as systemd expects of whoever starts it
exec env -i container=test /lib/systemd/systemd --unit=basic.target
