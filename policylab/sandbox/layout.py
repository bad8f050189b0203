# SPDX-License-Identifier: MIT
"""What a jail can see of the host: the interpreter, its libraries and third-party packages.

Not seen: the course. `policylab` and `autograder` are left out of every site-packages directory,
with their metadata (which names the checkout) and every .pth file and editable finder.
"""

import dataclasses
import os
import re
import stat
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import PurePath

_SITE_NAMES = ("site-packages", "dist-packages")
_OURS = re.compile(r"_*(editable_+)?_*(policylab|autograder)([._-].*)?$", re.IGNORECASE)
_HOOK = re.compile(
    r".*\.(pth|egg-link)$|__editable__.*|sitecustomize.*|usercustomize.*", re.IGNORECASE
)
_OUR_METADATA = re.compile(r"(policylab|autograder)-.*\.dist-info$", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Layout:
    """Paths of the host that are readable in a jail.

    roots: files and directories, whole but for `carved`.
    carved: directories of which only the listed entries are readable; outer before inner.
    sites: third-party directories for sys.path.
    executable: the interpreter that the zygote runs.
    """

    executable: str
    roots: tuple[str, ...]
    carved: dict[str, tuple[str, ...]]
    sites: tuple[str, ...]

    def readable(self) -> Iterator[str]:
        """Yield paths that together cover what is readable, and nothing of the rest."""
        for root in self.roots:
            yield from _without(root, self.carved)
        for entries in self.carved.values():
            yield from entries


def current_layout() -> Layout:
    """Return the layout of the interpreter that runs this."""
    executable = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    stdlib = os.path.dirname(os.path.realpath(os.__file__))
    roots = _outermost([executable, stdlib, *_dynload(), *_library_paths(), "/etc/ld.so.cache"])
    sites = tuple(path for path in sys.path if os.path.basename(path) in _SITE_NAMES)
    sites = tuple(dict.fromkeys(os.path.abspath(path) for path in sites if os.path.isdir(path)))
    carved: dict[str, tuple[str, ...]] = {hidden: () for hidden in _sites_below(roots, stdlib)}
    carved.update((site, tuple(third_party_entries(site))) for site in sites)
    return Layout(executable, roots, carved, sites)


def zygote_environment() -> dict[str, str]:
    """Return the scrubbed environment: what numerics need, and nothing of the caller's secrets."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
    )
    fixed = {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",  # the same order of sets in every run
        "TORCHINDUCTOR_CACHE_DIR": "/",  # torch._dynamo wants to make one; this one is there
    }
    return {**kept, **threads, **fixed}


def unreadable_by_others(paths: Iterable[str]) -> str | None:
    """Return the first file or directory that keeps other users from one of the paths, if any."""
    for path in paths:
        real = os.path.realpath(path)
        for ancestor in [*reversed([str(p) for p in PurePath(real).parents]), real]:
            mode = os.stat(ancestor).st_mode
            needed = 0o5 if ancestor == real and stat.S_ISDIR(mode) else 0o1
            needed = 0o4 if ancestor == real and not stat.S_ISDIR(mode) else needed
            if mode & needed != needed:
                return ancestor
    return None


def third_party_entries(site: str) -> Iterator[str]:
    """Yield what a site-packages directory holds besides the course and path hooks.

    Of the course's own metadata only METADATA stays: it holds a version and no path.
    """
    for name in sorted(os.listdir(site)):
        path = os.path.join(site, name)
        if _OUR_METADATA.match(name):
            if os.path.isfile(metadata := os.path.join(path, "METADATA")):
                yield metadata
        elif not _OURS.match(name) and not _HOOK.match(name) and name != "__pycache__":
            yield path


def _dynload() -> list[str]:
    directory = sysconfig.get_config_var("DESTSHARED")
    return [os.path.realpath(directory)] if directory and os.path.isdir(directory) else []


def _library_paths() -> list[str]:
    """Shared libraries: of the distribution, and of an interpreter that brings its own."""
    triplet = sysconfig.get_config_var("MULTIARCH")
    found = ["/lib64", "/usr/lib64"]
    if triplet and os.path.isdir(f"/usr/lib/{triplet}"):
        found += [f"/lib/{triplet}", f"/usr/lib/{triplet}", f"/usr/local/lib/{triplet}"]
    else:
        found += ["/lib", "/usr/lib"]
    prefix_lib = os.path.join(os.path.realpath(sys.base_prefix), "lib")
    if prefix_lib not in ("/usr/lib", "/lib"):
        found += [prefix_lib]
    return [path for path in found if os.path.isdir(path)]


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Drop paths that lie below another one, and paths that are not there."""
    real = {os.path.realpath(path): None for path in paths if os.path.exists(path)}
    return tuple(path for path in real if not any(path.startswith(other + "/") for other in real))


def _sites_below(roots: Iterable[str], stdlib: str) -> Iterator[str]:
    """Site directories that a root would show without being asked to."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for parent in (
        stdlib,
        *(os.path.join(root, sub) for root in roots for sub in (version, "python3")),
    ):
        for name in _SITE_NAMES:
            path = os.path.join(parent, name)
            if os.path.isdir(path) and any(path.startswith(root + "/") for root in roots):
                yield os.path.realpath(path)


def _without(path: str, carved: dict[str, tuple[str, ...]]) -> Iterator[str]:
    if path in carved:
        return
    if not any(hidden.startswith(path + "/") for hidden in carved):
        yield path
        return
    for name in sorted(os.listdir(path)):
        yield from _without(os.path.join(path, name), carved)
