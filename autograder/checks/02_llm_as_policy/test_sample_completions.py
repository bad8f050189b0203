# SPDX-License-Identifier: MIT
"""Checks of `sample_completions`, against policies that are written here and called back.

Most policies follow a script: one token has nearly all the probability, so that the right tokens
are known.  Two checks compare frequencies with the exact probabilities of a small Markov chain;
their bounds come from Bernstein's inequality: a right answer fails once in ten million runs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from autograder.checking import Draw, assert_tensor, check

V = 8
SURE = 60.0  # logit of the scripted token; the others together have probability below 1e-24
ROWS = 6144  # completions in a check of frequencies
FALSE_ALARM = 1e-7


@dataclass
class Script:
    """What the policy will emit, and what it was asked."""

    tokens: Tensor  # (B, steps)
    prompts: Tensor  # (B, P)
    eos_id: int
    pad_id: int
    sure: float = SURE
    asked: list[Tensor] = field(default_factory=list)

    def policy(self) -> Callable[[Tensor], Tensor]:
        """Make the k-th call emit column k; all positions but the last are decoys."""

        def scripted(ids: Tensor) -> Tensor:
            step = min(len(self.asked), self.tokens.shape[1] - 1)
            self.asked.append(ids)
            logits = torch.full((*ids.shape, V), -self.sure)
            logits[:, :-1, self.eos_id] = self.sure
            emitted = logits[:, -1].scatter(1, self.tokens[:, step, None], self.sure)
            return torch.cat([logits[:, :-1], emitted[:, None]], dim=1)

        return scripted

    def run(self, student, max_new_tokens: int) -> tuple[object, object]:
        """Call the student's function; refuse anything but a pair."""
        result = student.sample_completions(
            self.policy(),
            self.prompts,
            max_new_tokens=max_new_tokens,
            eos_id=self.eos_id,
            pad_id=self.pad_id,
            generator=torch.Generator().manual_seed(1),
        )
        return pair(result)


def pair(result: object) -> tuple[object, object]:
    assert type(result) in (tuple, list) and len(result) == 2, "expected (ids, mask)"
    return result[0], result[1]


def script(draw: Draw, rows: int, steps: int, ends: tuple[int, ...] = ()) -> Script:
    """Random ordinary tokens; row b emits its EOS at step ends[b], then goes on talking."""
    order = 1 + draw.permutation(V - 1)  # EOS and pad are not 0, the usual fill of a new tensor
    eos_id, pad_id, ordinary = int(order[0]), int(order[1]), order[2:]
    tokens = ordinary[draw.integers(0, len(ordinary), (rows, steps))]
    for row, end in enumerate(ends):
        tokens[row, end] = eos_id
    prompts = ordinary[draw.integers(0, len(ordinary), (rows, 4))]
    prompts[1, :2] = pad_id  # a shorter prompt, padded on the left
    return Script(tokens, prompts, eos_id, pad_id)


def expected_mask(tokens: Tensor, eos_id: int) -> Tensor:
    """True up to and including the first EOS of each row, by a loop."""
    result = torch.zeros(tokens.shape, dtype=torch.bool)
    for row, values in enumerate(tokens.tolist()):
        for step, token in enumerate(values):
            result[row, step] = True
            if token == eos_id:
                break
    return result


def assert_scripted(actual: tuple[object, object], right: Script) -> None:
    mask = expected_mask(right.tokens, right.eos_id)
    assert_tensor(actual[0], torch.where(mask, right.tokens, right.pad_id))
    assert_tensor(actual[1], mask)


@check(
    cell="ex02_2_sample_completions",
    share=2,
    title="tokens come one at a time from the logits of the last position",
    hint="Ask the policy, take logits[:, -1], sample, append, repeat. Return the completions "
    "without their prompts, as int64, and a bool mask of the same shape.",
)
def test_sample_completions_value(student, draw, process):
    right = script(draw, rows=3, steps=5)
    assert_scripted(right.run(student, 5), right)


@check(
    cell="ex02_2_sample_completions",
    share=1,
    title="the policy is asked about the prompt and all tokens so far",
    hint="Append each sampled token to the ids before the next call, and keep the prompt.",
    needs=("sample_completions_value",),
)
def test_sample_completions_policy_input(student, draw, process):
    right = script(draw, rows=3, steps=4)
    assert_scripted(right.run(student, 4), right)
    assert len(right.asked) >= 4, "the policy was asked too rarely"
    for step, ids in enumerate(right.asked[:4]):
        assert_tensor(ids, torch.cat([right.prompts, right.tokens[:, :step]], dim=1))


@check(
    cell="ex02_2_sample_completions",
    share=1,
    title="the mask is True up to and including a row's first EOS",
    hint="The EOS is an action of the policy and is trained on. Store the step's column of "
    "the mask before you mark the row as ended. A row that never ends is all True.",
    needs=("sample_completions_value",),
)
def test_sample_completions_eos_mask(student, draw, process):
    ends = draw.shuffled([0, 1, 3, 5])
    right = script(draw, rows=5, steps=6, ends=tuple(ends))
    right.tokens[ends.index(1), 4] = right.eos_id  # a second EOS after the first
    _, mask = right.run(student, 6)
    assert_tensor(mask, expected_mask(right.tokens, right.eos_id))


@check(
    cell="ex02_2_sample_completions",
    share=1,
    title="after its EOS a row holds the pad id",
    hint="A row that has ended goes on through the loop with the others: what it samples there is "
    "replaced by pad_id.",
    needs=("sample_completions_value",),
)
def test_sample_completions_pad_after_eos(student, draw, process):
    right = script(draw, rows=5, steps=6, ends=tuple(draw.shuffled([0, 1, 3, 5])))
    ids, _ = right.run(student, 6)
    mask = expected_mask(right.tokens, right.eos_id)
    assert_tensor(ids, torch.where(mask, right.tokens, right.pad_id))


@check(
    cell="ex02_2_sample_completions",
    share=1,
    title="when every row has ended early, the last EOS is there and the rest is padding",
    hint="Stop after the column with the last EOS is stored, not before; if you run on, or fill "
    "a tensor made in advance, what is left must be pad_id and False.",
    needs=("sample_completions_eos_mask", "sample_completions_pad_after_eos"),
)
def test_sample_completions_all_ended(student, draw, process):
    right = script(draw, rows=3, steps=8, ends=tuple(draw.shuffled([1, 2, 4])))
    ids, mask = right.run(student, 8)
    assert type(ids) is Tensor and ids.ndim == 2 and 5 <= ids.shape[1] <= 8
    right.tokens = right.tokens[:, : ids.shape[1]]  # it may stop, or run on
    assert_scripted((ids, mask), right)


@check(
    cell="ex02_2_sample_completions",
    share=1,
    title="a pad id that is also a normal token, or the EOS, ends and hides nothing by itself",
    hint="Do not find the mask by comparing ids with pad_id: only the first sampled EOS ends a "
    "row, whatever the pad is.",
    needs=("sample_completions_eos_mask", "sample_completions_pad_after_eos"),
)
def test_sample_completions_pad_is_a_token(student, draw, process):
    right = script(draw, rows=4, steps=6, ends=(2, 4))
    right.pad_id = right.eos_id
    assert_scripted(right.run(student, 6), right)
    right = script(draw, rows=4, steps=6, ends=(2, 4))
    right.pad_id = int(right.tokens[0, 0])  # row 0 says it, then goes on
    right.tokens[3, 1:4] = right.pad_id
    assert_scripted(right.run(student, 6), right)


@check(
    cell="ex02_2_sample_completions",
    share=1,
    title="an EOS in the prompt ends nothing",
    hint="Look for the EOS among the sampled tokens only; prompts of several turns hold one.",
    needs=("sample_completions_eos_mask", "sample_completions_pad_after_eos"),
)
def test_sample_completions_prompt_eos(student, draw, process):
    right = script(draw, rows=4, steps=5, ends=(3,))
    right.prompts[0, 1] = right.prompts[2, 3] = right.eos_id
    assert_scripted(right.run(student, 5), right)


@check(
    cell="ex02_2_sample_completions",
    share=1,
    title="very large and very negative logits are sampled without overflow",
    hint="exp of a large logit is infinite: use torch.softmax, or subtract the maximum first.",
    needs=("sample_completions_value",),
)
def test_sample_completions_stable(student, draw, process):
    right = script(draw, rows=3, steps=4)
    right.sure = 1000.0
    assert_scripted(right.run(student, 4), right)


# ---- frequencies

WORDS = 5  # tokens 0 … 4 are drawn; 5 is the EOS, which the chain never emits, 6 the pad
START = torch.arange(ROWS) % 2  # prompts of two kinds, row by row


def chain(draw: Draw) -> Tensor:
    """(WORDS, WORDS) logits of the next token given the last: none rare, none alike."""
    return torch.linspace(-1.0, 1.0, WORDS)[
        torch.stack([draw.permutation(WORDS) for _ in range(WORDS)])
    ] + draw.uniform(WORDS, WORDS, low=-0.2, high=0.2)


def markov(table: Tensor) -> Callable[[Tensor], Tensor]:
    padded = torch.full((V, V), -200.0)
    padded[:WORDS, :WORDS] = table

    def policy(ids: Tensor) -> Tensor:
        return padded[ids]

    return policy


def assert_frequencies(ids: Tensor, table: Tensor, temperature: float) -> None:
    """Compare how often each first token, and each pair of tokens, occurs after each prompt.

    Bernstein: a mean of n coins of probability p is off by more than
    sqrt(2 p (1 - p) k / n) + 2 k / (3 n) with probability below 2 exp(-k).
    """
    step = torch.softmax(table.double() / temperature, dim=1)
    cells = 2 * (WORDS + WORDS * WORDS)
    k = math.log(2 * cells / FALSE_ALARM)
    n = ROWS // 2
    for start in range(2):
        mine = ids[start == START]
        counts = torch.bincount(mine[:, 0] * V + mine[:, 1], minlength=V * V).view(V, V)
        assert counts[:WORDS, :WORDS].sum() == n, "a token of probability 0 was sampled"
        pairs = counts[:WORDS, :WORDS]
        for count, p in ((pairs.sum(1), step[start]), (pairs, step[start, :, None] * step)):
            bound = (2 * p * (1 - p) * k / n).sqrt() + 2 * k / (3 * n)
            off = (count / n - p).abs()
            assert (off <= bound).all(), f"frequencies are off by up to {off.max():.4f}"


def sampled(student, policy, seed: int, **options) -> tuple[object, object]:
    rows = options.pop("rows", ROWS)
    steps = options.pop("steps", 2)
    result = student.sample_completions(
        policy,
        START[:rows, None],
        max_new_tokens=steps,
        eos_id=5,
        pad_id=6,
        generator=torch.Generator().manual_seed(seed),
        **options,
    )
    ids, mask = pair(result)
    assert_tensor(mask, torch.ones(rows, steps, dtype=torch.bool))
    assert type(ids) is Tensor and ids.dtype == torch.int64 and ids.shape == (rows, steps)
    assert ids.min() >= 0 and ids.max() < V
    return ids, mask


@check(
    cell="ex02_2_sample_completions",
    share=1,
    title="tokens are sampled with the policy's probabilities, row by row",
    hint="Sample (torch.multinomial on the softmax); argmax, one draw for all rows, or a cut-off "
    "tail are other distributions.",
    needs=("sample_completions_value",),
)
def test_sample_completions_distribution(student, draw, process):
    table = chain(draw)
    ids, _ = sampled(student, markov(table), draw.integer(0, 2**40))
    assert_frequencies(ids, table, temperature=1.0)


@check(
    cell="ex02_2_sample_completions",
    share=1,
    title="the temperature divides the logits",
    hint="softmax(logits / temperature): below 1 it sharpens, above 1 it flattens.",
    needs=("sample_completions_distribution",),
)
def test_sample_completions_temperature(student, draw, process):
    table = chain(draw)
    for temperature in draw.shuffled([0.6, 1.6]):
        seed = draw.integer(0, 2**40)
        ids, _ = sampled(student, markov(table), seed, temperature=temperature)
        assert_frequencies(ids, table, temperature)


@check(
    cell="ex02_2_sample_completions",
    share=1,
    title="the generator is the only source of randomness",
    hint="Pass generator=generator to every random call, and neither seed nor reset it.",
    needs=("sample_completions_distribution",),
)
def test_sample_completions_generator(student, draw, process):
    policy, seed = markov(chain(draw)), draw.integer(0, 2**40)
    generators = [torch.Generator().manual_seed(seed) for _ in range(3)]
    torch.rand(5, generator=generators[2])  # the same seed, further on
    seen = []
    for global_seed, generator in zip((1, 2, 2), generators, strict=True):
        process.seed(global_seed)
        result = student.sample_completions(
            policy, START[:64, None], max_new_tokens=6, eos_id=5, pad_id=6, generator=generator
        )
        ids, _ = pair(result)
        assert type(ids) is Tensor and ids.shape == (64, 6)
        seen.append(ids)
    assert torch.equal(seen[0], seen[1]), "global random numbers change the draws"
    assert not torch.equal(seen[0], seen[2]), "the generator's state does not change the draws"
