# SPDX-License-Identifier: MIT
"""The author's tools refuse what a right answer cannot be; the local process keeps sides apart."""

import math

import pytest
import torch

from autograder.checking import (
    CheckSpec,
    Draw,
    assert_bool,
    assert_float,
    assert_gradient,
    assert_tensor,
    check,
    check_id,
    raises,
)
from autograder.errors import OpaqueValueError, StudentCrashed, StudentError, StudentMemory
from autograder.local import LocalProcess

ANSWER = """
import random
import torch

class Sub(torch.Tensor):
    def __eq__(self, other):
        return True

class Equal:
    def __eq__(self, other):
        return True

class Big(float):
    def __sub__(self, other):
        return 0.0

def square(x): return x ** 2
def subclass(x): return x.as_subclass(Sub)
def equal(x): return Equal()
def big(x): return Big(x)
def fails(x):
    raise ValueError("no")
def scribble(x):
    x += 1
    return x.sum()
def pair(x): return {"a": (x * 2, 3), "b": [x.long()]}
def ask(f, x): return f(x) + 1
def draw(generator): return torch.rand((), generator=generator)
def luck(): return torch.rand(()).item() + random.random()
def bad_backward(x):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x): return x.sum()
        @staticmethod
        def backward(ctx, g): raise KeyError("backward")
    return F.apply(x)
def leave(): raise SystemExit(0)
def hog(): raise MemoryError
def speak(): print("hello")
"""


@pytest.fixture
def process() -> LocalProcess:
    return LocalProcess([ANSWER])


# ---- check


def test_check_stores_its_spec_and_returns_the_function():
    @check(cell="ex02_1_f", title="t", share=2, hint="h", needs=("value",), timeout_s=3)
    def test_f_mask(student):
        return 7

    assert test_f_mask.check_spec == CheckSpec("ex02_1_f", "t", 2.0, "h", ("value",), False, 3)
    assert test_f_mask(None) == 7
    assert check_id(test_f_mask) == "f_mask"


def test_check_refuses_a_bare_string_a_bad_share_and_a_bad_name():
    with pytest.raises(TypeError, match="tuple"):
        check(cell="c", title="t", needs="value")
    for share in (-1, math.nan, math.inf):
        with pytest.raises(ValueError, match="share"):
            check(cell="c", title="t", share=share)
    with pytest.raises(ValueError, match="test_"):
        check(cell="c", title="t")(lambda student: None)


# ---- assertions


@pytest.mark.parametrize(
    "actual",
    [
        [1.0, 2.0],
        None,
        torch.tensor([1.0, 2.0], dtype=torch.float64),
        torch.tensor([[1.0, 2.0]]),
        torch.tensor([1.0]),
        torch.tensor([1.0, math.nan]),
        torch.tensor([1.0, math.inf]),
        torch.tensor([1.0, 2.001]),
        torch.nn.Parameter(torch.tensor([1.0, 2.0])),
    ],
)
def test_assert_tensor_refuses(actual):
    with pytest.raises(AssertionError):
        assert_tensor(actual, torch.tensor([1.0, 2.0]))


def test_assert_tensor_accepts_what_is_close():
    assert_tensor(torch.tensor([1.0, 2.000001]), torch.tensor([1.0, 2.0]))
    assert_tensor(torch.tensor([1.0, 2.1]), torch.tensor([1.0, 2.0]), rtol=0, atol=0.2)
    assert_tensor(torch.tensor([-math.inf]), torch.tensor([-math.inf]), allow_nonfinite=True)


@pytest.mark.parametrize("actual", [1, True, math.nan, "1.0", torch.tensor(1.0), 1.01])
def test_assert_float_refuses(actual):
    assert_float(1.0, 1.0)
    with pytest.raises(AssertionError):
        assert_float(actual, 1.0)


@pytest.mark.parametrize("actual", [1, 1.0, "True", torch.tensor(True), False, None])
def test_assert_bool_refuses(actual):
    assert_bool(True, True)
    with pytest.raises(AssertionError):
        assert_bool(actual, True)


def test_assert_gradient_takes_a_detached_leaf_as_zero():
    x, y = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    assert_gradient((x**2).sum(), [x, y], [2 * x, torch.zeros(2)])
    assert_gradient(x**2, x, 6 * x, weights=torch.full((2,), 3.0))
    as_complex = (x**2).sum().to(torch.complex64)
    for wrong in (x.sum(), -(x**2).sum(), (x.detach() ** 2).sum(), x**2, as_complex, None):
        with pytest.raises(AssertionError):
            assert_gradient(wrong, x, 2 * x)


def test_raises_wants_exactly_that_type():
    with raises("ValueError"):
        raise StudentError("ValueError", "no")
    with pytest.raises(AssertionError), raises("ValueError"):
        pass
    with pytest.raises(StudentError), raises("ValueError"):
        raise StudentError("NotImplementedError")


# ---- draws


def test_draw_depends_on_the_seed_alone():
    torch.manual_seed(0)
    first = Draw(5).normal(3, 2)
    torch.manual_seed(1)
    assert torch.equal(first, Draw(5).normal(3, 2))
    assert not torch.equal(first, Draw(6).normal(3, 2))
    Draw(2**200 + 1)  # an HMAC has more bits than a seed may have


def test_prefix_mask_has_unequal_prefixes():
    for seed in range(20):
        mask = Draw(seed).prefix_mask(4, 5)
        lengths = mask.sum(1)
        assert mask.dtype == torch.bool and mask.shape == (4, 5)
        assert len(set(lengths.tolist())) == 4 and lengths.min() >= 1
        assert torch.equal(mask, torch.arange(5) < lengths[:, None])
        assert sorted(Draw(seed).prefix_mask(7, 3).sum(1).tolist())[0] == 1


def test_draw_logprobs_are_below_zero_and_shuffled_keeps_items():
    assert Draw(1).logprobs(5, 7).max() < 0
    assert sorted(Draw(1).shuffled("abcd")) == list("abcd")
    assert Draw(1).choice([3]) == 3


# ---- the local process


def test_gradients_cross_once(process):
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = process.student.square(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([2.0, -4.0]))
    with pytest.raises(RuntimeError):
        grad = torch.autograd.grad(process.student.square(x).sum(), x, create_graph=True)[0]
        grad.sum().backward()


def test_an_error_in_backward_is_the_students(process):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(StudentError) as caught:
        assert_gradient(process.student.bad_backward(x), x, x)
    assert caught.value.type == "KeyError"


def test_arguments_are_copies(process):
    x = torch.zeros(3)
    assert process.student.scribble(x) == 3
    assert x.sum() == 0
    result, (after,) = process.call_mutating("scribble", x)
    assert result == 3 and after.sum() == 3 and x.sum() == 0


def test_generators_are_copied_and_global_seeds_work(process):
    generator = torch.Generator().manual_seed(3)
    assert process.student.draw(generator) == process.student.draw(generator)
    process.seed(4)
    first = process.student.luck()
    process.seed(4)
    assert process.student.luck() == first


def test_odd_results_become_plain_or_opaque(process):
    assert type(process.student.subclass(torch.ones(2))) is torch.Tensor
    assert type(process.student.big(2.0)) is float
    odd = process.student.equal(1)
    for question in (lambda: odd == 1, lambda: bool(odd), lambda: odd != 1):
        with pytest.raises(OpaqueValueError):
            question()
    nested = process.student.pair(torch.ones(2, requires_grad=True))
    assert (
        nested["a"][1] == 3 and nested["a"][0].requires_grad and nested["b"][0].tolist() == [1, 1]
    )


def test_errors_carry_type_and_line(process):
    with pytest.raises(StudentError) as caught:
        process.student.fails(1)
    error = caught.value
    assert (error.type, error.message) == ("ValueError", "no")
    assert error.frames[-1].text == 'raise ValueError("no")'
    with pytest.raises(StudentError) as caught:
        process.student.absent()
    assert caught.value.type == "NameError"
    with pytest.raises(StudentCrashed):
        process.student.leave()
    with pytest.raises(StudentMemory):
        process.student.hog()


def test_callbacks_run_here_and_leak_only_a_type(process):
    seen = []
    assert process.student.ask(lambda x: seen.append(x) or 4, 2) == 5
    assert seen == [2]

    def fault(x):
        raise KeyError("hidden")

    with pytest.raises(StudentError) as caught:
        process.student.ask(fault, 2)
    assert "hidden" not in str(caught.value) and "KeyError" in str(caught.value)


def test_load_errors_are_kept_and_later_cells_run():
    process = LocalProcess([("one", "x = 1 / 0"), ("two", "def f(): return 3"), ("three", "def")])
    assert [error.type for error in process.load_errors] == ["ZeroDivisionError", "SyntaxError"]
    assert process.load_errors[0].frames[0].cell == "one"
    assert process.student.f() == 3 and process.has("f") and not process.has("g")


def test_stdout_is_kept_apart(process, capsys):
    process.student.speak()
    assert process.stdout() == "hello\n" and capsys.readouterr().out == ""
