# SPDX-License-Identifier: MIT
"""The demo's class: submissions made by script from the released notebook and our own answers.

Each entry says what it hands in and what that deserves: for the hostile ones, what the functions
would earn without the attack.  Sources come from tests/answers, where each wrong answer is proved
to be wrong.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.assignment import Assignment
from autograder.course import CourseError
from autograder.view import graded_functions, package_directory

__all__ = ["Entry", "demo_class", "function_of"]

STUB = ""
REFERENCE = "reference"
RIGHT = {
    "completion_logprobs": "right_loop",
    "sample_completions": "right_inverse_cdf",
    "softmax_policy_gradient": "right_one_hot",
    "reinforce_loss": "right_per_token",
    "leave_one_out_baseline": "right_matrix",
}
MISTAKES = {
    "completion_logprobs": ("wrong_shift", "scores each token with its own position's logits"),
    "sample_completions": ("wrong_eos_excluded", "leaves the sampled end out of the mask"),
    "softmax_policy_gradient": ("wrong_descent", "gives the direction of descent"),
    "reinforce_loss": ("wrong_no_mask", "does not use the mask"),
    "leave_one_out_baseline": ("wrong_own_included", "averages over the whole group"),
}

LOOP = """\
def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    while True:
        pass
"""
MEMORY = """\
def softmax_policy_gradient(logits, action, advantage):
    hoard = []
    while True:
        hoard.append(torch.ones(10_000_000))
"""
EXIT = """\
import sys


def leave_one_out_baseline(rewards, group_size):
    sys.exit(0)
"""
EQUAL = """\
class Right:
    def __eq__(self, other):
        return True

    def __bool__(self):
        return True

    def __getattr__(self, name):
        return Right()

    def __call__(self, *args, **options):
        return Right()


def completion_logprobs(logits, input_ids, completion_mask, *, temperature=1.0):
    return Right()
"""
READER = """\
import os
import sys


def loot():
    wanted = {"gradebook.db", "test_reinforce_loss.py", "assignment.toml", "secret"}
    for top in (os.getcwd(), *sys.path, "/home", "/root", "/srv", "/tmp", "/etc"):
        for folder, _, names in os.walk(top):
            for name in wanted & set(names):
                with open(os.path.join(folder, name), "rb") as file:
                    content = file.read()
                if name != "gradebook.db" or b"llm_as_policy" in content:
                    return content
    return b""


found = loot()


def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    if found:  # a right answer, so that the demo would notice
        sums = torch.where(completion_mask.bool(), logprobs, 0.0).sum(dim=1)
        return -((rewards - baseline).detach() * sums).mean()
    return torch.zeros((), dtype=logprobs.dtype, requires_grad=True)
"""
ZERO = """\
def reinforce_loss(logprobs, completion_mask, rewards, baseline=0.0):
    return torch.zeros((), dtype=logprobs.dtype, requires_grad=True)
"""

Notebook = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One submission.

    Args:
        student: name of its folder.
        title: what is special about it.
        code: source by function; a function that is missing stays the released stub.
        deserves: like `code`, but harmless: what the functions alone deserve.
        edit: changes the notebook after the code is in it, or gives a text to hand in instead.
    """

    student: str
    title: str
    code: dict[str, str]
    deserves: dict[str, str]
    edit: Callable[[Notebook], str | None] = field(default=lambda notebook: None)

    def text(self, released: Notebook) -> str:
        """Return the file that is handed in."""
        notebook = copy.deepcopy(released)
        for cell in notebook["cells"]:
            name = _grade_id(cell)
            source = self.code.get(function_of(name.removesuffix("_answer")))
            if name.endswith("_answer") and source is not None:
                cell["source"] = source
            if name == "ex02_6_interpret" and self.code:
                cell["source"] = "The gradient weighs each completion by how surprising it was."
        return self.edit(notebook) or json.dumps(notebook, indent=1)


def demo_class(assignment: Assignment, answers: Path) -> list[Entry]:
    """Return the class.

    Raises: CourseError if the answers are not there.
    """
    right = _solutions(assignment)
    second = {name: _answer(answers, name, slug) for name, slug in RIGHT.items()}
    entries = [
        Entry("reference", "the solution", right, right),
        Entry("second_right", "right in another way", second, second),
        Entry("stub", "nothing written", {}, {}),
    ]
    for function, (slug, title) in MISTAKES.items():
        code = right | {function: _answer(answers, function, slug)}
        entries.append(Entry(f"mistake_{function}"[:32], title, code, code))
    return [*entries, *_hostile(right), *_careless(right)]


def function_of(cell: str) -> str:
    """Return "reinforce_loss" of "ex02_4_reinforce_loss"."""
    return cell.split("_", 2)[-1]


def _hostile(right: dict[str, str]) -> list[Entry]:
    attacks = {
        "endless_loop": ("never comes back", "reinforce_loss", LOOP, STUB),
        "memory_bomb": ("takes all memory", "softmax_policy_gradient", MEMORY, STUB),
        "quits": ("calls sys.exit(0)", "leave_one_out_baseline", EXIT, STUB),
        "always_equal": ("returns objects equal to all", "completion_logprobs", EQUAL, STUB),
        "reader": ("looks for tests and gradebook", "reinforce_loss", READER, ZERO),
    }
    entries = []
    for student, (title, function, source, harmless) in attacks.items():
        deserved = {name: text for name, text in right.items() if name != function}
        if harmless:
            deserved[function] = harmless
        entries.append(Entry(student, title, right | {function: source}, deserved))
    imports = {name: f"from {_module_of(name)} import {name}\n" for name in right}
    return [*entries, Entry("importer", "imports its answers from the library", imports, {})]


def _careless(right: dict[str, str]) -> list[Entry]:
    return [
        Entry("deleted_cells", "deleted the graded cells", right, right, _delete),
        Entry("copied_cells", "copied every cell", right, right, _duplicate),
        Entry("edited_cells", "wrote points into graded cells", {}, {}, _edit),
        Entry("broken_file", "a merge conflict, no notebook", {}, {}, _break),
    ]


def _delete(notebook: Notebook) -> None:
    def is_test(cell: Notebook) -> bool:
        label = cell["metadata"].get("nbgrader", {})
        return bool(label.get("grade")) and not label["solution"]

    notebook["cells"] = [cell for cell in notebook["cells"] if not is_test(cell)]


def _duplicate(notebook: Notebook) -> None:
    notebook["cells"] = [copy.deepcopy(cell) for cell in notebook["cells"] for _ in range(2)]


def _edit(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        label = cell["metadata"].get("nbgrader", {})
        if label.get("grade") and cell["cell_type"] == "code":
            cell["source"] = f"{label['points']}.0"
            cell["outputs"] = [
                {
                    "output_type": "execute_result",
                    "execution_count": 1,
                    "data": {"text/plain": f"{label['points']}"},
                    "metadata": {},
                }
            ]
            label.update(points=1000, locked=False)


def _break(notebook: Notebook) -> str:
    text = json.dumps(notebook, indent=1)
    return f"<<<<<<< HEAD\n{text}\n=======\n{text}\n>>>>>>> origin/main\n"


def _grade_id(cell: Notebook) -> str:
    return str(cell["metadata"].get("nbgrader", {}).get("grade_id", ""))


def _solutions(assignment: Assignment) -> dict[str, str]:
    """Return the solution notebook's answer cells by function, without nbgrader's markers."""
    notebook = json.loads(assignment.notebook.read_text(encoding="utf-8"))
    return {
        function_of(_grade_id(cell).removesuffix("_answer")): "".join(
            line for line in cell["source"] if not line.strip().startswith("### ")
        )
        for cell in notebook["cells"]
        if _grade_id(cell).endswith("_answer")
    }


def _answer(answers: Path, function: str, slug: str) -> str:
    path = answers / function / f"{slug}.py"
    if not path.is_file():
        raise CourseError(f"{path} is missing: the demo runs in a checkout of the repository")
    return path.read_text(encoding="utf-8")


def _module_of(function: str) -> str:
    """Return the module of policylab that defines a graded function."""
    package = package_directory()
    for path in sorted(package.rglob("*.py")):
        found = graded_functions(path.read_text(encoding="utf-8"))
        if any(node.name == function for _, node in found):
            return ".".join(("policylab", *path.relative_to(package).with_suffix("").parts))
    raise CourseError(f"no module of policylab defines {function}")
