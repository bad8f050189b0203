# SPDX-License-Identifier: MIT
"""Interactive figures: every formula against its Python twin, and the figures by keyboard."""

import random
import re
from pathlib import Path

import explorable
import numpy as np
import pytest
import scipy.special
import torch

from policylab.bandit import softmax_policy_gradient

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "tests" / "fixtures" / "interactive"
STATIC = ROOT / "book" / "_static"
RTOL = 1e-12  # a few units in the last place of a double, for exp and sums of at most 6 terms
ATOL = 1e-14  # where 1 - p cancels
TAUS = (0.2, 4.0)  # the ends of the slider
START = {"logits": [-1.0, 1.0, 0.0], "rewards": [1.0, 0.6, 0.2]}
MASK = 2**32 - 1

browser_test = pytest.mark.browser


def shifted(logits, tau):
    """Logits over temperature; the largest is taken off first, which changes no probability."""
    z = np.asarray(logits, dtype=float)
    return (z - z.max()) / tau


def softmax(logits, tau):
    return scipy.special.softmax(shifted(logits, tau))


def policy_gradient(logits, action, advantage, tau):
    """The library's gradient is with respect to z / tau; the chain rule adds 1 / tau."""
    gradient = softmax_policy_gradient(torch.tensor(shifted(logits, tau)), action, advantage)
    return gradient.numpy() / tau


def expected_gradient(logits, rewards, tau):
    z = torch.tensor(np.asarray(logits, dtype=float) - max(logits), requires_grad=True)
    probs = torch.softmax(z / tau, dim=0)
    return torch.autograd.grad(probs @ torch.tensor(rewards, dtype=torch.float64), z)[0].numpy()


def pick(probs, draw):
    above = np.flatnonzero(np.cumsum(probs) > draw)
    return int(above[0]) if len(above) else int(np.flatnonzero(probs)[-1])


def mix(bits):
    h = bits & MASK
    h = (h ^ (h >> 16)) * 0x85EBCA6B & MASK
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & MASK
    return h ^ (h >> 16)


def uniform(seed, index):
    return mix(mix(seed + 1) + (index + 1) * 0x9E3779B9) / 2**32


TWINS = {
    "softmax": softmax,
    "entropy": lambda probs: scipy.special.entr(probs).sum(),
    "expectedValue": lambda probs, values: np.dot(probs, values),
    "surprise": lambda probs, action: np.eye(len(probs))[action] - probs,
    "policyGradient": policy_gradient,
    "expectedGradient": expected_gradient,
    "ascend": lambda logits, gradient, size: np.asarray(logits) + size * np.asarray(gradient),
    "pick": pick,
    "mix": mix,
    "uniform": uniform,
}


def logit_lists():
    """120 random lists of 2 to 6 logits, and the extremes."""
    rng = random.Random(3)
    for _ in range(120):
        scale = rng.choice([0.1, 3.0, 700.0])
        yield [rng.uniform(-scale, scale) for _ in range(rng.randint(2, 6))]
    yield from ([700.0, -700.0], [-700.0, -700.0, 700.0], [700.0, 700.0], [0.0] * 6)
    yield from ([1e-300, 0.0], [30.0, 0.0, -30.0], [-5.0, 5.0, 5.0])


def with_tau():
    rng = random.Random(4)
    for logits in logit_lists():
        for tau in (rng.uniform(*TAUS), *TAUS):
            yield logits, tau, rng


def distributions():
    yield from (softmax(logits, tau).tolist() for logits, tau, _ in with_tau())
    yield from ([1.0, 0.0, 0.0], [0.0, 1.0], [0.25] * 4, [1 - 1e-16, 1e-16])


def values(rng, probs):
    return [rng.uniform(-1, 2) for _ in probs]


def cases(name):
    """Arguments for one formula: at least 100 random ones and the extremes."""
    rng = random.Random(5)
    match name:
        case "softmax":
            return [[z, tau] for z, tau, _ in with_tau()]
        case "entropy":
            return [[p] for p in distributions()]
        case "expectedValue":
            return [[p, values(rng, p)] for p in distributions()]
        case "surprise":
            return [[p, rng.randrange(len(p))] for p in distributions()]
        case "policyGradient":
            return [[z, r.randrange(len(z)), r.uniform(-3, 3), t] for z, t, r in with_tau()]
        case "expectedGradient":
            return [[z, values(r, z), t] for z, t, r in with_tau()]
        case "ascend":
            return [[z, values(rng, z), rng.uniform(0.1, 4)] for z in logit_lists()]
        case "pick":
            draws = (0.0, 1 - 2**-32)
            return [[p, u] for p in distributions() for u in (rng.random(), *draws)]
        case "mix":
            return [[n] for n in (0, 1, MASK, *(rng.randrange(2**32) for _ in range(200)))]
        case "uniform":
            pairs = [(rng.randrange(10_000), rng.randrange(1000)) for _ in range(200)]
            return [list(pair) for pair in [(0, 0), (9999, 0), (MASK, 10**6), *pairs]]
    raise AssertionError(f"no cases for {name}: add them, at least 100 random ones and extremes")


@pytest.fixture(scope="module")
def formulas(browser):
    """Call a formula of the book with each of a list of arguments."""
    page = browser.new_page()
    page.add_script_tag(path=STATIC / "formulas.js")
    code = "([name, all]) => all.map((some) => PolicyLab.formulas[name](...some))"
    yield lambda name, arguments: page.evaluate(code, [name, arguments])
    page.close()


@browser_test
def test_every_formula_has_a_twin(browser):
    page = browser.new_page()
    page.add_script_tag(path=STATIC / "formulas.js")
    assert set(page.evaluate("Object.keys(PolicyLab.formulas)")) == set(TWINS)
    page.close()


@browser_test
@pytest.mark.parametrize("name", TWINS)
def test_formula_equals_its_twin(formulas, name):
    arguments = cases(name)
    assert len(arguments) >= 100
    for given, got in zip(arguments, formulas(name, arguments), strict=True):
        want = TWINS[name](*given)
        np.testing.assert_allclose(got, want, rtol=RTOL, atol=ATOL, err_msg=f"{name}{given}")


@browser_test
def test_gradient_is_that_of_the_log_probability(formulas):
    """A second opinion, without the library: autograd through log-softmax."""
    arguments = [case for case in cases("policyGradient") if max(map(abs, case[0])) < 5]
    assert len(arguments) >= 100
    for (logits, action, advantage, tau), got in zip(
        arguments, formulas("policyGradient", arguments), strict=True
    ):
        z = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
        logprob = torch.log_softmax(z / tau, dim=0)[action]
        want = torch.autograd.grad(advantage * logprob, z)[0]
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=ATOL)


@browser_test
def test_draws_are_spread_evenly(formulas):
    draws = np.array(formulas("uniform", [[1, k] for k in range(4000)]))
    # Standard error of a mean of 4000: sqrt(1/12/4000) = 0.0046; four of them.
    assert abs(draws.mean() - 0.5) < 0.019
    counts = np.histogram(draws, bins=10, range=(0, 1))[0]
    # Chi-squared with 9 degrees of freedom exceeds 27.9 with probability 0.001.
    assert ((counts - 400) ** 2 / 400).sum() < 27.9
    assert len(set(formulas("uniform", [[seed, 0] for seed in range(200)]))) == 200


# The figure


@pytest.fixture
def figure(open_page, sample):
    """The <policy-step> of the sample page, opened from disk."""
    page = open_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(sample, wait_until="networkidle")
    yield page.locator("policy-step")
    assert problems == []


def press(figure, name: str, key: str = "Enter") -> None:
    figure.get_by_role("button", name=name, exact=True).press(key)


def slider(figure, group: str, label: str):
    return figure.get_by_role("group", name=group).get_by_label(label)


def logits(figure) -> list[float]:
    return figure.evaluate("node => ['a', 'b', 'c'].map(name => node.values['logit' + name])")


def status(figure) -> str:
    return figure.locator(".xp-status").inner_text()


def column(figure, head: str) -> list[float]:
    heads = figure.locator(".xp-table thead th").all_inner_texts()
    cells = figure.locator(f".xp-table tbody tr > :nth-child({heads.index(head) + 1})")
    return [float(text.replace("\u2212", "-")) for text in cells.all_inner_texts()]


def bar_widths(figure) -> list[float]:
    widths = "bars => bars.map(bar => +bar.getAttribute('width'))"
    return figure.locator("rect.xp-bar").evaluate_all(widths)


@browser_test
def test_slider_by_keyboard_changes_bars_and_status(figure):
    before, told = bar_widths(figure), status(figure)
    page = figure.page
    press(figure, "Reset")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.labels[0].textContent") == "a (640$)"
    page.keyboard.press("ArrowRight")
    assert logits(figure) == pytest.approx([-0.9, 1.0, 0.0])
    assert status(figure) != told and f"a {softmax([-0.9, 1, 0], 1)[0]:.3f}" in status(figure)
    after = bar_widths(figure)
    assert after[0] > before[0] and after[1] < before[1]
    np.testing.assert_allclose(np.array(after) / sum(after), softmax([-0.9, 1, 0], 1), rtol=1e-9)


@browser_test
def test_step_by_keyboard_shows_the_numbers_of_the_library(figure):
    """Temperature 2 and the expected reward as baseline, set by keys; then one step on c."""
    tau = slider(figure, "Policy and step", "temperature")
    for _ in range(10):
        tau.press("ArrowRight")  # 0.1 each: 1.0 to 2.0
    figure.get_by_label("0", exact=True).press("ArrowRight")
    press(figure, "Step on c")
    probs = softmax(START["logits"], 2.0)
    advantage = 0.2 - probs @ START["rewards"]
    gradient = policy_gradient(START["logits"], 2, advantage, 2.0)
    np.testing.assert_allclose(column(figure, "gradient"), gradient, atol=5.1e-4)
    np.testing.assert_allclose(column(figure, "1[taken] − π"), np.eye(3)[2] - probs, atol=5.1e-4)
    np.testing.assert_allclose(logits(figure), START["logits"] + gradient, rtol=RTOL)
    change = softmax(START["logits"] + gradient, 2.0) - probs
    np.testing.assert_allclose(column(figure, "Δπ"), change, atol=5.1e-4)
    assert f"advantage of −{-advantage:.2f}" in status(figure)
    values = figure.locator(".xp-numbers dd").all_inner_texts()
    entropy = scipy.special.entr(probs).sum()
    assert values[1].startswith(f"{entropy:.3f} → ") and values[1].endswith(" nats")
    assert values[0].startswith(f"{probs @ START['rewards']:.3f} → ")


@browser_test
def test_average_step_follows_the_gradient_of_the_expected_reward(figure):
    press(figure, "Average step", "Space")
    gradient = expected_gradient(START["logits"], START["rewards"], 1.0)
    np.testing.assert_allclose(logits(figure), START["logits"] + gradient, rtol=RTOL)
    # Numbers of the step on one action are left open.
    assert figure.locator(".xp-numbers dd").nth(2).inner_text() == "–"


@browser_test
def test_numbers_that_rounding_would_hide_are_shown(figure):
    for name, value in (("a", "-5"), ("b", "5")):
        slider(figure, "Logits z", f"{name} (").fill(value)
    for name, value in (("a", "1"), ("b", "0"), ("c", "0")):
        slider(figure, "Rewards R", f"{name} (").fill(value)
    press(figure, "Average step")
    # π(a) = 1 / (1 + e^10 + e^5) = 4.51e-5, and the gradient is π(a) (1 - π(a)).
    assert "a by +4.5e\u22125, b by" in status(figure)
    assert column(figure, "Δz")[0] == pytest.approx(4.5e-5)


@browser_test
def test_a_bad_action_becomes_likelier_without_a_baseline_and_rarer_with_one(figure):
    press(figure, "Step on c")
    assert status(figure).endswith(": likelier.") and column(figure, "Δπ")[2] > 0
    press(figure, "Reset")
    figure.get_by_label("expected reward").check()
    press(figure, "Step on c")
    assert status(figure).endswith(": less likely.") and column(figure, "Δπ")[2] < 0


@browser_test
def test_an_unlikely_action_moves_its_logit_further(figure):
    for name in ("a", "b"):  # the same reward for both
        slider(figure, "Rewards R", name).fill("1")
    press(figure, "Step on a")
    rare = column(figure, "Δz")[0]
    press(figure, "Reset")
    slider(figure, "Rewards R", "b (").fill("1")
    press(figure, "Step on b")
    assert rare == pytest.approx(1 - softmax(START["logits"], 1)[0], abs=5.1e-4)
    assert rare > 2 * column(figure, "Δz")[1]


@browser_test
def test_temperature_moves_probabilities_and_no_logit(figure):
    before = bar_widths(figure)
    slider(figure, "Policy and step", "temperature").press("End")
    assert logits(figure) == START["logits"]
    assert bar_widths(figure)[1] < before[1]


@browser_test
def test_samples_follow_the_seed(figure):
    def walk() -> list[str]:
        z, taken = np.array(START["logits"]), []
        for index in range(4):
            action = pick(softmax(z, 1), uniform(7, index))
            z = z + policy_gradient(z, action, START["rewards"][action], 1)
            taken.append("abc"[action])
        return taken

    for _ in range(2):
        seed = figure.get_by_label("seed")
        seed.fill("7")
        seed.press("Enter")
        for _ in range(4):
            press(figure, "Sample an action and step")
        assert f"(4): {', '.join(walk())}." in figure.locator(".xp-readouts").inner_text()
        press(figure, "Reset")
    assert figure.get_by_label("seed").input_value() == "1"
    assert logits(figure) == START["logits"]


@browser_test
def test_logits_go_on_beyond_the_end_of_their_slider(figure):
    slider(figure, "Policy and step", "step size").press("End")
    slider(figure, "Rewards R", "c (").press("End")
    z = np.array(START["logits"])
    for _ in range(8):
        press(figure, "Step on c")
        z = z + 4 * policy_gradient(z, 2, 2.0, 1)
    assert z[2] > 5
    np.testing.assert_allclose(logits(figure), z, rtol=1e-10)
    assert figure.locator("output").nth(2).inner_text() == f"{z[2]:.2f}"


@browser_test
def test_drawing_is_told_in_words(figure):
    press(figure, "Step on b")
    label = figure.get_by_role("img").get_attribute("aria-label")
    assert "b (a wrong digit): 0.665 before, 0.733 now, change of logit +0.20" in label
    assert figure.locator(".xp-status").get_attribute("aria-live") == "polite"


@browser_test
def test_every_control_has_a_name_and_shows_its_focus(figure):
    controls = figure.locator("button, input")
    assert controls.count() >= 15
    for control in controls.all():
        assert control.evaluate("node => (node.labels[0] || node).innerText.trim()")
        control.press("Shift")  # focus by keyboard
        assert control.evaluate("node => getComputedStyle(node).outlineWidth") == "2px"


@browser_test
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figure_and_quiz_are_accessible(open_page, sample, violations, scheme):
    page = open_page(scheme)
    page.goto(sample, wait_until="networkidle")
    page.wait_for_timeout(300)  # the theme's own transitions
    assert violations(page) == []
    press(page.locator("policy-step"), "Step on b")
    for choice in page.locator("choice-quiz input").all():
        choice.click()
    page.wait_for_timeout(300)
    assert violations(page) == []


@browser_test
def test_figure_and_quiz_fit_a_phone(open_page, sample):
    page = open_page(width=390, height=844)
    page.goto(sample, wait_until="networkidle")
    press(page.locator("policy-step"), "Sample an action and step")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    right = page.locator("policy-step").bounding_box()
    for text in page.locator(".xp-plot text").all():
        box = text.bounding_box()
        assert box["x"] + box["width"] <= right["x"] + right["width"]


@browser_test
def test_print_shows_the_state_and_no_controls(figure):
    press(figure, "Step on b")
    figure.page.emulate_media(media="print")
    assert figure.locator("button, input").filter(visible=True).count() == 0
    settings = figure.locator(".xp-settings")
    assert settings.is_visible() and "b (650$) 1.20" in settings.inner_text()
    assert figure.locator(".xp-plot").is_visible() and figure.locator(".xp-table").is_visible()


@browser_test
def test_without_javascript_a_sentence_tells_what_is_missing(browser, sample):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(sample)
    assert explorable.EXPLORABLES["policy-step"] in page.locator("policy-step").inner_text()
    context.close()


# The directive


def test_every_explorable_is_defined_by_a_script_and_no_other_is():
    scripts = "".join(
        path.read_text(encoding="utf-8")
        for path in sorted(STATIC.glob("*.js"))
        if path.name != "quiz.js"
    )
    defined = re.findall(r'customElements\.define\("([\w-]+)"', scripts)
    assert sorted(defined) == sorted(explorable.EXPLORABLES)


def test_unknown_name_is_met_with_the_names_there_are():
    with pytest.raises(
        ValueError, match=r"one of policy-step.*got policy-stop\. Did you mean poli"
    ):
        explorable.description("policy-stop")
    with pytest.raises(ValueError, match="added to EXPLORABLES"):
        explorable.description("x")


@pytest.mark.parametrize(("builder", "file"), [("text", "index.txt"), ("latex", "*.tex")])
def test_other_books_get_readable_text(sphinx_build, tmp_path, builder, file):
    done = sphinx_build(SAMPLE, tmp_path, builder, "-W")
    assert done.returncode == 0, done.stderr
    text = " ".join(next(tmp_path.glob(file)).read_text(encoding="utf-8").split())
    assert "With JavaScript, this figure has sliders" in text
    for words in ("Question 1.", "Wrong.", "The indicator sums to 1", "second paragraph"):
        assert words in text
    assert "policy-step>" not in text and "details" not in text
