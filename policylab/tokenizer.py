# SPDX-License-Identifier: MIT
"""A character tokenizer with a small fixed alphabet."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

DIGITS_AND_SIGNS = "0123456789+-*= >:,"
PAD_CHARACTER = "#"
EOS_CHARACTER = "$"


@dataclass(frozen=True)
class CharTokenizer:
    """One id a character: 0 is the pad, 1 the end of a sequence (EOS), then the alphabet in order.

    Args:
        alphabet: distinct characters without "#" and "$", which show pad and EOS when decoding.
    Raises: ValueError if a character is doubled or reserved.
    """

    alphabet: str = DIGITS_AND_SIGNS
    pad_id: int = 0
    eos_id: int = 1

    def __post_init__(self) -> None:
        """Refuse an alphabet in which an id would have two meanings."""
        if (self.pad_id, self.eos_id) != (0, 1):
            raise ValueError(f"pad_id and eos_id are 0 and 1; got {self.pad_id}, {self.eos_id}.")
        symbols = PAD_CHARACTER + EOS_CHARACTER + self.alphabet
        if len(set(symbols)) != len(symbols):
            raise ValueError(
                f"alphabet must hold distinct characters without {PAD_CHARACTER!r} and "
                f"{EOS_CHARACTER!r}; got {self.alphabet!r}."
            )

    @property
    def vocab_size(self) -> int:
        """V: pad, EOS and the alphabet."""
        return 2 + len(self.alphabet)

    def encode(self, text: str) -> list[int]:
        """Turn text into ids, without EOS.

        Raises: ValueError if a character is not in the alphabet.
        """
        unknown = sorted(set(text) - set(self.alphabet))
        if unknown:
            raise ValueError(f"text must use the characters {self.alphabet!r}; got also {unknown}.")
        return [2 + self.alphabet.index(character) for character in text]

    def decode(self, ids: Sequence[int] | Tensor) -> str:
        """Turn ids into text up to the first EOS.

        A pad before the EOS is shown as "#" and never dropped: a completion with a sampled pad in
        it is not the clean answer.

        Args:
            ids: (T,) ids of one sequence.
        Returns: the text, without EOS and what follows it.
        """
        symbols = PAD_CHARACTER + EOS_CHARACTER + self.alphabet
        text = "".join(symbols[int(token)] for token in ids)
        return text.partition(EOS_CHARACTER)[0]

    def left_padded(self, texts: Sequence[str]) -> Tensor:
        """Encode prompts into one batch that ends flush right.

        Returns: (B, P) int64, P the longest prompt's length.
        """
        rows = [self.encode(text) for text in texts]
        width = max(map(len, rows))
        return torch.tensor([[self.pad_id] * (width - len(row)) + row for row in rows])

    def right_padded(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Encode given completions, each followed by an EOS.

        Returns: ids (B, T) int64 and mask (B, T) bool, True on the text and its EOS.
        """
        rows = [[*self.encode(text), self.eos_id] for text in texts]
        lengths = torch.tensor([[len(row)] for row in rows])
        width = int(lengths.max())
        ids = torch.tensor([row + [self.pad_id] * (width - len(row)) for row in rows])
        return ids, torch.arange(width) < lengths
