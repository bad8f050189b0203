# SPDX-License-Identifier: MIT
"""What a check sees of a jailed submission, in each sandbox that this machine has."""

import pytest
import torch

from autograder.assignment import GradingLimits
from autograder.checking import assert_bool, assert_tensor, raises
from autograder.errors import (
    OpaqueValueError,
    StudentCrashed,
    StudentError,
    StudentMemory,
    StudentTimeout,
)
from policylab.sandbox import SandboxError

HONEST = """\
import dataclasses, random
import torch

count = 0
CONSTANT = [1, 2]

def scale(x, factor):
    return x * factor

def pair(x):
    return x.exp(), {"double": 2 * x, "plain": x.detach()}

def cube(x):
    return (x ** 3).sum()

def echo(x):
    return x

def add_in_place(x, y):
    x += y
    return None

def tick():
    global count
    count += 1
    return count

def best_of(policy, score, n):
    answers = [policy("q") for _ in range(n)]
    return max(answers, key=score)

def draw(generator):
    return torch.randn(3, generator=generator), torch.randn(2), random.random()

def swallow(callback):
    try:
        callback()
    except BaseException:
        pass
    return True

def fail(x):
    message = "an input: %s" % x
    raise KeyError(message)

@dataclasses.dataclass
class Verdict:
    ok: bool

def verdict():
    return Verdict(True)

class Linear(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(width, 1, bias=False)
    def forward(self, x):
        return self.layer(x).squeeze(-1)

def stream():
    n = 0
    while True:
        yield n
        n += 1

# names that the control side has, too
def call(x):
    return "mine"

def seed():
    return "mine, too"
"""


@pytest.fixture
def honest(load):
    process = load(HONEST)
    with process.check(5):
        yield process


def test_values_and_tensors_cross(honest):
    x = torch.tensor([1.0, 2.0])
    assert_tensor(honest.student.scale(x, 3.0), 3 * x)
    assert honest.student.scale("ab", 2) == "abab"
    assert honest.value("CONSTANT") == [1, 2]
    assert honest.student.verdict().ok is True
    assert honest.has("tick") and not honest.has("tock")


def test_student_functions_never_hide_the_control_side(honest):
    assert honest.student.call(1) == "mine" and honest.student.seed() == "mine, too"
    assert honest.call("call", 1) == "mine"
    with pytest.raises(AttributeError):
        _ = honest.student._private


def test_backward_fills_leaves_through_the_boundary(honest):
    # d(sum of x³)/dx = 3x²
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = honest.student.cube(x)
    loss.backward()
    assert_tensor(x.grad, torch.tensor([3.0, 12.0]))
    assert loss.ndim == 0 and loss.requires_grad


def test_gradients_flow_through_nested_outputs_and_an_echo(honest):
    x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    exponential, rest = honest.student.pair(x)
    assert not rest["plain"].requires_grad
    (3 * exponential + rest["double"]).sum().backward()
    torch.testing.assert_close(x.grad, 3 * x.detach().exp() + 2)
    (grad,) = torch.autograd.grad(honest.student.echo(x).sum(), x)
    assert_tensor(grad, torch.ones(1, dtype=torch.float64))


def test_gradcheck_measures_finite_differences_here(honest):
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(honest.student.cube, x)


def test_second_order_gradients_raise(honest):
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="create_graph"):
        torch.autograd.grad(honest.student.cube(x), x, create_graph=True)


def test_modules_by_handle_train_there_and_here(honest):
    model = honest.student.Linear(3)
    x = torch.tensor([[1.0, 2.0, 3.0]])
    model(x).sum().backward()
    (weight,) = honest.parameters(model).values()
    assert_tensor(weight.grad, x)  # d(w·x)/dw = x
    own = {"layer.weight": torch.zeros(1, 3, requires_grad=True)}
    honest.functional_call(model, own, x).sum().backward()
    assert_tensor(own["layer.weight"].grad, x)


def test_callbacks_run_here_and_are_counted_here(honest):
    prompts = []

    def policy(prompt):
        prompts.append(prompt)
        return f"answer {len(prompts)}"

    best = honest.student.best_of(policy, lambda text: float(text == "answer 2"), 4)
    assert best == "answer 2" and prompts == ["q"] * 4


def test_a_callback_may_call_the_student_again(honest):
    assert honest.student.best_of(lambda _: honest.student.tick(), lambda n: n, 3) == 3


def test_of_a_callbacks_error_only_the_type_crosses(honest):
    def policy(prompt):
        raise LookupError("the expected value is 7")

    with pytest.raises(StudentError) as caught:
        honest.student.best_of(policy, len, 1)
    assert "7" not in str(caught.value) and "LookupError" in caught.value.message


def test_an_assertion_in_a_callback_fails_the_check_whatever_hides_it(honest):
    def policy():
        raise AssertionError("ids of the wrong shape")

    with pytest.raises(AssertionError, match="wrong shape"):
        honest.student.swallow(policy)
    assert honest.student.tick() == 1  # the connection is still in step


def test_what_cannot_be_sent_is_the_checks_fault(honest):
    with pytest.raises(TypeError, match="cannot be sent"):
        honest.student.echo(object())
    assert honest.student.swallow(object) is True


def test_in_place_changes_are_seen_by_call_mutating_only(honest):
    x, y = torch.zeros(2), torch.ones(2)
    assert honest.student.add_in_place(x, y) is None
    assert_tensor(x, torch.zeros(2))
    result, (x_after, y_after) = honest.call_mutating("add_in_place", x, y)
    assert result is None
    assert_tensor(x_after, torch.ones(2))
    assert_tensor(y_after, y)


def test_generators_cross_and_the_global_ones_can_be_seeded(honest):
    honest.seed(3)
    first = honest.student.draw(torch.Generator().manual_seed(1))
    honest.seed(3)
    second = honest.student.draw(torch.Generator().manual_seed(1))
    assert_tensor(first[0], torch.randn(3, generator=torch.Generator().manual_seed(1)))
    assert torch.equal(first[1], second[1]) and first[2] == second[2]


def test_an_error_names_the_students_own_line(honest):
    with pytest.raises(StudentError) as caught:
        honest.student.fail("hidden")
    assert caught.value.type == "KeyError"
    assert caught.value.frames[-1][::2] == ("cell0", "raise KeyError(message)")
    with raises("KeyError"):
        honest.student.fail(1)
    with pytest.raises(StudentError), raises("ValueError"):
        honest.student.fail(1)
    with pytest.raises(StudentError, match="name 'nothing' is not defined"):
        honest.student.nothing()


def test_an_endless_iterator_is_cut_or_runs_out_of_time(load):
    process = load(HONEST)
    with process.check(1.0):
        stream = process.student.stream()
        assert stream.take(3) == [0, 1, 2]
        with pytest.raises(StudentTimeout):
            for _ in stream:
                pass


def test_each_check_gets_the_loaded_state_anew(load):
    process = load(HONEST)
    for fresh in (False, False, True, False):
        with process.check(5, fresh=fresh):
            assert process.student.tick() == 1 and process.student.tick() == 2


def test_output_is_kept_and_cleaned(load):
    process = load("print('\\x1b[31mred\\u202e'); print('two')")
    with process.check(5):
        assert process.stdout() == "\ufffdred\ufffd\ntwo\n"


# ---- hostile and unlucky submissions

OPAQUE = """\
class Always:
    def __eq__(self, other): return True
    def __bool__(self): return True
    def __len__(self): return 3
    def __float__(self): return 1.0
    __hash__ = None

def answer(*_):
    return Always()
"""


def test_objects_that_equal_everything_have_no_truth_here(load):
    process = load(OPAQUE)
    with process.check(5):
        answer = process.student.answer()
        attempts = [
            lambda: bool(answer),
            lambda: answer == 1,
            lambda: answer != 1,
            lambda: answer > 1,
            lambda: len(answer),
            lambda: float(answer),
            lambda: answer + 1,
            lambda: torch.equal(answer, torch.ones(1)),
            lambda: torch.allclose(torch.ones(1), answer),
            lambda: assert_bool(answer, True),
            lambda: assert_tensor(answer, torch.ones(1)),
            lambda: bool(process.student.answer == 1),
        ]
        for attempt in attempts:
            with pytest.raises(AssertionError):
                attempt()
        assert issubclass(OpaqueValueError, AssertionError)


def test_subclasses_are_reduced_to_the_plain_type(load):
    process = load(
        "import torch\n"
        "class Liar(torch.Tensor):\n"
        "    def __eq__(self, other): return True\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, *a, **k): return True\n"
        "class Truth(int):\n"
        "    def __eq__(self, other): return True\n"
        "    __hash__ = None\n"
        "def tensor(): return torch.zeros(2).as_subclass(Liar)\n"
        "def number(): return Truth(3)\n"
    )
    with process.check(5):
        try:
            value = process.student.tensor()
        except StudentError:
            value = None  # its own methods spoil even the encoding: no answer, no points
        assert value is None or type(value) is torch.Tensor
        number = process.student.number()
        assert type(number) is int and number != 4


def test_nan_is_a_value_that_no_strict_assertion_accepts(load):
    process = load("import torch\ndef f(): return torch.full((2,), float('nan'))")
    with process.check(5), pytest.raises(AssertionError, match="finite"):
        assert_tensor(process.student.f(), torch.zeros(2))


ENDINGS = {
    "loop": ("def f():\n    while True: pass", StudentTimeout),
    "sleep": ("import time\ndef f(): time.sleep(60)", StudentTimeout),
    "exit": ("import os\ndef f(): os._exit(0)", StudentCrashed),
    "setup code": ("import os\ndef f(): os._exit(71)", StudentCrashed),
    "signal": ("import os\ndef f(): os.kill(os.getpid(), 11)", StudentCrashed),
    "system exit": ("import sys\ndef f(): sys.exit(0)", StudentError),
    "memory": ("def f():\n    x = []\n    while True: x.append(bytes(1 << 24))", StudentMemory),
    "tensor": ("import torch\ndef f(): return torch.zeros(1 << 34)", StudentMemory),
    "flood": ("def f():\n    while True: print('x' * 100000)", StudentCrashed),
    "oversized": ("import torch\ndef f(): return torch.zeros(1 << 25)", StudentError),
    "deep": (
        "def f():\n    x = []\n    for _ in range(500): x = [x]\n    return x",
        StudentError,
    ),
    "raw bytes": ("import os\ndef f(): os.write(3, b'\\xff' * 64)", StudentCrashed),
    "callbacks": ("def f(g=None):\n    while True: g()", StudentTimeout),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_however_a_call_ends_the_next_check_is_served(load, ending):
    source, failure = ENDINGS[ending]
    process = load(f"{source}\ndef fine(): return 7")
    with process.check(1.0), pytest.raises(failure):
        process.student.f(*([lambda: None] if ending == "callbacks" else []))
    with process.check(5.0):
        assert process.student.fine() == 7


def test_after_a_failure_the_same_check_gets_the_same_failure(load):
    process = load("import os\ndef f(): os._exit(0)\ndef fine(): return 7")
    with process.check(5.0):
        for name in ("f", "fine"):
            with pytest.raises(StudentCrashed):
                process.call(name)


LOUD = """\
import torch

def ask_too_much(policy):
    try:
        policy(torch.zeros(20_000_000, dtype=torch.uint8))
    except Exception as error:
        return str(error)

def fill(policy):
    chunk = [torch.zeros(60_000_000, dtype=torch.uint8)]
    while True:
        policy(chunk)
"""


def test_an_answer_too_large_for_a_callback_is_the_students_error(load):
    process = load(LOUD)
    with process.check(5.0):
        assert process.student.ask_too_much(lambda ids: ids.float()) == "ValueError"


def test_callbacks_take_only_so_much(load, monkeypatch):
    monkeypatch.setattr("autograder.callbacks.MAX_BYTES", 200_000_000)
    process, kept = load(LOUD), []
    with process.check(10.0), pytest.raises(StudentCrashed, match="too much"):
        process.student.fill(kept.append)
    assert len(kept) == 3


def test_what_does_not_fit_into_our_memory_is_the_students_fault(load):
    process = load(LOUD)

    def full(deadline):
        raise MemoryError

    with process.check(5.0):
        process._connection().worker.recv = full  # as when what comes in does not fit any more
        with pytest.raises(StudentMemory):
            process.student.ask_too_much(len)


FORGED = """\
import struct, socket
import msgspec

def f():
    meta = msgspec.msgpack.encode({"id": 10_000, "v": 7})
    socket.socket(fileno=3).send(struct.pack("<II", len(meta), 0) + meta)
    return 8
"""


def test_a_reply_written_ahead_breaks_the_protocol(load):
    process = load(FORGED)
    with process.check(2.0), pytest.raises(StudentCrashed, match="another request"):
        process.student.f()


@pytest.mark.parametrize(
    "patch",
    [
        "lambda self, request, decoder: [torch.zeros(7)]",
        "lambda self, request, decoder: [torch.zeros(3, dtype=torch.float64)]",
        "lambda self, request, decoder: []",
        "lambda self, request, decoder: [1.0]",
        "lambda self, request, decoder: None",
    ],
)
def test_gradients_that_do_not_fit_break_the_protocol(load, patch):
    process = load(
        "import torch\nfrom policylab.sandbox.worker import Server\n"
        f"Server.op_vjp = {patch}\ndef f(x): return x.sum()"
    )
    with process.check(5.0):
        x = torch.ones(3, requires_grad=True)
        loss = process.student.f(x)
        with pytest.raises(StudentCrashed):
            loss.backward()


def test_patches_of_torch_there_change_nothing_here(load):
    process = load(
        "import torch\n"
        "torch.equal = torch.allclose = lambda *a, **k: True\n"
        "torch.testing.assert_close = lambda *a, **k: None\n"
        "torch.Tensor.__eq__ = lambda *a: torch.tensor(True)\n"
        "def f(): return torch.zeros(2)"
    )
    with process.check(5.0), pytest.raises(AssertionError):
        assert_tensor(process.student.f(), torch.ones(2))


def test_a_cell_that_raises_does_not_stop_the_next(load):
    process = load("x = 1\nx.nothing", "import sys\nsys.exit(0)", "def f(:", "def f(): return 1")
    with process.check(5):
        assert process.student.f() == 1
    found = [(cell, error.type) for cell, error in process.load_errors]
    assert found == [
        ("cell0", "AttributeError"),
        ("cell1", "SystemExit"),
        ("cell2", "SyntaxError"),
    ]
    assert process.load_errors[0][1].frames[-1] == ("cell0", 2, "x.nothing")


def test_a_source_that_is_no_text_is_an_error_of_its_cell(load):
    process = load("x = '\ud800'", "x = 1\0", "(" * 5000, "def f(): return 1")
    with process.check(5):
        assert process.student.f() == 1
    assert {cell for cell, _ in process.load_errors} == {"cell1", "cell2"}


@pytest.mark.parametrize(
    ("source", "failure"),
    [("while True: pass", StudentTimeout), ("import os\nos._exit(0)", StudentCrashed)],
)
def test_a_notebook_that_does_not_load_is_tried_twice(load, source, failure):
    process = load(source, limits=GradingLimits(load_s=0.5))
    spawned = []
    spawn = process._zygote.spawn
    process._zygote.spawn = lambda limits: spawned.append(1) or spawn(limits)
    try:
        for _ in range(4):
            with pytest.raises(failure), process.check(5):
                pass
    finally:
        del process._zygote.spawn
    assert len(spawned) == 2


def test_a_worker_that_does_not_start_is_no_fault_of_the_students(load, monkeypatch):
    process = load("def f(): return 1")
    spawn = process._zygote.spawn

    def killed_at_once(limits):
        worker = spawn(limits)
        process._zygote.kill_all()  # as the kernel does where memory is short
        return worker

    monkeypatch.setattr(process._zygote, "spawn", killed_at_once)
    with pytest.raises(SandboxError, match="did not start"), process.check(5.0):
        process.student.f()
    monkeypatch.undo()
    with process.check(5.0):
        assert process.student.f() == 1


def test_the_submissions_budget_covers_all_checks(load):
    process = load("import time\ndef f(): time.sleep(0.6)", limits=GradingLimits(submission_s=1.0))
    with process.check(5):
        process.student.f()
    with pytest.raises(StudentTimeout), process.check(5):
        process.student.f()
