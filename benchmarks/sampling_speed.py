# SPDX-License-Identifier: MIT
"""How much faster is sampling with remembered keys and values?

    python benchmarks/sampling_speed.py
    python benchmarks/sampling_speed.py --prompts 128 --tokens 40 --rounds 9

Samples the same completions with the plain GPT and with IncrementalPolicy, in turns, and prints
the median of the ratios of CPU time, with the smallest and the largest. A round starts with the one
that came second in the round before, so that a slow moment of the machine hits both.
"""

import argparse
import statistics
import time

import torch

from policylab.model import GPT, GPTConfig, IncrementalPolicy
from policylab.sampling import Policy, sample_completions


def seconds(policy: Policy, prompts: torch.Tensor, tokens: int) -> tuple[float, torch.Tensor]:
    """Sample and return the CPU seconds and the completions; no row ends before `tokens`."""
    start = time.process_time()
    ids, _ = sample_completions(
        policy,
        prompts,
        max_new_tokens=tokens,
        eos_id=-1,
        pad_id=0,
        generator=torch.Generator().manual_seed(0),
    )
    return time.process_time() - start, ids


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--prompts", type=int, default=512, help="rows of the batch")
    parser.add_argument("--tokens", type=int, nargs="+", default=[4, 16, 40], help="new tokens")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved measurements")
    options = parser.parse_args()

    torch.set_num_threads(1)
    model = GPT(GPTConfig(), generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    prompts = torch.randint(2, 20, (options.prompts, 6), generator=generator)
    for tokens in options.tokens:
        ratios = []
        for number in range(options.rounds + 1):
            policies: list[tuple[str, Policy]] = [("plain", model)]
            policies.append(("cached", IncrementalPolicy(model)))
            if number % 2:
                policies.reverse()
            measured = {name: seconds(policy, prompts, tokens) for name, policy in policies}
            assert torch.equal(measured["plain"][1], measured["cached"][1])
            if number:  # the first round warms up
                ratios.append(measured["plain"][0] / measured["cached"][0])
        print(
            f"{options.prompts} x {tokens} tokens: plain / cached = "
            f"{statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})"
        )


if __name__ == "__main__":
    main()
