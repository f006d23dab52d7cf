# Boot a machine: run in a site, in a mount and a network namespace of the machine's own, as `sh -e boot.sh NAME GROUP`.
# This shell becomes systemd, process 1 of further namespaces; before that it writes its number, as the site counts, to
# /srv/machines/NAME/pid. GROUP is the control group below which the machine gets one.
name=$1 group=$2 place=/srv/machines/$1

if [ $$ != 1 ]; then
    # A cgroup namespace begins where its maker is.
    mount -t cgroup2 cgroup2 /sys
    mkdir "/sys/$group/$name.$$"
    echo $$ >"/sys/$group/$name.$$/cgroup.procs"
    umount /sys
    exec unshare --uts --ipc --pid --cgroup --fork --kill-child=SIGKILL sh -e "$0" "$@"
fi

read -r number _ </proc/self/stat
hostname "$name"
root=$place/root
mount -t overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" "$name" "$root"
mount -t proc -o nosuid,noexec proc "$root/proc"
# The kernel's settings are the host's.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro,nosuid,noexec "$root/proc/sys"
mount -t sysfs -o ro,nosuid,noexec sysfs "$root/sys"
mount -t cgroup2 -o nosuid,noexec cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o nosuid,mode=0755,size=1m dev "$root/dev"
cp -a --one-file-system /dev/. "$root/dev"
mount -t devpts -o nosuid,noexec,newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
mount --bind /home "$root/home"
echo "$name" >"$root/etc/hostname"
[ -e "$root/etc/machine-id" ] || tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
echo "$number" >"$place/pid"
cd "$root"
# sid's util-linux has no program for it.
python3 -I -S -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).pivot_root(b".", b"mnt"))'
umount -l /mnt
# systemd does this where it is not in a container: services with mounts of their own see those that are made later.
mount --make-rshared /
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin container=other /usr/lib/systemd/systemd
