# SPDX-License-Identifier: MIT
"""What code in a worker can and cannot do, in every backend: the facts of the jail."""

import os

import pytest

from policylab.sandbox import Limits, PeerGone, Zygote
from policylab.sandbox.layout import current_layout
from tests.sandbox.conftest import Box, StudentRaised, require_backend

PROLOGUE = """
import ctypes, errno, os, signal, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)

def attempt(action, *args):
    try:
        return action(*args)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))

def syscall(number, *args):
    result = libc.syscall(number, *args)
    return result if result >= 0 else errno.errorcode[ctypes.get_errno()]
"""


@pytest.fixture
def jailed(box: Box) -> Box:
    assert box.load(PROLOGUE) == [None]
    return box


def test_nothing_outside_can_be_read(jailed: Box, tmp_path):
    (tmp_path / "secret").write_text("canary")
    paths = [str(tmp_path / "secret"), "/etc/shadow", "/etc/hostname", "/root", "/home", "/var/log"]
    paths += [__file__, os.path.dirname(__file__), "/usr/bin/env", "/sys", "/run", "/root/.bashrc"]
    readable = list(current_layout().readable())  # an environment's parents show the way to it
    paths = [path for path in paths if not any(good.startswith(path + "/") for good in readable)]
    for path in paths:
        found = jailed.run(
            f"result = attempt(lambda: open({path!r}).read()), attempt(os.listdir, {path!r})"
        )
        assert all(outcome in ("ENOENT", "EACCES", "ENOTDIR", "EISDIR") for outcome in found), path


def test_nothing_outside_exists_in_namespaces(jailed: Box, backend: str):
    if backend != "namespaces":
        pytest.skip("Landlock leaves stat to everyone")
    names = jailed.run("result = sorted(os.listdir('/'))")
    assert set(names) <= {"box", "dev", "etc", "lib", "lib64", "proc", "tmp", "usr", "view"} | {
        path.split("/")[1] for path in (os.path.realpath(os.__file__), pytest.__file__)
    }
    assert set(jailed.run("result = os.listdir('/etc')")) <= {"passwd", "ld.so.cache"}
    for path in ("/usr/share", "/usr/sbin", "/usr/include", "/usr/bin/sh", "/bin/sh", "/sbin"):
        assert jailed.run(f"result = os.path.exists({path!r})") is False


def test_writing_is_confined_to_the_private_directory(jailed: Box, backend: str, tmp_path):
    tmp_path.chmod(0o777)
    readonly = [str(tmp_path), os.path.dirname(os.__file__), "/view", "/etc", "/", "/usr"]
    for directory in readonly:
        outcome = jailed.run(f"result = attempt(open, os.path.join({directory!r}, 'x'), 'w')")
        assert outcome in ("EROFS", "EACCES", "ENOENT"), directory
    outcome = jailed.run(
        "result = attempt(lambda: open(os.path.join(os.environ['HOME'], 'x'), 'w').write('y'))"
    )
    assert outcome == (1 if backend == "namespaces" else "EACCES")
    assert list(tmp_path.iterdir()) == []


def test_a_private_directory_is_private_and_limited(zygote, backend: str):
    if backend != "namespaces":
        pytest.skip("there is no private directory")
    with zygote.spawn(Limits(disk=1 << 20)) as first, zygote.spawn() as second:
        fill = "import os\nresult = os.path.exists('x')\nopen('x', 'w').write('y' * (3 << 20))"
        fault = Box(first).load(fill)[0]
        assert fault["type"] == "OSError"
        many = "for n in range(5000): open(f'f{n}', 'w').close()"
        assert Box(first).load(many)[0]["type"] == "OSError"
        assert Box(second).run("import os\nresult = os.listdir('.')") == []


def test_no_network_and_no_sockets_but_pairs_of_streams(jailed: Box):
    families = "AF_INET AF_INET6 AF_UNIX AF_NETLINK AF_VSOCK AF_ALG AF_PACKET".split()
    for family in families:
        assert jailed.run(f"result = attempt(socket.socket, socket.{family})") == "EPERM"
    datagram = "socket.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM"
    assert jailed.run(f"result = attempt({datagram})") == "EPERM"
    assert jailed.run("a, b = socket.socketpair(); a.send(b'x'); result = b.recv(1)") == b"x"


def test_no_programs(jailed: Box):
    assert jailed.run("result = attempt(os.execv, sys.executable, ['python', '-V'])") == "EPERM"
    assert jailed.run("result = attempt(subprocess.run, ['/bin/true'])") == "EPERM"
    assert jailed.run("result = attempt(os.posix_spawn, '/bin/true', ['true'], {})") == "EPERM"


def test_processes_are_confined_to_the_load(jailed: Box, zygote):
    source = "pid = os.fork()\nif not pid: os._exit(7)\nresult = os.waitpid(pid, 0)[1] >> 8"
    if zygote.info["can_fork"]:
        assert jailed.run(source) == 7
        jailed.value("fork")
    fork = jailed.run("result = attempt(os.fork)")
    assert fork == "EPERM"
    assert (
        jailed.run("import threading\nt = threading.Thread(target=print)\nt.start(); t.join()")
        is None
    )


def test_no_other_process_can_be_signalled_traced_or_read(jailed: Box):
    for pid in (os.getpid(), os.getppid()):
        assert jailed.run(f"result = attempt(os.kill, {pid}, 0)") in ("EPERM", "ESRCH")
        assert jailed.run(f"result = syscall(101, 16, {pid}, 0, 0)") == "EPERM"
        environ = jailed.run(f"result = attempt(lambda: open('/proc/{pid}/environ').read())")
        assert environ in ("ENOENT", "EACCES", "EPERM")
        memory = jailed.run(f"result = attempt(lambda: open('/proc/{pid}/mem', 'rb').read(1))")
        assert memory in ("ENOENT", "EACCES", "EPERM")


def test_signals_to_all_reach_nobody_outside(jailed: Box, zygote):
    jailed.load("signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    for target in ("-1", "0", "-os.getpgrp()"):
        jailed.run(f"result = attempt(os.kill, {target}, signal.SIGTERM)")
    zygote.ping()


def test_the_end_of_the_parent_cannot_be_ignored(jailed: Box):
    assert jailed.run("result = attempt(lambda: syscall(157, 1, 0, 0, 0, 0))") == "EPERM"


REFUSED = {
    "unshare": (272, 0x10000000),
    "setns": (308, 0, 0),
    "mount": (165, 0, 0, 0, 0, 0),
    "chroot": (161, b"/"),
    "memfd_create": (319, b"x", 0),
    "io_uring_setup": (425, 1, 0),
    "keyctl": (250, 0, 0),
    "bpf": (321, 0, 0, 0),
    "userfaultfd": (323, 0),
    "perf_event_open": (298, 0, 0, 0, 0, 0),
    "process_vm_readv": (310, 1, 0, 0, 0, 0, 0),
    "pidfd_open": (434, 1, 0),
    "shmget": (29, 0, 4096, 0o1600),
    "setuid": (105, 0),
    "setpriority": (141, 2, 0, 19),
    "shmctl": (31, 0, 0, 0),
    "mq_unlink": (241, b"x"),
    "clone into a user namespace": (56, 0x10000000, 0, 0, 0, 0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_kernel_surface_is_refused(jailed: Box, name):
    assert jailed.run(f"result = syscall(*{REFUSED[name]!r})") == "EPERM"


def test_clone3_is_unknown_so_that_its_hidden_flags_cannot_be_used(jailed: Box):
    assert jailed.run("result = syscall(435, 0, 0)") == "ENOSYS"


def test_limits_can_be_lowered_but_not_raised(jailed: Box):
    source = """
import resource
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
try:
    resource.setrlimit(resource.RLIMIT_AS, (hard + 1, hard + 1))
except (ValueError, OSError) as error:
    result = type(error).__name__
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
"""
    assert jailed.run(source) in ("ValueError", "PermissionError", "OSError")


def test_no_privileges_and_a_foreign_uid(jailed: Box, zygote):
    source = (
        "result = [line for line in open('/proc/self/status') if line.startswith(('Cap', 'NoNew'))]"
    )
    if zygote.backend == "namespaces":
        lines = jailed.run(source)
        assert {line.split()[1] for line in lines if line.startswith("Cap")} == {"0000000000000000"}
        assert "NoNewPrivs:\t1\n" in lines
    assert jailed.run("result = os.getresuid()")[0] != 0
    assert jailed.run("result = os.getgroups()") in ([], [65534]) or os.getuid() != 0
    if os.getuid() == 0:
        assert zygote.info["uid"] >= 0x7100_0000


def test_the_environment_holds_numerics_only(jailed: Box):
    names = set(jailed.run("result = dict(os.environ)"))
    allowed = ("OPENBLAS_", "OMP_", "MKL_", "NUMEXPR_", "PATH", "LANG", "LC_", "HOME", "TMPDIR")
    assert all(name.startswith(allowed) for name in names)
    assert jailed.run("result = os.environ['OMP_NUM_THREADS']") == "1"
    started_with = jailed.run("result = attempt(lambda: open('/proc/self/environ').read())")
    assert os.environ.get("HOME", "/nowhere") not in str(started_with) or started_with == "EACCES"


def test_numerics_settings_of_the_caller_are_kept(view, backend, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("SECRET_TOKEN", "canary")
    with Zygote(view, backend=backend, preimport=()) as zygote, zygote.spawn() as worker:
        environment = Box(worker).run("import os\nresult = dict(os.environ)")
    assert environment["OPENBLAS_CORETYPE"] == "Haswell" and "canary" not in environment.values()


def test_only_four_descriptors_are_open(jailed: Box):
    source = """
def is_open(fd):
    try:
        os.fstat(fd)
        return True
    except OSError:
        return False
result = [fd for fd in range(200) if is_open(fd)], os.read(0, 1)
"""
    assert jailed.run(source) == ([0, 1, 2, 3], b"")


def test_hash_seeds_are_fixed_so_that_runs_repeat(zygote):
    order = []
    for _ in range(2):
        with zygote.spawn() as worker:
            order.append(Box(worker).run("result = [hash('a'), hash('b')]"))
    assert order[0] == order[1]


def test_a_foreign_system_call_abi_kills(jailed: Box):
    with pytest.raises(PeerGone):
        jailed.run("result = syscall(0x40000000 + 39)")
    assert jailed.worker.death().kind == "signal"


def test_two_uids_never_meet(view):
    if os.getuid() != 0:
        pytest.skip("only root gives uids away")
    require_backend("landlock")
    uids = set()
    for _ in range(2):
        with Zygote(view, backend="landlock", preimport=()) as zygote:
            uids.add(zygote.info["uid"])
    assert len(uids) == 2


def test_an_exception_of_ours_names_type_line_and_source(box: Box):
    first, second, third = box.load("x = 1\ny = 2 +\n", "def f():\n    return 1 / 0\nf()", "z = 3")
    assert (first["type"], first["frames"]) == ("SyntaxError", [["c0", 2, "y = 2 +"]])
    assert second["type"] == "ZeroDivisionError"
    assert second["frames"] == [["c1", 3, "f()"], ["c1", 2, "return 1 / 0"]]
    assert third is None and box.value("value", t="z") == 3
    with pytest.raises(StudentRaised) as raised:
        box.call("f")
    assert raised.value.fault["frames"] == [["c1", 2, "return 1 / 0"]]
