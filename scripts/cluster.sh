# shellcheck shell=sh
# A real Slurm on this machine, for scripts/slurm-trial and scripts/openshmem-trial, which read this file
# from the top of the tree: slurmctld and munged here, and a slurmd for each node, in further namespaces.
# The script that reads this file runs in namespaces of its own (mounts, processes, network), as root: no
# file, port or service of the system is touched, and the kernel removes everything that is left.
#
# Variables to set before: build, the folder of the build; nodes, their names ("n1 n2"); kept, folders that
# all nodes see as they are, although they may lie under /tmp. This file sets: work, a folder in memory with
# bin, which is in every user's PATH; the users alice, bob, olga and pwcd; and the functions below.

readonly nodes # a function that took this name for its own would hide what a job leaves
work=/mnt      # of this namespace, in memory

# Waits until a command succeeds, at most so many seconds.
within() { # seconds, command
    left=$((10 * $1))
    shift
    until "$@" >/dev/null 2>&1; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || { echo "not within time: $*"; return 1; }
        sleep 0.1
    done
}

# Copies the scripts of a page into work/bin: each is an indented block whose second line is its name.
take_scripts() { # page
    awk -v to="$work/bin" '
        /^    #!/ { first = substr($0, 5); next }
        first && /^    # / { split(substr($0, 7), words, ":"); file = to "/" words[1]; print first >file }
        { first = "" }
        file && /^    / { print substr($0, 5) >file; next }
        file && /^$/ { print "" >file; next }
        { file = "" }' "$1"
}

# Copies programs for every job, ours and the given ones, and then makes folders in memory in place of folders
# that are written to. From there on no absolute path leads to a tree or a build under /tmp or /home.
make_folders() { # programs
    mount -t tmpfs -o mode=0755 none "$work"
    mkdir -p "$work/etc" "$work/bin" "$work/state" "$work/kept"
    cp "$build"/daemon/pwcd "$build"/tools/pwcctl/pwcctl "$@" "$work/bin"
    cp -L "$build"/clientlib/libpwc.so.1 "$work/bin"
    mount --bind "$work/bin" /usr/local/bin # where prolog and epilog look, too
    export LD_LIBRARY_PATH="$work/bin"
    unset XDG_RUNTIME_DIR

    kept_number=0
    for folder in $kept; do
        kept_number=$((kept_number + 1))
        mkdir "$work/kept/$kept_number"
        mount --bind "$folder" "$work/kept/$kept_number"
    done
    for folder in /tmp /run /home /dev/shm /var/lib/munge /var/log /var/spool /etc/munge; do
        mount -t tmpfs -o mode="$(stat -c %a "$folder")" none "$folder"
    done
    chown munge: /var/lib/munge /etc/munge
    show_kept
}

# Shows the kept folders in their own places again, after the mounts above.
show_kept() {
    kept_number=0
    for folder in $kept; do
        kept_number=$((kept_number + 1))
        mkdir -p "$folder"
        mount --bind "$work/kept/$kept_number" "$folder"
    done
}

# Makes users, host names and the key of the cluster.
make_users() {
    cp /etc/passwd /etc/group "$work/etc"
    cat >>"$work/etc/passwd" <<END
alice:x:61101:61101::/home/alice:/bin/sh
bob:x:61102:61102::/home/bob:/bin/sh
pwcd:x:61103:61103::/run/pwcd:/usr/sbin/nologin
olga:x:61106:61106::/:/bin/sh
END
    cat >>"$work/etc/group" <<END
alice:x:61101:
bob:x:61102:
pwcd:x:61103:
users-of-pwcd:x:61104:alice,bob
operators:x:61105:olga
olga:x:61106:
END
    printf '127.0.0.1 localhost\n10.78.0.254 head\n' >"$work/etc/hosts"
    for node in $nodes; do
        echo "10.78.0.${node#n} $node" >>"$work/etc/hosts"
    done
    for file in passwd group hosts; do
        mount --bind "$work/etc/$file" "/etc/$file"
    done
    head -c 1024 /dev/urandom >/etc/munge/munge.key
    chown munge: /etc/munge/munge.key
    chmod 0400 /etc/munge/munge.key
    for user in alice bob; do
        install -d -o $user -g $user -m 0700 "/home/$user"
    done
}

write_slurm_conf() {
    cat >"$work/slurm.conf" <<END
ClusterName=trial
SlurmctldHost=head(10.78.0.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge/munge.socket.2
SlurmctldPort=6817
SlurmdPort=6818
StateSaveLocation=$work/state
SlurmctldPidFile=/run/slurmctld.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdSpoolDir=/var/spool/slurmd
SlurmdPidFile=/run/slurmd.pid
SlurmdLogFile=$work/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=2
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=5
MpiDefault=none
END
    for hook in prolog epilog; do
        [ ! -f "$work/bin/$hook" ] || echo "$hook=$work/bin/$hook" >>"$work/slurm.conf"
    done
    listed=$(echo "$nodes" | tr ' ' ',')
    cat >>"$work/slurm.conf" <<END
NodeName=$listed CPUs=8 State=UNKNOWN
PartitionName=all Nodes=$listed Default=YES MaxTime=INFINITE State=UP
END
    export SLURM_CONF="$work/slurm.conf"
}

start_munged() {
    install -d -o munge -g munge -m 0755 /run/munge
    install -d -o munge -g munge -m 0700 /var/log/munge
    runuser -u munge -- /usr/sbin/munged --num-threads=2
}

# Turns this shell into a node: waits for its end of the cable, and takes its own network, name, and folders
# that programs write into.
become_node() { # name
    until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
    hostname "$1"
    for folder in /run /tmp /dev/shm /var/lib/munge /var/log /var/spool; do
        mount -t tmpfs -o mode="$(stat -c %a "$folder")" none "$folder"
    done
    show_kept
    chown munge: /var/lib/munge
    ip link set lo up
    ip addr add "10.78.0.${1#n}/24" dev eth0
    ip link set eth0 up
    start_munged
    mkdir -p /var/spool/slurmd
    cd / # the tree may be hidden now
    exec slurmd -D -N "$1"
}

start_slurm() {
    write_slurm_conf
    hostname head
    ip link set lo up
    ip link add br0 type bridge
    ip addr add 10.78.0.254/24 dev br0
    ip link set br0 up
    start_munged
    slurmctld
    for node in $nodes; do
        env build="$build" nodes="$nodes" kept="$kept" unshare --net --mount --uts sh -eu -c '
            . scripts/cluster.sh
            become_node "$1"' node "$node" >"$work/$node.log" 2>&1 &
        eval "pid_$node=$!"
        sleep 0.2
        ip link add "v$node" type veth peer name eth0 netns "$(eval echo \$pid_$node)"
        ip link set "v$node" master br0 up
    done
}

nodes_are_idle() {
    [ "$(sinfo -h -t idle -o %D)" = "$(echo "$nodes" | wc -w)" ]
}

on() { # node, command
    node=$1
    shift
    nsenter --target "$(eval echo "\$pid_$node")" --mount --net --uts -- "$@"
}

as() { # user, command
    user=$1
    shift
    (cd "/home/$user" && exec runuser -u "$user" -- "$@")
}

job_is_gone() {
    [ -z "$(squeue -h)" ] && nodes_are_idle
}

# Prints everything that a job has left on any node; it should print nothing.
left_over() {
    for user in 61101 61102; do
        pgrep -l -u $user || true
    done
    for node in $nodes; do
        on $node sh -c "
            find /dev/shm /tmp /run /var/spool -user alice -o -user bob | grep -v '^/var/spool/slurmd'
            find /tmp /run /dev/shm -name '*pwcd*' | grep -v '^/run/pwcd'
            grep '@pwcd' /proc/net/unix
            ss -Hltne | awk '/ uid:6110[12] / { print \$4 }'
            :" | sed "s/^/$node: /"
    done
}

nothing_is_left() {
    within 20 job_is_gone || return 1
    left=$(left_over)
    [ -z "$left" ] || { echo "left over: $left"; return 1; }
}
