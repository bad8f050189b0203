# SPDX-License-Identifier: MIT
"""The glossary: in order, short, and no word explained by itself."""

import re
from pathlib import Path

import pytest

BOOK = Path(__file__).resolve().parents[2] / "book"
ENTRIES = re.findall(
    r"^(\S.*)\n  (\S.*)$",
    (BOOK / "glossary.md").read_text(encoding="utf-8").partition(":::{glossary}\n")[2],
    re.M,
)


def test_words_stand_in_the_order_of_the_alphabet():
    words = [word for word, _ in ENTRIES]
    assert len(words) >= 60  # the pattern above still finds them
    assert words == sorted(words, key=str.casefold)
    assert len(set(map(str.casefold, words))) == len(words)


@pytest.mark.parametrize(("word", "definition"), ENTRIES, ids=[word for word, _ in ENTRIES])
def test_a_definition_is_short_and_not_circular(word, definition):
    plain = re.sub(r"\{term\}`([^`<]+)(?: <[^`]+>)?`", r"\1", definition)
    assert 1 <= len(re.findall(r"[.:](?= [A-Z$]|$)", plain)) <= 3
    assert re.search(rf"\b{re.escape(word)}s?\b", plain, re.I) is None


def test_every_linked_word_has_an_entry():
    words = {word for word, _ in ENTRIES}
    text = "".join(path.read_text(encoding="utf-8") for path in BOOK.glob("*.md"))
    roles = re.findall(r"\{term\}`(?:[^`<]*<([^`>]+)>|([^`<]+))`", text)
    linked = {target or shown for target, shown in roles}
    assert linked - words == set()
