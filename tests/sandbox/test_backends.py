# SPDX-License-Identifier: MIT
"""Backends are tried, never guessed; attacks fail in a jail and succeed without one."""

import json
import subprocess
import sys
import time

import pytest

from policylab.sandbox import NoSafeBackend, ProbeResult, backends, choose_backend, probe, trials
from policylab.sandbox.attacks import ATTACKS

ATTACKS_OF_ROOT = ("trace_process",)  # yama may keep an ordinary user from tracing a stranger


@pytest.fixture
def pretend(monkeypatch):
    """Make the probe answer as told, and leave no override in the environment."""
    monkeypatch.delenv(backends.VARIABLE, raising=False)

    def set_results(**results):
        monkeypatch.setattr(backends, "probe", lambda name: results[name])

    return set_results


YES = ProbeResult(True)
NO = ProbeResult(False, "it is switched off", "switch it on")


def test_the_strongest_backend_that_works_is_taken(pretend):
    pretend(namespaces=YES, landlock=YES)
    assert choose_backend() == "namespaces"
    pretend(namespaces=NO, landlock=YES)
    assert choose_backend() == "landlock"


def test_without_any_backend_the_refusal_says_what_helps(pretend):
    pretend(namespaces=NO, landlock=NO)
    with pytest.raises(NoSafeBackend, match="(?s)namespaces: it is.*switch it on.*landlock: it is"):
        choose_backend()


def test_no_weaker_backend_replaces_the_one_asked_for(pretend, monkeypatch):
    pretend(namespaces=NO, landlock=YES)
    with pytest.raises(NoSafeBackend):
        choose_backend("namespaces")
    monkeypatch.setenv(backends.VARIABLE, "namespaces")
    with pytest.raises(NoSafeBackend):
        choose_backend()
    with pytest.raises(NoSafeBackend):
        choose_backend("landlock")
    pretend(namespaces=YES, landlock=YES)
    monkeypatch.setenv(backends.VARIABLE, "landlock")
    assert choose_backend() == "landlock" and choose_backend("namespaces") == "namespaces"


@pytest.mark.parametrize("name", ["none", "Landlock", "docker"])
def test_an_unknown_backend_is_refused(pretend, monkeypatch, name):
    pretend(namespaces=YES, landlock=YES)
    for arrange in (
        lambda: choose_backend(name),
        lambda: monkeypatch.setenv(backends.VARIABLE, name),
    ):
        with pytest.raises(NoSafeBackend, match="choose namespaces or landlock"):
            arrange()
            choose_backend()
    with pytest.raises(ValueError):
        probe(name)


def test_a_failing_jail_is_a_reason_and_not_an_exception(monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(1, "unshare NEWUSER: Operation not permitted")

    monkeypatch.setattr(backends, "Zygote", refuse)
    for name in backends.BACKENDS:
        result = backends._probe.__wrapped__(name, 0)
        assert not result.ok and "not permitted" in result.reason and result.fix


def test_a_switched_off_kernel_feature_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(backends.landlock, "abi", lambda: 0)
    assert "Linux 5.13" in backends._fix("landlock")
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "max_user_namespaces").write_text("0\n")
    monkeypatch.setattr(backends, "_PROC_SYS", tmp_path)
    assert "sysctl user.max_user_namespaces=" in backends._fix("namespaces")


def test_a_real_probe_finds_this_backend(backend):
    assert probe(backend) == YES


def test_every_attack_is_blocked(backend):
    results = trials.run_probe_attacks(backend)
    assert [result.name for result in results] == [attack.__name__ for attack in ATTACKS]
    assert [result for result in results if not result.blocked] == []
    assert all(result.title.endswith(".") for result in results)


RUNNER = """
import json, sys
from policylab.sandbox import attacks
try:
    print(json.dumps(getattr(attacks, sys.argv[1])(json.loads(sys.argv[2]))))
except Exception as error:
    print(json.dumps(None), error, file=sys.stderr)
"""


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_every_attack_succeeds_without_a_jail(attack):
    """The negative control: blocked attacks are real ones."""
    name = attack.__name__
    with trials.attack_targets() as targets:
        targets["variables"] = ["POLICYLAB_CANARY"]
        run = subprocess.run(
            [sys.executable, "-c", RUNNER, name, json.dumps(targets)],
            capture_output=True,
            text=True,
            timeout=60,
            cwd="/",
            env={"POLICYLAB_CANARY": "canary", "PATH": "/usr/bin"},
        )
    if name == "find_checkout" and run.stdout.strip() == "null":
        pytest.skip("the course is not installed as an editable package")
    if name in ATTACKS_OF_ROOT and not run.stdout.strip().startswith('"'):
        pytest.skip("this kernel lets only root trace")
    assert isinstance(json.loads(run.stdout), str), run.stderr


def test_no_jail_is_had_by_its_name_only(monkeypatch):
    assert backends.UNSAFE not in backends.BACKENDS
    monkeypatch.setenv(backends.VARIABLE, backends.UNSAFE)
    with pytest.raises(NoSafeBackend, match=backends.UNSAFE):
        choose_backend()
    monkeypatch.delenv(backends.VARIABLE)
    with pytest.raises(NoSafeBackend, match=backends.UNSAFE):
        choose_backend(backends.UNSAFE)


def test_without_a_jail_student_code_runs_and_sees_the_host(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("seen")
    with backends.bare_zygote(backends.UNSAFE) as zygote, zygote.spawn() as worker:
        deadline = time.monotonic() + 30
        cells = [["read", f"text = open({str(secret)!r}).read()"]]
        backends.request(worker, {"op": "load", "id": 1, "cells": cells}, deadline)
        assert backends.request(worker, {"op": "value", "id": 2, "t": "text"}, deadline) == "seen"
