# SPDX-License-Identifier: MIT
"""`{quiz}` and `{question}`: questions that a reader answers in the page.

    ::::{quiz}
    :name: quiz-02

    :::{question} Which row of logits scores the first token of the completion?
    - [ ] The first row

      That row predicts the second token of the prompt.
    - [x] The last row of the prompt

      Row number i predicts token i + 1.
    :::
    ::::

The page holds, for each question, the choices and then the explanations, in <details>. Where there
is JavaScript, `quiz.js` makes radio buttons of them. Nothing is stored or sent.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

MARK = re.compile(r"^- \[([ xX])\] ")
QUESTION, CHOICES, EXPLANATIONS = "quiz-question", "quiz-choices", "quiz-explanations"
INSIDE = "policylab-quiz"  # in temp_data while a quiz is read
OPEN = f'<details class="{EXPLANATIONS}"><summary>Which is right, and why</summary>'


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("quiz", Quiz)
    app.add_directive("question", Question)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


class Quiz(SphinxDirective):
    """The content is questions, and nothing else; they are numbered here."""

    has_content = True
    option_spec: ClassVar = {"name": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        content = nodes.container(classes=["quiz"])
        self.env.temp_data[INSIDE] = True
        try:
            self.state.nested_parse(self.content, self.content_offset, content)
        finally:
            self.env.temp_data.pop(INSIDE, None)  # a quiz in this one has done so
        questions = [node for node in content.children if QUESTION in node.get("classes", [])]
        # A question that was refused has left its own message.
        refused = list(content.findall(nodes.system_message))
        others = [node for node in content.children if node not in questions]
        if not refused and (others or not questions):
            got = others[0].astext()[:40] if others else "nothing"
            raise self.error(
                f"quiz must hold only {{question}} directives; got {got!r}. "
                "Put text before the quiz, and give the quiz one more colon than its questions."
            )
        for number, question in enumerate(questions, start=1):
            question[0].insert(0, nodes.strong("", f"Question {number}. "))
        self.set_source_info(content)
        self.add_name(content)
        content.insert(0, nodes.raw("", "<choice-quiz>", format="html"))
        content += nodes.raw("", "</choice-quiz>", format="html")
        return [content]


class Question(SphinxDirective):
    """The argument (and what follows it) is the question; the list that ends it is the choices."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        if INSIDE not in self.env.temp_data:
            raise self.error("question must stand in a quiz: put {quiz} around the questions.")
        right = [mark[1] != " " for line in self.content if (mark := MARK.match(line))]
        lines = [self.arguments[0], *(MARK.sub("- ", line) for line in self.content)]
        content = nodes.Element()
        self.state.nested_parse(StringList(lines), self.content_offset - 1, content)
        try:
            choices, explanations = read_choices(content, right)
        except ValueError as problem:
            raise self.error(str(problem)) from problem
        question = nodes.container("", *content.children[:-1], classes=[QUESTION])
        question += choices
        question += nodes.raw("", OPEN, format="html")
        question += explanations
        question += nodes.raw("", "</details>", format="html")
        self.set_source_info(question)
        return [question]


def read_choices(
    content: nodes.Element, right: list[bool]
) -> tuple[nodes.enumerated_list, nodes.enumerated_list]:
    """Split the list that ends a question into its choices and their explanations.

    Args:
        content: the parsed question; each choice is an item of a paragraph and an explanation.
        right: for each line that is marked as a choice, whether it is the right one.
    Raises: ValueError if the choices are not as the module's text shows.
    """
    found = content[-1] if content.children else None
    items = list(found.children) if isinstance(found, nodes.bullet_list) else []
    if (
        not 2 <= len(items) <= 8
        or len(items) != len(right)
        or not isinstance(content[0], nodes.paragraph)
    ):
        raise ValueError(
            "question must be a text and then 2 to 8 choices, each `- [ ] text` or `- [x] text`"
            f" at the start of a line; got {len(items)} list items, {len(right)} of them marked."
        )
    if sum(right) != 1:
        raise ValueError(
            f"question must have exactly 1 right choice; got {sum(right)}. Mark it with `- [x]`, "
            "and all the others with `- [ ]`."
        )
    choices = nodes.enumerated_list(classes=[CHOICES], enumtype="upperalpha", prefix="", suffix=".")
    explanations = choices.copy()
    explanations["classes"] = []
    for item, is_right in zip(items, right, strict=True):
        if len(item) < 2 or not isinstance(item[1], nodes.paragraph):
            raise ValueError(
                f"choice must have an explanation; got none for {item.astext()[:40]!r}. Write it "
                "after an empty line, indented by two spaces."
            )
        choices += nodes.list_item("", item[0])
        item[1].insert(0, nodes.strong("", "Right. " if is_right else "Wrong. "))
        classes = ["quiz-right" if is_right else "quiz-wrong"]
        explanations += nodes.list_item("", *item.children[1:], classes=classes)
    return choices, explanations
