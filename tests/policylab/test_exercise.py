# SPDX-License-Identifier: MIT
"""The mark on graded functions, and that their content exists in one place only."""

import ast
from pathlib import Path

import policylab
from policylab import advantages, bandit, logprobs, losses, sampling
from policylab.exercise import exercise

GRADED = {
    "completion_logprobs": logprobs,
    "sample_completions": sampling,
    "softmax_policy_gradient": bandit,
    "reinforce_loss": losses,
    "leave_one_out_baseline": advantages,
}


def functions() -> list[tuple[str, ast.FunctionDef]]:
    """Every function of the teaching library, the sandbox excepted, with its module's path."""
    root = Path(policylab.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        if "sandbox" in path.relative_to(root).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                found.append((path.relative_to(root).as_posix(), node))
    return found


def test_exercise_marks_the_function_and_returns_it_unchanged():
    def function() -> int:
        return 3

    assert exercise("07_grpo")(function) is function
    assert function.__exercise__ == "07_grpo"
    assert function() == 3


def test_graded_functions_carry_the_mark():
    for name, module in GRADED.items():
        assert getattr(module, name).__exercise__ == "02_llm_as_policy"


def test_each_graded_function_is_defined_once_with_the_decorator_in_its_source():
    for name in GRADED:
        definitions = [node for _, node in functions() if node.name == name]
        assert len(definitions) == 1
        assert [ast.unparse(d) for d in definitions[0].decorator_list] == [
            "exercise('02_llm_as_policy')"
        ]


def test_tell_tale_operations_of_the_answers_occur_nowhere_else():
    # A second place would show the answer to whoever reads the library.
    places = {"log_softmax": set(), "gather": set(), "multinomial": set()}
    for _, node in functions():
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                if call.func.attr in places:
                    places[call.func.attr].add(node.name)
    assert places == {
        "log_softmax": {"completion_logprobs"},
        "gather": {"completion_logprobs"},
        "multinomial": {"sample_completions", "sample_arm"},
    }
