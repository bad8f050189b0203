# SPDX-License-Identifier: MIT
"""The same facts hold for an ordinary user, and as root nothing of the student's runs as root."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from policylab.sandbox import jail, layout
from tests.sandbox.conftest import Box, skip_or_fail

ORDINARY = 54_321
CHECKOUT = Path(__file__).parents[2]
FILES = ("test_jail.py", "test_limits.py", "test_forks.py", "test_backends.py", "test_view.py")


def test_the_jail_holds_for_an_ordinary_user():
    if os.getuid() != 0:
        pytest.skip("this already is an ordinary user")
    needed = [sys.executable, str(CHECKOUT), *layout.current_layout().roots, *sys.path[1:]]
    needed = [path for path in needed if os.path.exists(path)]
    if (path := layout.unreadable_by_others(needed)) is not None:
        skip_or_fail(f"ordinary users cannot read {path}")
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o755)
        os.chown(home, ORDINARY, ORDINARY)
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp"]
            + [f"{home}/tmp", *(str(Path(__file__).with_name(name)) for name in FILES)],
            cwd=CHECKOUT,
            env={**os.environ, "HOME": home, "TMPDIR": home, "PYTHONDONTWRITEBYTECODE": "1"},
            user=ORDINARY,
            group=ORDINARY,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=900,
        )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]


def test_as_root_a_worker_runs_under_a_uid_of_nobody(zygote):
    if os.getuid() != 0:
        pytest.skip("an ordinary user has no other uid to give")
    outside = zygote.info["uid"]
    with zygote.spawn() as worker:
        box = Box(worker)
        inside = box.run("import os\nresult = os.getuid(), os.geteuid(), os.getgid()")
        assert 0 not in inside
        fault = box.load("os.setuid(0)")[0]
        assert fault["type"] == "PermissionError"
    assert outside not in (0, 65_534)


def test_a_throwaway_uid_is_mapped_and_belongs_to_no_account(monkeypatch, tmp_path):
    seen = {jail.throwaway_id() for _ in range(20)}
    assert os.getuid() != 0 or len(seen) > 15
    for maps, expected in (
        (["0 0 4294967295"], lambda uid: 0x7100_0000 <= uid < 0x7FF0_0000),
        (["0 100000 65536"], lambda uid: 32_768 <= uid < 65_534),
        (["0 1000 1", "1 100000 65536"], lambda uid: 32_000 < uid < 65_537),
        (["0 1000 1"], lambda uid: uid is None),
    ):
        monkeypatch.setattr(jail, "_id_map", lambda name, maps=maps: jail.parse_id_map(maps))
        assert expected(jail.throwaway_id()), maps
