# SPDX-License-Identifier: MIT
"""Quizzes: what the directive refuses, and answering by keyboard and mouse."""

import re

import pytest

GOOD = """\
:::::{quiz}
::::{question} Which is right?
- [ ] This one

  It is not.
- [x] That one

  It is.
::::
:::::
"""
FIGURE = ":::{explorable} policy-step\n:name: fig\n\nA caption.\n:::\n"
# Name of a page: what is replaced in a good one, by what, and what the message must say.
REFUSED = {
    "none_right": ("[x]", "[ ]", "exactly 1 right choice; got 0. Mark it with `- [x]`"),
    "two_right": ("[ ]", "[x]", "exactly 1 right choice; got 2"),
    "no_mark": ("- [ ] This", "- This", "got 2 list items, 1 of them marked"),
    "unknown_mark": ("[ ]", "[y]", "got 2 list items, 1 of them marked"),
    "one_choice": ("- [ ] This one\n\n  It is not.\n", "", "2 to 8 choices"),
    "no_choice": (GOOD[GOOD.index("- [ ]") : GOOD.index("::::\n:::::")], "", "got 0 list items"),
    "no_explanation": ("\n\n  It is not.", "", "must have an explanation; got none for 'This one'"),
    "not_indented": ("  It is not.", "It is not.", "got 1 list items, 2 of them marked"),
    "no_text": (" Which is right?", "", "1 argument(s) required, 0 supplied"),
    "no_question": (GOOD[GOOD.index("::::{question") : GOOD.index(":::::\n")], "", "got 'nothing'"),
    "other_text": ("::::{question}", "Some text.\n\n::::{question}", "got 'Some text.'"),
    "no_quiz": (GOOD, GOOD[GOOD.index("::::{question") : -7], "question must stand in a quiz"),
    "no_caption": ("A caption.\n", "", "policy-step must have a caption; got none"),
    "unknown_element": (
        "policy-step",
        "policy-steps",
        "got policy-steps. Did you mean policy-step",
    ),
}


@pytest.fixture(scope="module")
def messages(tmp_path_factory, sphinx_build) -> dict[str, str]:
    """For each page of a book of mistakes, what the build says about it."""
    source = tmp_path_factory.mktemp("mistakes")
    (source / "index.md").write_text(f"# All is well here\n\n{GOOD}\n{FIGURE}", encoding="utf-8")
    for name, (old, new, _) in REFUSED.items():
        good = FIGURE if old in FIGURE else GOOD
        assert old in good
        text = f"---\norphan: true\n---\n# Page\n\n{good.replace(old, new, 1)}"
        (source / f"{name}.md").write_text(text, encoding="utf-8")
    done = sphinx_build(source, source / "_out", "dummy", "-W")
    assert done.returncode == 1
    found: dict[str, str] = {}
    for line in done.stderr.splitlines():
        if match := re.search(r"/(\w+)\.md:(\d+): (?:WARNING|ERROR): (.*)", line):
            found[match[1]] = found.get(match[1], "") + match[3] + "\n"
    return found


@pytest.mark.parametrize("name", REFUSED)
def test_mistake_fails_the_build_with_what_to_do(messages, name):
    assert REFUSED[name][2] in messages[name]
    assert len(messages[name].splitlines()) == 1  # one mistake, one message


def test_right_pages_are_built_without_a_message(messages):
    assert set(messages) == set(REFUSED)


# In the browser

browser_test = pytest.mark.browser
FIRST, SECOND = 0, 1


@pytest.fixture
def quiz(open_page, sample):
    page = open_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(sample, wait_until="networkidle")
    page.evaluate("MathJax.startup.promise.then(() => true)")
    yield page.locator("choice-quiz")
    assert problems == []


def choices(quiz, question: int):
    return quiz.locator(".quiz-question").nth(question).locator("input[type=radio]")


def shown(quiz, question: int) -> list[str]:
    """The explanations that can be seen."""
    items = quiz.locator(".quiz-question").nth(question).locator(".quiz-feedback > li")
    return [item.inner_text() for item in items.all() if item.is_visible()]


def score(quiz) -> str:
    return quiz.get_by_role("status").inner_text()


@browser_test
def test_choosing_shows_the_explanation_of_that_choice_only(quiz):
    assert shown(quiz, FIRST) == [] == shown(quiz, SECOND)
    # Not only without height: a screen reader must not read what is not chosen.
    hidden = "items => items.every(node => getComputedStyle(node).visibility === 'hidden')"
    assert quiz.locator(".quiz-feedback > li").evaluate_all(hidden)
    choices(quiz, FIRST).nth(0).click()
    assert shown(quiz, FIRST) == ["Wrong. That is the entry of an action that was not taken."]
    assert shown(quiz, SECOND) == []
    choices(quiz, FIRST).nth(1).click()
    (text,) = shown(quiz, FIRST)
    assert text.startswith("Right. The indicator is 1")
    choices(quiz, SECOND).nth(1).click()
    assert "There is a second paragraph." in shown(quiz, SECOND)[0]


@browser_test
def test_only_the_first_try_counts(quiz):
    assert score(quiz) == "0 of 2 answered right at the first try; 2 not answered yet."
    choices(quiz, FIRST).nth(0).click()  # wrong
    choices(quiz, FIRST).nth(1).click()  # right, too late
    assert score(quiz) == "0 of 2 answered right at the first try; 1 not answered yet."
    choices(quiz, SECOND).nth(0).click()  # right
    assert score(quiz) == "1 of 2 answered right at the first try."
    choices(quiz, SECOND).nth(1).click()  # wrong, after the first try
    assert score(quiz) == "1 of 2 answered right at the first try."


@browser_test
@pytest.mark.parametrize("key", ["Space", "Enter"])
def test_keyboard_moves_without_answering_and_then_answers(quiz, key):
    keyboard = quiz.page.keyboard
    choices(quiz, FIRST).nth(0).focus()
    keyboard.press("ArrowDown")
    assert choices(quiz, FIRST).nth(1).is_checked()
    assert shown(quiz, FIRST) == [] and "0 of 2" in score(quiz)
    keyboard.press(key)
    assert shown(quiz, FIRST)[0].startswith("Right.") and "1 of 2" in score(quiz)
    keyboard.press("ArrowDown")
    keyboard.press(key)
    assert shown(quiz, FIRST)[0].startswith("Wrong.") and "1 of 2" in score(quiz)


@browser_test
def test_a_question_is_reached_and_answered_by_tab_and_space(quiz):
    choices(quiz, FIRST).nth(2).focus()
    quiz.page.keyboard.press("Tab")  # the link in the choice
    quiz.page.keyboard.press("Tab")
    assert choices(quiz, SECOND).nth(0).evaluate("node => node === document.activeElement")
    quiz.page.keyboard.press("Space")
    assert shown(quiz, SECOND)[0].startswith("Right.")


@browser_test
def test_start_again_forgets_all(quiz):
    choices(quiz, FIRST).nth(1).click()
    quiz.get_by_role("button", name="Start again").press("Enter")
    assert shown(quiz, FIRST) == [] and quiz.locator("input:checked").count() == 0
    assert score(quiz).startswith("0 of 2") and "2 not answered" in score(quiz)


@browser_test
def test_groups_are_named_by_their_question_and_results_are_announced(quiz):
    groups = quiz.locator("fieldset")
    assert groups.count() == 2
    assert groups.nth(0).locator("legend").inner_text().startswith("Question 1. What is the grad")
    names = choices(quiz, FIRST).evaluate_all("all => [...new Set(all.map(node => node.name))]")
    assert len(names) == 1 and names[0] != choices(quiz, SECOND).first.get_attribute("name")
    assert quiz.locator(".quiz-feedback").first.get_attribute("aria-live") == "polite"


@browser_test
def test_hidden_formulas_are_typeset_at_the_size_of_shown_ones(quiz):
    page = quiz.page
    assert page.locator("choice-quiz mjx-merror").count() == 0
    drawn = page.locator("choice-quiz .math mjx-container")
    assert drawn.count() == page.locator("choice-quiz .math").count() >= 7
    sizes = drawn.evaluate_all("all => all.map(node => node.style.fontSize)")
    assert len(set(sizes)) == 1, sizes
    choices(quiz, FIRST).nth(1).click()
    box = quiz.locator(".quiz-shown mjx-container").last.bounding_box()
    assert box["height"] > 20 and box["width"] > 20


@browser_test
def test_nothing_is_stored_or_sent(quiz):
    page, sent = quiz.page, []

    def note(request):
        # The browser itself asks for the icon, at a time of its own.
        if not request.url.endswith("/favicon.svg"):
            sent.append(request.url)

    page.on("request", note)
    stored = "() => [JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie]"
    before = page.evaluate(stored)
    for choice in quiz.locator("input").all():
        choice.click()
    assert page.evaluate(stored) == before and sent == []


@browser_test
def test_print_shows_choices_and_explanations(quiz):
    quiz.page.emulate_media(media="print")
    texts = quiz.locator(".quiz-feedback > li")
    assert texts.count() == 5 and all(text.is_visible() for text in texts.all())
    assert quiz.locator("button, input").filter(visible=True).count() == 0


@browser_test
def test_without_javascript_choices_come_first_and_explanations_unfold(browser, sample):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(sample)
    question = page.locator(".quiz-question").nth(1)
    assert question.locator(".quiz-choices > li").all_inner_texts() == [
        "Zero, up to rounding",
        "One",
    ]
    explanation = question.get_by_text("The entries of the gradient sum to 0")
    assert not explanation.is_visible()
    question.locator("summary").press("Enter")
    assert explanation.is_visible()
    question.locator("summary").press("Enter")
    page.emulate_media(media="print")
    assert explanation.is_visible()
    context.close()
