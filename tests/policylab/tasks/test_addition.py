# SPDX-License-Identifier: MIT
"""Addition: the split, the verifier, the demonstrator."""

from collections import Counter
from itertools import islice, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from policylab.tasks import Addition, Sum

TASK = Addition()
ALL = [Sum(a, b) for a, b in product(range(100), repeat=2)]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(split, n, seed=0):
    return list(islice(TASK.problems(split, generator(seed)), n))


def test_a_problem_by_hand():
    assert TASK.prompt(Sum(12, 34)) == "12+34="
    assert TASK.answer(Sum(12, 34)) == "640"
    assert (TASK.prompt(Sum(5, 7)), TASK.answer(Sum(5, 7))) == ("05+07=", "210")
    assert TASK.answer(Sum(99, 99)) == "891"


def test_every_gold_answer_is_accepted():
    assert all(TASK.verify(problem, TASK.answer(problem)) for problem in ALL)


def test_constants_are_accepted_on_their_own_sum_only():
    answers = Counter(TASK.answer(problem) for problem in ALL)
    # The likeliest sum, 99, has 100 of the 10,000 problems.
    assert answers.most_common(1) == [("990", 100)]
    for constant in ("990", "000", "", "640"):
        accepted = sum(TASK.verify(problem, constant) for problem in ALL)
        assert accepted == answers[constant] <= 100


@pytest.mark.parametrize(
    "text", ["64", "046", "46", " 640", "640 ", "640\n", "6400", "640,640", "６４０", "641", "#640"]
)
def test_the_verifier_is_strict(text):
    assert TASK.verify(Sum(12, 34), text) is False


@given(st.integers(0, 99), st.integers(0, 99))
def test_mirrored_problems_share_a_split_and_it_never_changes(a, b):
    assert TASK.split_of(Sum(a, b)) == TASK.split_of(Sum(b, a)) == Addition().split_of(Sum(a, b))


def test_splits_are_disjoint_and_a_tenth_is_held_out():
    train, held_out = set(draw("train", 4000)), set(draw("held_out", 4000))
    assert not train & held_out
    share = sum(TASK.split_of(problem) == "held_out" for problem in ALL) / len(ALL)
    # 5,050 unordered pairs: a standard deviation of about 0.006.
    assert 0.07 < share < 0.13


def test_no_digit_of_the_sum_tells_the_split():
    # A split by a rule of arithmetic can hold out every sum with the same last digit.
    for place in range(3):
        held_out = Counter(TASK.answer(p)[place] for p in ALL if TASK.split_of(p) == "held_out")
        total = Counter(TASK.answer(p)[place] for p in ALL)
        assert all(0.05 < held_out[digit] / total[digit] < 0.15 for digit in total)


def test_problems_repeat_with_the_seed_and_differ_between_seeds():
    assert draw("train", 50, seed=1) == draw("train", 50, seed=1)
    first, second = draw("train", 200, seed=0), draw("train", 200, seed=1)
    # Two independent draws of 200 from about 9,000 problems share about 4.
    assert len(set(first) & set(second)) < 20


def test_a_demonstrator_without_noise_is_always_right():
    assert all(TASK.verify(p, TASK.demonstrate(p, generator())) for p in draw("train", 100))


def test_a_noisy_demonstrator_is_right_as_often_as_the_formula_says():
    task, source, n = Addition(noise=0.3), generator(), 4000
    problems = list(islice(task.problems("train", source), n))
    right = sum(task.verify(p, task.demonstrate(p, source)) for p in problems) / n
    p = (1 - 0.9 * 0.3) ** 3
    assert abs(right - p) < 5 * (p * (1 - p) / n) ** 0.5


def test_other_widths():
    task = Addition(digits=1)
    assert (task.prompt(Sum(3, 9)), task.answer(Sum(3, 9))) == ("3+9=", "21")


@pytest.mark.parametrize(
    "options", [{"digits": 0}, {"noise": 1.5}, {"noise": -0.1}, {"held_out": 0.0}, {"held_out": 1}]
)
def test_numbers_out_of_range_raise(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Addition(**options)


def test_an_unknown_split_raises_at_once():
    with pytest.raises(ValueError, match="split must be"):
        TASK.problems("test", generator())
