# SPDX-License-Identifier: MIT
import json

import pytest

from autograder import doctor
from autograder.cli import main
from policylab.sandbox.backends import NoSafeBackend, ProbeResult
from policylab.sandbox.trials import AttackResult


@pytest.fixture
def machine(monkeypatch):
    """Pretend what the sandbox finds out; change the dict to change the machine."""
    state = {
        "attacks": [AttackResult("read_file", "Read a file outside.", True, "")],
        "probe": {"namespaces": ProbeResult(True), "landlock": ProbeResult(True)},
    }

    def choose():
        for name, result in state["probe"].items():
            if result.ok:
                return name
        raise NoSafeBackend("no safe sandbox can be had on this machine")

    monkeypatch.setattr(doctor, "choose_backend", choose)
    monkeypatch.setattr(doctor, "probe", lambda name: state["probe"][name])
    monkeypatch.setattr(doctor, "run_probe_attacks", lambda name: state["attacks"])
    return state


def test_a_machine_with_a_jail_is_safe(machine, tmp_path, capsys):
    assert main(["doctor", "--course-root", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "backend namespaces: in use" in out
    assert "blocked  Read a file outside." in out
    assert "is not a course root" in out  # said, but no danger


def test_an_attack_that_gets_out_is_no_safe_machine(machine, capsys):
    machine["attacks"].append(AttackResult("write", "Write outside.", False, "it got: 1"))
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "GOT OUT  Write outside. (it got: 1)" in out
    assert "Do NOT grade here." in out


def test_no_backend_says_what_helps(machine, capsys):
    bad = ProbeResult(False, "no namespaces", "as root: sysctl x=1")
    machine["probe"] = {"namespaces": bad, "landlock": bad}
    assert main(["doctor", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["is_safe"], report["backend"], report["attacks"]) == (False, "", [])
    assert any("sysctl x=1" in finding["detail"] for finding in report["findings"])


def test_the_weaker_backend_is_called_reduced(machine, capsys):
    machine["probe"]["namespaces"] = ProbeResult(False, "no namespaces", "sysctl")
    assert main(["doctor"]) == 0
    assert "reduced" in capsys.readouterr().out


def test_a_secret_that_others_can_read_is_bad(machine, released_course, capsys):
    secret = released_course.state / "secret"
    secret.write_text("x")
    secret.chmod(0o644)
    assert main(["doctor", "--course-root", str(released_course.root)]) == 1
    assert "chmod 600" in capsys.readouterr().out


def test_a_course_that_other_users_can_read_is_worth_a_look(
    machine, released_course, capsys, monkeypatch
):
    root, closed = released_course.root.resolve(), []
    monkeypatch.setattr(doctor, "_lets_others_in", lambda folder: folder not in closed)
    assert main(["doctor", "--course-root", str(root)]) == 0  # no danger to the grades
    assert "look at  readers: other users of this machine can read" in capsys.readouterr().out
    for folder in (root, root.parent, root.parent.parent):
        closed[:] = [folder]
        assert main(["doctor", "--course-root", str(root)]) == 0
        assert "readers" not in capsys.readouterr().out


@pytest.mark.parametrize(("mode", "is_open"), [(0o755, True), (0o711, True), (0o750, False)])
def test_a_folder_is_open_if_others_may_enter_it(tmp_path, mode, is_open):
    tmp_path.chmod(mode)
    assert doctor._lets_others_in(tmp_path) == is_open


def test_this_machine_holds_against_the_attacks():
    report = doctor.examine()
    if not report.backend:
        pytest.skip("no safe sandbox can be had here")
    assert len(report.attacks) >= 12
    assert [row.name for row in report.attacks if not row.blocked] == []
