# SPDX-License-Identifier: MIT
"""System call numbers as data: what the filter names, on each architecture.

A row is `name x86_64 aarch64`; a dash says that the architecture has no such call. The x86-64
column is the one that runs in the tests; the aarch64 column is the kernel's generic table.
"""

import platform

ARCHITECTURES = ("x86_64", "aarch64")
NEWEST = 469  # of Linux 6.18; both tables have the same numbers from 424 on
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Refused with EPERM: new channels to the outside, memory that no limit counts, other processes,
# namespaces and mounts, kernel surface, and what would undo the jail.
REFUSED = """
socket 41 198
connect 42 203
bind 49 200
listen 50 201
shmget 29 194
shmat 30 196
shmctl 31 195
semget 64 190
semop 65 193
semctl 66 191
semtimedop 220 192
msgget 68 186
msgsnd 69 189
msgrcv 70 188
msgctl 71 187
mq_open 240 180
mq_unlink 241 181
memfd_create 319 279
memfd_secret 447 447
ptrace 101 117
process_vm_readv 310 270
process_vm_writev 311 271
process_madvise 440 440
process_mrelease 448 448
kcmp 312 272
pidfd_open 434 434
pidfd_getfd 438 438
pidfd_send_signal 424 424
rt_sigqueueinfo 129 138
rt_tgsigqueueinfo 297 240
unshare 272 97
setns 308 268
mount 165 40
umount2 166 39
pivot_root 155 41
chroot 161 51
open_tree 428 428
open_tree_attr 467 467
move_mount 429 429
fsopen 430 430
fsconfig 431 431
fsmount 432 432
fspick 433 433
mount_setattr 442 442
statmount 457 457
listmount 458 458
name_to_handle_at 303 264
open_by_handle_at 304 265
io_uring_setup 425 425
io_uring_enter 426 426
io_uring_register 427 427
bpf 321 280
perf_event_open 298 241
userfaultfd 323 282
fanotify_init 300 262
inotify_init 253 -
inotify_init1 294 26
add_key 248 217
request_key 249 218
keyctl 250 219
init_module 175 105
delete_module 176 106
finit_module 313 273
kexec_load 246 104
kexec_file_load 320 294
swapon 167 224
swapoff 168 225
reboot 169 142
sethostname 170 161
setdomainname 171 162
acct 163 89
syslog 103 116
settimeofday 164 170
adjtimex 159 171
clock_settime 227 112
clock_adjtime 305 266
iopl 172 -
ioperm 173 -
modify_ldt 154 -
personality 135 92
quotactl 179 60
quotactl_fd 443 443
vhangup 153 58
lookup_dcookie 212 18
nfsservctl 180 42
uselib 134 -
ustat 136 -
sysfs 139 -
_sysctl 156 -
mknod 133 -
mknodat 259 33
setuid 105 146
setgid 106 144
setreuid 113 145
setregid 114 143
setresuid 117 147
setresgid 119 149
setgroups 116 159
setfsuid 122 151
setfsgid 123 152
setrlimit 160 164
sched_setaffinity 203 122
sched_setparam 142 118
sched_setscheduler 144 119
sched_setattr 314 274
setpriority 141 140
ioprio_set 251 30
migrate_pages 256 238
move_pages 279 239
mbind 237 235
set_mempolicy 238 237
execve 59 221
execveat 322 281
fork 57 -
vfork 58 -
setpgid 109 154
setsid 112 157
lsm_set_self_attr 460 460
"""

# Landlock does not govern these. Where student code shares the host's mounts and uid it could chmod
# the gradebook, so they answer "done" and do nothing: an error would break harmless library code.
METADATA = """
chmod 90 -
fchmod 91 52
fchmodat 268 53
fchmodat2 452 452
chown 92 -
fchown 93 55
lchown 94 -
fchownat 260 54
utime 132 -
utimes 235 -
futimesat 261 -
utimensat 280 88
setxattr 188 5
lsetxattr 189 6
fsetxattr 190 7
setxattrat 463 463
removexattr 197 14
lremovexattr 198 15
fremovexattr 199 16
removexattrat 466 466
file_setattr 469 469
"""

# Named by rules of their own.
SPECIAL = """
truncate 76 45
clone 56 220
clone3 435 435
prlimit64 302 261
prctl 157 167
fcntl 72 25
ioctl 16 29
socketpair 53 199
kill 62 129
tkill 200 130
tgkill 234 131
seccomp 317 277
"""

# Called by the jail itself.
SETUP = """
pivot_root 155 41
mount_setattr 442 442
landlock_create_ruleset 444 444
landlock_add_rule 445 445
landlock_restrict_self 446 446
"""


def numbers(table: str, architecture: str | None = None) -> dict[str, int]:
    """Return {name: number} of a table, without the calls that the architecture lacks.

    Raises: OSError on an architecture for which there is no table.
    """
    architecture = architecture or platform.machine()
    if architecture not in ARCHITECTURES:
        known = " and ".join(ARCHITECTURES)
        raise OSError(f"no system call table for {architecture}; there are tables for {known}")
    column = 1 + ARCHITECTURES.index(architecture)
    rows = [line.split() for line in table.split("\n") if line]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}
