# SPDX-License-Identifier: MIT
"""Characters to ids and back, and the two paddings."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from policylab.tokenizer import DIGITS_AND_SIGNS, CharTokenizer

TOKENIZER = CharTokenizer()


@given(st.text(alphabet=DIGITS_AND_SIGNS))
def test_decode_undoes_encode(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_ids_start_with_pad_and_eos():
    assert (TOKENIZER.pad_id, TOKENIZER.eos_id, TOKENIZER.vocab_size) == (0, 1, 20)
    assert TOKENIZER.encode("01") == [2, 3]


def test_decode_stops_at_the_first_eos_and_shows_earlier_pads():
    six, four = TOKENIZER.encode("64")
    assert TOKENIZER.decode([six, 1, four, 1, 0]) == "6"
    assert TOKENIZER.decode(torch.tensor([0, six, 0, four, 1, 0])) == "#6#4"


def test_prompts_end_flush_right():
    assert TOKENIZER.left_padded(["12+34=", "1="]).tolist() == [
        TOKENIZER.encode("12+34="),
        [0, 0, 0, 0, *TOKENIZER.encode("1=")],
    ]


def test_completions_hold_their_eos_in_the_mask():
    ids, mask = TOKENIZER.right_padded(["64", ""])
    assert ids.tolist() == [[*TOKENIZER.encode("64"), 1], [1, 0, 0]]
    assert mask.tolist() == [[True, True, True], [True, False, False]]


@pytest.mark.parametrize("text", ["a", "1#", "1$", "１"])
def test_unknown_and_reserved_characters_raise(text):
    with pytest.raises(ValueError, match="text must use the characters"):
        TOKENIZER.encode(text)


@pytest.mark.parametrize("alphabet", ["aa", "a#", "$"])
def test_ambiguous_alphabets_raise(alphabet):
    with pytest.raises(ValueError, match="alphabet"):
        CharTokenizer(alphabet)
