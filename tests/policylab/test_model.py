# SPDX-License-Identifier: MIT
"""The GPT does not see padding or the future, and the cache changes nothing but time."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from policylab.model import GPT, GPTConfig, IncrementalPolicy
from policylab.sampling import sample_completions


def gpt(seed=0, **sizes):
    return GPT(GPTConfig(**sizes), generator=torch.Generator().manual_seed(seed))


MODEL = gpt(max_length=24)


def random_ids(seed, B, L):
    """Rows without pads at the front."""
    ids = torch.randint(0, 20, (B, L), generator=torch.Generator().manual_seed(seed))
    ids[:, 0] = 2 + ids[:, 0] % 18
    return ids


def test_the_default_has_105216_parameters():
    assert sum(p.numel() for p in gpt().parameters()) == 105_216


@given(st.integers(0, 10_000), st.integers(1, 10), st.integers(0, 12))
def test_logits_of_real_tokens_do_not_depend_on_left_padding(seed, length, pads):
    ids = random_ids(seed, 3, length)
    padded = torch.cat([torch.zeros(3, pads, dtype=torch.long), ids], dim=1)
    with torch.no_grad():
        torch.testing.assert_close(
            MODEL(padded)[:, pads:], MODEL(ids), atol=1e-5, rtol=1e-5, msg="padding changed logits"
        )


def test_rows_of_different_lengths_share_a_batch_without_touching_each_other():
    rows = [random_ids(seed, 1, length) for seed, length in enumerate((2, 5, 9))]
    batch = torch.cat([torch.nn.functional.pad(row, (9 - row.shape[1], 0)) for row in rows])
    with torch.no_grad():
        together = MODEL(batch)
        for b, row in enumerate(rows):
            torch.testing.assert_close(
                together[b : b + 1, -row.shape[1] :], MODEL(row), atol=1e-5, rtol=1e-5
            )


def test_gradients_of_a_padded_batch_are_finite_and_those_of_the_bare_one():
    ids = random_ids(3, 2, 6)
    gradients = []
    for pads in (0, 4):
        model = gpt()
        padded = torch.nn.functional.pad(ids, (pads, 0))
        model(padded)[:, pads:].square().mean().backward()
        gradients.append([p.grad for p in model.parameters()])
    for bare, padded in zip(*gradients, strict=True):
        torch.testing.assert_close(padded, bare, atol=1e-5, rtol=1e-4)


def test_a_row_of_pads_alone_is_finite():
    assert torch.isfinite(MODEL(torch.zeros(2, 5, dtype=torch.long))).all()


def test_a_token_does_not_change_the_logits_before_it():
    ids = random_ids(0, 2, 8)
    other = ids.clone()
    other[:, 5] = (other[:, 5] + 1) % 20
    with torch.no_grad():
        before, after = MODEL(ids), MODEL(other)
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert ((before - after)[:, 5:].abs().amax(dim=-1) > 1e-4).all()


def test_a_pad_id_after_the_first_real_token_is_read_like_any_other():
    ids = torch.tensor([[5, 0, 6], [5, 7, 6]])
    logits = MODEL(ids)
    assert not torch.allclose(logits[0, 2], logits[1, 2])


def test_the_same_generator_gives_the_same_weights_and_global_randomness_stays():
    state = torch.random.get_rng_state()
    first, second, third = gpt(1), gpt(1), gpt(2)
    assert torch.equal(torch.random.get_rng_state(), state)
    pairs = list(zip(first.parameters(), second.parameters(), third.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert not all(torch.equal(a, c) for a, _, c in pairs)


def test_weights_start_at_one_over_the_root_of_fan_in():
    block = gpt(layers=1, width=128).blocks[0]
    assert block.expand.weight.std().item() == pytest.approx(128**-0.5, rel=0.02)
    # Residual layers are scaled by 1 / sqrt(2 * layers).
    assert block.contract.weight.std().item() == pytest.approx((512 * 2) ** -0.5, rel=0.02)
    assert (block.expand.bias == 0).all()


@pytest.mark.parametrize("shape", [(3,), (1, 25), (1, 2, 3)])
def test_ids_that_do_not_fit_raise_value_error(shape):
    with pytest.raises(ValueError, match="ids must have"):
        MODEL(torch.zeros(shape, dtype=torch.long))


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="heads must divide width=64"):
        GPTConfig(heads=5)


@given(st.integers(0, 10_000), st.integers(1, 6), st.lists(st.integers(1, 4), max_size=4))
def test_cached_logits_are_those_of_the_model(seed, start, growths):
    lengths = [start]
    for growth in growths:
        lengths.append(lengths[-1] + growth)
    ids = random_ids(seed, 3, lengths[-1])
    ids[0, : start // 2] = 0
    policy = IncrementalPolicy(MODEL)
    for length in lengths:
        with torch.no_grad():
            expected = MODEL(ids[:, :length])
        torch.testing.assert_close(policy(ids[:, :length]), expected, atol=1e-5, rtol=1e-5)


def test_the_cache_computes_new_positions_only(monkeypatch):
    model, widths = gpt(), []
    model.head.register_forward_hook(lambda module, inputs, out: widths.append(inputs[0].shape[1]))
    policy, ids = IncrementalPolicy(model), random_ids(0, 2, 9)
    for length in (4, 5, 9):
        policy(ids[:, :length])
    assert widths == [4, 1, 4]


def test_other_rows_other_batches_and_equal_lengths_are_computed_afresh():
    policy = IncrementalPolicy(MODEL)
    for ids in (random_ids(0, 2, 5), random_ids(1, 2, 6), random_ids(1, 3, 7), random_ids(1, 3, 7)):
        with torch.no_grad():
            torch.testing.assert_close(policy(ids), MODEL(ids), atol=1e-5, rtol=1e-5)


def test_changed_weights_are_noticed():
    model, ids = gpt(), random_ids(0, 2, 6)
    policy = IncrementalPolicy(model)
    policy(ids[:, :5])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(ids).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        torch.testing.assert_close(policy(ids), model(ids), atol=1e-5, rtol=1e-5)


def test_a_caller_that_changes_the_logits_in_place_does_not_change_later_ones():
    policy, ids = IncrementalPolicy(MODEL), random_ids(0, 2, 6)
    policy(ids[:, :5]).zero_()
    with torch.no_grad():
        torch.testing.assert_close(policy(ids), MODEL(ids), atol=1e-5, rtol=1e-5)


def test_cached_and_uncached_sampling_give_the_same_completions():
    prompts = torch.tensor([[0, 0, 5, 6], [7, 8, 9, 10], [0, 11, 12, 13]]).repeat(20, 1)
    results = [
        sample_completions(
            policy,
            prompts,
            max_new_tokens=12,
            eos_id=1,
            pad_id=0,
            generator=torch.Generator().manual_seed(5),
        )
        for policy in (MODEL, IncrementalPolicy(MODEL))
    ]
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
