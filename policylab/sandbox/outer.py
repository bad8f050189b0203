# SPDX-License-Identifier: MIT
"""The outer jail: a fresh process that shuts itself in, then becomes the zygote by exec.

`namespaces`: user, mount, pid, net, ipc, uts and cgroup namespaces, and a root that holds read-only
binds of the layout and a copy of the view: what student code must not read does not exist there.
`landlock`: the same paths as an allow-list over the host's tree, for machines without namespaces.
As root both drop to a throw-away uid before the zygote starts.
`none`: no jail at all, for an instructor who asks for it by name; `backends` never chooses it.
"""

import json
import os
import shutil
import signal
import sys
from typing import Any, NoReturn

from policylab.sandbox import jail, landlock

UNSAFE = "none"  # the backend that confines nothing
HOME = "/box"  # a worker's writable directory
VIEW = "/view"
DEVICES = ("null", "zero", "full", "random", "urandom")
_FLAGS = ("-P", "-s", "-S", "-B")  # no path of the caller's, no site hooks, no .pyc written
_RUN = "import sys; sys.path.extend({paths!r}); from policylab.sandbox.{module} import main; main()"


def python_command(executable: str, module: str, paths: list[str]) -> list[str]:
    """Return the command that runs a module's `main`, with paths after the standard library's."""
    return [executable, *_FLAGS, "-c", _RUN.format(module=module, paths=paths)]


def main() -> NoReturn:
    """Read the configuration from stdin, enter the jail and run the zygote."""
    config = json.load(sys.stdin)
    _prefer_as_oom_victim()
    throwaway = jail.throwaway_id() if os.getuid() == 0 else None
    if config["backend"] == "namespaces":
        _enter_namespaces(config, throwaway)
        view = VIEW
    else:
        view = config["view"]
        if pid := os.fork():
            _wait_outside(pid, view)
        jail.die_with_parent()
        os.setsid()
        # opened before Landlock: the zygote counts its tasks and its size by them
        config["fds"] += _proc_fds()
        if config["backend"] != UNSAFE:
            if throwaway is not None:
                jail.become(throwaway)
            _restrict(config)
    jail.drop_capabilities()
    jail.die_with_parent()
    jail.forbid_new_privileges()
    os.chdir("/")
    environment = {**config["environment"], "POLICYLAB_ZYGOTE": json.dumps(_for_zygote(config))}
    layout = config["layout"]
    command = python_command(layout["executable"], "zygote", [view, *layout["sites"]])
    os.execve(command[0], command, environment)


def _for_zygote(config: dict[str, Any]) -> dict[str, Any]:
    """What the zygote has to know; nothing of the host's paths."""
    kept = {key: config[key] for key in ("backend", "preimport", "fds", "highest_abi")}
    kept["tmp_is_bound"] = any(path.startswith("/tmp/") for path in config["readable"])
    return kept


def _prefer_as_oom_victim() -> None:
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass  # a container may forbid it; the kernel then chooses by size alone


def _proc_fds() -> list[int]:
    fds = [os.open("/proc/self/task", os.O_RDONLY), os.open("/proc/self/statm", os.O_RDONLY)]
    for fd in fds:
        os.set_inheritable(fd, True)
    return fds


def _restrict(config: dict[str, Any]) -> None:
    layout = config["layout"]
    rules = [(path, landlock.READ) for path in [*config["readable"], config["view"]]]
    rules += [(path, landlock.LIST) for path in [*layout["roots"], *layout["sites"]]]
    rules += [("/dev/" + name, landlock.DEVICE) for name in DEVICES]
    landlock.restrict(rules, config["highest_abi"])


def _enter_namespaces(config: dict[str, Any], throwaway: int | None) -> None:
    """Return in a child that is pid 1 of the jail."""
    uid, gid = os.getuid(), os.getgid()
    kinds = ["NEWNS", "NEWPID", "NEWIPC", "NEWUTS", "NEWCGROUP", "NEWNET"]
    if throwaway is None:
        jail.unshare("NEWUSER", *kinds)
        jail.write_id_maps(uid, gid)
    else:  # as root: build the tree with real privileges, then give them up
        jail.unshare(*kinds)
    if pid := os.fork():
        _wait_outside(pid)
    jail.die_with_parent()
    os.setsid()
    config["fds"] += _proc_fds()
    _build_root(config)
    if throwaway is not None:
        jail.become(throwaway)


def _wait_outside(pid: int, view: str | None = None) -> NoReturn:
    """Wait for the zygote, which ends with the checker; then remove its copy of the view."""
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGKILL))
    _, status = os.waitpid(pid, 0)
    if view is not None:
        shutil.rmtree(view, ignore_errors=True)
    os._exit(os.waitstatus_to_exitcode(status) & 255)


def _build_root(config: dict[str, Any]) -> None:
    jail.mount("none", "/", flags=jail.MS_REC | jail.MS_PRIVATE)
    staging = "/tmp"  # any directory: after pivot_root the tmpfs on it is the root
    jail.mount("tmpfs", staging, "tmpfs", jail.MS_NOSUID | jail.MS_NODEV, "size=256m,mode=755")
    os.umask(0o022)
    os.mkdir(staging + "/old")
    jail.pivot_root(staging, staging + "/old")
    os.chdir("/")
    for name in ("/lib", "/lib64"):  # the dynamic loader's path leads through these links
        if os.path.islink("/old" + name):
            os.symlink(os.readlink("/old" + name), name)
    layout = config["layout"]
    for path in layout["roots"]:
        _bind(path)
    for directory, entries in layout["carved"].items():
        _carve(directory, entries)
    copy_view("/old" + config["view"], VIEW)
    for directory in ("/dev", "/etc", HOME, "/tmp", "/proc"):
        os.makedirs(directory, exist_ok=True)
    for name in DEVICES:
        _bind_device(name)
    with open("/etc/passwd", "w") as file:
        file.write(f"student:x:{jail.INSIDE_ID}:{jail.INSIDE_ID}::{HOME}:/bin/false\n")
    flags = jail.MS_NOSUID | jail.MS_NODEV | jail.MS_NOEXEC
    jail.mount("proc", "/proc", "proc", flags, "hidepid=2")
    jail.detach("/old")
    os.rmdir("/old")
    flags = jail.MS_REMOUNT | jail.MS_BIND | jail.MS_RDONLY | jail.MS_NOSUID | jail.MS_NODEV
    jail.mount("none", "/", flags=flags)


def _bind(path: str) -> None:
    source = os.path.realpath("/old" + path) if os.path.islink("/old" + path) else "/old" + path
    if os.path.isdir(source):
        os.makedirs(path, exist_ok=True)
    elif os.path.exists(source):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").close()
    else:
        return
    jail.mount(source, path, flags=jail.MS_BIND | jail.MS_REC)
    jail.make_readonly(path)


def _carve(directory: str, entries: list[str]) -> None:
    """Show only these entries of a directory, whether or not it lies below a bound path."""
    os.makedirs(directory, exist_ok=True)
    flags = jail.MS_NOSUID | jail.MS_NODEV
    jail.mount("tmpfs", directory, "tmpfs", flags, "size=4m,nr_inodes=64k,mode=755")
    for path in entries:
        _bind(path)
    jail.mount("none", directory, flags=flags | jail.MS_REMOUNT | jail.MS_BIND | jail.MS_RDONLY)


def _bind_device(name: str) -> None:
    open("/dev/" + name, "w").close()
    jail.mount("/old/dev/" + name, "/dev/" + name, flags=jail.MS_BIND)


def copy_view(source: str, target: str) -> None:
    """Copy regular files, readable for everyone whatever their modes were."""
    for directory, names, files in os.walk(source):
        names[:] = [name for name in names if name != "__pycache__"]
        copied = os.path.join(target, os.path.relpath(directory, source))
        os.makedirs(copied, exist_ok=True)
        os.chmod(copied, 0o755)
        for name in files:
            path = os.path.join(directory, name)
            if os.path.isfile(path) and not os.path.islink(path):
                shutil.copyfile(path, os.path.join(copied, name))
                os.chmod(os.path.join(copied, name), 0o644)
