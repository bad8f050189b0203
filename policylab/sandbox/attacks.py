# SPDX-License-Identifier: MIT
"""A dozen real attacks that do no harm: each returns what it got, or None.

They are loaded into a worker as student code, and into a plain process as the negative control.
`targets` names what lies outside: a file, a process, listeners, a directory anyone may write to.
"""

import ctypes
import importlib.metadata
import os
import signal
import socket
import subprocess
import sys
from typing import Any

Targets = dict[str, Any]

_SCRUBBED = ("OPENBLAS_", "OMP_", "MKL_", "NUMEXPR_", "PATH", "LANG", "LC_", "HOME", "TMPDIR")
_CLONE_NEWUSER = 0x1000_0000
_PTRACE_ATTACH, _PTRACE_DETACH = 16, 17


def read_file(targets: Targets) -> str | None:
    """Read a file outside."""
    with open(targets["file"]) as file:
        return file.read()


def write_file(targets: Targets) -> str | None:
    """Write to a directory outside that everyone may write to."""
    path = os.path.join(targets["directory"], "planted")
    with open(path, "w") as file:
        file.write("planted")
    return path


def change_mode(targets: Targets) -> str | None:
    """Change the mode of a file outside."""
    before = os.stat(targets["file"]).st_mode
    os.chmod(targets["file"], 0o600)
    return "changed" if os.stat(targets["file"]).st_mode != before else None


def read_course(targets: Targets) -> str | None:
    """Read the real policylab, or import the grader."""
    try:
        with open(targets["source"]) as file:
            return file.read()
    except OSError:
        __import__("autograder")
        return "imported autograder"


def find_checkout(targets: Targets) -> str | None:
    """Find the course's path in the metadata of its installation."""
    found = importlib.metadata.distribution("policylab").read_text("direct_url.json")
    return found or None


def read_environment(targets: Targets) -> str | None:
    """Find a variable that the checker's own environment holds."""
    names = [n for n in targets["variables"] if n in os.environ and not n.startswith(_SCRUBBED)]
    return ", ".join(names) or None


def read_process_environment(targets: Targets) -> str | None:
    """Read the environment of a process outside."""
    with open(f"/proc/{targets['pid']}/environ") as file:
        text = file.read()
    return "canary" if "POLICYLAB_CANARY" in text else None


def signal_process(targets: Targets) -> str | None:
    """Signal a process outside."""
    os.kill(targets["pid"], signal.SIGCONT)
    return "signalled"


def trace_process(targets: Targets) -> str | None:
    """Attach a debugger to a process outside."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(_PTRACE_ATTACH, targets["pid"], None, None) != 0:
        return None
    os.waitpid(targets["pid"], 0)
    libc.ptrace(_PTRACE_DETACH, targets["pid"], None, None)
    return "attached"


def connect_tcp(targets: Targets) -> str | None:
    """Connect to a port of the loopback interface."""
    with socket.create_connection(("127.0.0.1", targets["port"]), timeout=2):
        return "connected"


def connect_abstract(targets: Targets) -> str | None:
    """Connect to an abstract Unix socket."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(targets["abstract"])
        return "connected"


def run_program(targets: Targets) -> str | None:
    """Run a program."""
    done = subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, timeout=10)
    return "ran" if done.returncode == 0 else None


def fork_at_check(targets: Targets) -> str | None:
    """Start a process during a check."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "forked"


def enter_namespace(targets: Targets) -> str | None:
    """Create a user namespace, and with it privileges."""
    libc = ctypes.CDLL(None, use_errno=True)
    return "entered" if libc.unshare(_CLONE_NEWUSER) == 0 else None


def hidden_memory(targets: Targets) -> str | None:
    """Take memory that no limit counts."""
    os.close(os.memfd_create("hidden"))
    return "created"


ATTACKS = (
    read_file,
    write_file,
    change_mode,
    read_course,
    find_checkout,
    read_environment,
    read_process_environment,
    signal_process,
    trace_process,
    connect_tcp,
    connect_abstract,
    run_program,
    fork_at_check,
    enter_namespace,
    hidden_memory,
)
