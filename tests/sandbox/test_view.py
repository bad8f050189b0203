# SPDX-License-Identifier: MIT
"""Student code sees the view's policylab and third-party packages, and nothing of the checkout."""

import dataclasses
import os
import tempfile
from pathlib import Path

import pytest

import policylab
from policylab.sandbox import Zygote, layout, process
from tests.sandbox.conftest import Box

CHECKOUT = str(Path(policylab.__file__).resolve().parents[1])


@pytest.fixture(scope="module")
def public():
    """A directory that other users can read."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


@pytest.fixture
def stubbed(view, backend, public, tmp_path):
    """A box whose view holds a stub where the checkout may hold a body."""
    package = tmp_path / "view" / "policylab"
    process.outer.copy_view(str(view), str(package.parent))
    stub = 'def double(x):\n    """Double."""\n    raise NotImplementedError("exercise 1")\n'
    (package / "exercise.py").write_text(stub)
    with Zygote(package.parent, backend=backend, preimport=()) as zygote, zygote.spawn() as worker:
        yield Box(worker)


def test_policylab_is_the_views(stubbed: Box, backend):
    path = stubbed.run("import policylab\nresult = list(policylab.__path__)")
    assert len(path) == 1 and not path[0].startswith(CHECKOUT + os.sep)
    assert backend != "namespaces" or path == ["/view/policylab"]
    source = "import inspect, policylab.exercise as e\nresult = inspect.getsource(e.double)"
    assert "NotImplementedError" in stubbed.run(source)
    source = "import linecache\nresult = linecache.getline(e.__file__, 3).strip()"
    assert stubbed.run(source) == 'raise NotImplementedError("exercise 1")'


def test_nothing_that_is_loaded_points_to_the_checkout(stubbed: Box):
    source = """
import importlib.metadata, sys, policylab.exercise
seen = [repr(finder) for finder in (*sys.meta_path, *sys.path_hooks)] + sys.path + sys.orig_argv
seen += [str(getattr(module, "__file__", "")) for module in sys.modules.values()]
seen += [str(d.read_text("direct_url.json")) for d in importlib.metadata.distributions()]
seen += [str(f) for d in importlib.metadata.distributions() for f in (d.files or ())]
seen += list(sys.path_importer_cache) + [sys.prefix, sys.exec_prefix, sys.executable]
result = seen
"""
    seen = stubbed.run(source)
    assert len(seen) > 100
    for site in layout.current_layout().sites:  # an environment may lie within the checkout
        seen = [text.replace(site, "") for text in seen]
    assert [text for text in seen if CHECKOUT + os.sep in text] == []
    assert not any("__editable__" in text for text in seen)


def test_the_grader_and_the_editable_finder_cannot_be_imported(stubbed: Box):
    names = ["autograder", "tests"]
    names += [name for site in layout.current_layout().sites for name in os.listdir(site)]
    names = [n.removesuffix(".py") for n in names if n == "autograder" or "__editable__" in n]
    for name in names:
        source = f"""
import importlib
try:
    importlib.import_module({name!r})
except ImportError:
    result = "refused"
except OSError:
    result = "refused"
"""
        assert stubbed.run(source) == "refused", name


def test_sources_of_the_checkout_cannot_be_read(stubbed: Box):
    for path in (policylab.__file__, process.__file__, os.path.join(CHECKOUT, "pyproject.toml")):
        source = f"try:\n    result = open({path!r}).read()\nexcept OSError:\n    result = None"
        assert stubbed.run(source) is None


def test_third_party_packages_and_their_versions_are_there(stubbed: Box):
    source = """
import importlib.metadata, json, sqlite3, zlib
import msgspec, numpy
result = importlib.metadata.version("numpy"), float(numpy.ones(3) @ numpy.ones(3))
names = [d.metadata["Name"] for d in importlib.metadata.distributions()]
"""
    assert stubbed.run(source) == (__import__("numpy").__version__, 3.0)
    assert None not in stubbed.value("value", t="names")


def installed_site(directory: Path) -> Path:
    """A site-packages with a regular installation of the course, a hook and another package."""
    site = directory / "lib" / "site-packages"
    for name in ("policylab", "autograder", "otherlib"):
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text("secret = 'canary'\n")
    for name in ("policylab-1.0.dist-info", "autograder-1.0.dist-info", "otherlib-2.0.dist-info"):
        (site / name).mkdir()
        (site / name / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name.split('-')[0]}\n"
        )
        (site / name / "direct_url.json").write_text('{"url": "file:///canary"}')
    (site / "hook.pth").write_text("import sys; sys.canary = 1\n")
    (site / "__editable__.policylab-1.0.pth").write_text("/canary\n")
    (site / "__editable___policylab_1_0_finder.py").write_text(
        "MAPPING = {'policylab': '/canary'}\n"
    )
    (site / "sitecustomize.py").write_text("import sys; sys.canary = 1\n")
    (site / "autograder.egg-link").write_text("/canary\n")
    (site / "policylabel.py").write_text("x = 1\n")
    return site


def test_of_a_site_directory_only_other_packages_are_shown(tmp_path):
    site = installed_site(tmp_path)
    shown = {os.path.relpath(path, site) for path in layout.third_party_entries(str(site))}
    metadata = {f"{name}-1.0.dist-info/METADATA" for name in ("policylab", "autograder")}
    assert shown == {"otherlib", "otherlib-2.0.dist-info", "policylabel.py"} | metadata


def test_a_regular_installation_of_the_course_stays_unseen(view, backend, public, monkeypatch):
    site = installed_site(public)
    plain = layout.current_layout()
    carved = {**plain.carved, str(site): tuple(layout.third_party_entries(str(site)))}
    changed = dataclasses.replace(plain, carved=carved, sites=(str(site), *plain.sites))
    monkeypatch.setattr(process, "current_layout", lambda: changed)
    with Zygote(view, backend=backend, preimport=()) as zygote, zygote.spawn() as worker:
        box = Box(worker)
        assert box.run("import otherlib\nresult = otherlib.secret") == "canary"
        assert box.run("import policylab\nresult = hasattr(policylab, 'secret')") is False
        assert box.run("import sys\nresult = hasattr(sys, 'canary')") is False
        for name in (
            "policylab/__init__.py",
            "policylab-1.0.dist-info/direct_url.json",
            "hook.pth",
        ):
            path = str(site / name)
            source = f"try:\n    result = open({path!r}).read()\nexcept OSError:\n    result = None"
            assert box.run(source) is None
        assert box.load("import autograder")[0]["type"] in (
            "ModuleNotFoundError",
            "PermissionError",
        )


def test_the_layout_covers_what_an_import_needs_and_carves_sites_out():
    plain = layout.current_layout()
    readable = list(plain.readable())
    assert all(os.path.isabs(path) and os.path.exists(path) for path in readable)
    assert not any(os.path.basename(path) in ("autograder", "policylab") for path in readable)
    for site in plain.sites:
        assert site in plain.carved and site not in readable
    assert not any(CHECKOUT == path or CHECKOUT.startswith(path + os.sep) for path in readable)


def test_a_path_only_root_can_read_is_found(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    for path in (tmp_path, *tmp_path.parents[:-1]):
        if os.stat(path).st_mode & 0o5 != 0o5:
            assert layout.unreadable_by_others([str(inner)]) is not None
            break
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        os.mkdir(os.path.join(directory, "locked"), 0o700)
        assert layout.unreadable_by_others([directory]) is None
        locked = os.path.join(directory, "locked")
        assert layout.unreadable_by_others([directory, locked]) == os.path.realpath(locked)


@pytest.mark.parametrize("name, ours", [
    ("policylab", True), ("autograder", True), ("policylab-0.1.0.dist-info", True),
    ("policylab.egg-info", True), ("__editable___policylab_0_1_0_finder.py", True),
    ("_policylab.pth", True), ("Policylab-1.dist-info", True), ("policylabel", False),
    ("autograders", False), ("numpy", False), ("torch-2.6.dist-info", False),
])  # fmt: skip
def test_what_is_ours_is_known_by_its_name(tmp_path, name, ours):
    (tmp_path / name).mkdir()
    assert (list(layout.third_party_entries(str(tmp_path))) == []) is ours


def test_in_namespaces_what_only_root_can_reach_becomes_readable(
    view, backend, tmp_path, monkeypatch
):
    """An environment below root's home works, though the uid that runs it could not go there."""
    if backend != "namespaces":
        pytest.skip("Landlock refuses it as root, see test_zygote")
    (tmp_path / "home").mkdir()
    site = installed_site(tmp_path / "home")
    (tmp_path / "home").chmod(0o700)
    plain = layout.current_layout()
    carved = {**plain.carved, str(site): tuple(layout.third_party_entries(str(site)))}
    changed = dataclasses.replace(plain, carved=carved, sites=(*plain.sites, str(site)))
    monkeypatch.setattr(process, "current_layout", lambda: changed)
    with Zygote(view, backend=backend, preimport=()) as zygote, zygote.spawn() as worker:
        assert Box(worker).run("import otherlib\nresult = otherlib.secret") == "canary"
