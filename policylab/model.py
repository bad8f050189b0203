# SPDX-License-Identifier: MIT
"""A small GPT, and a policy around it that computes each position only once while sampling."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import skip_init

from policylab.masking import after_left_padding
from policylab.shapes import check_rank

Cache = tuple[tuple[Tensor, Tensor], ...]
"""Keys and values of each layer, both (B, heads, L, width / heads)."""


@dataclass(frozen=True)
class GPTConfig:
    """Sizes of a GPT.

    Args:
        vocab_size: V.
        pad_id: the id that fills rows on the left.
        max_length: the most positions L a row may have, padding included.
        width: size of a position's vector.
        layers: number of blocks.
        heads: attention heads a block; divides width.
    Raises: ValueError if heads does not divide width.
    """

    vocab_size: int = 20
    pad_id: int = 0
    max_length: int = 48
    width: int = 64
    layers: int = 2
    heads: int = 4

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit."""
        if self.width % self.heads != 0:
            raise ValueError(
                f"heads must divide width={self.width}; got heads={self.heads}. Try 1, 2 or 4."
            )


class Block(nn.Module):
    """Attention and a two-layer network, each with a norm before it and a residual around it."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.norm_attention = nn.LayerNorm(width)
        self.query_key_value = skip_init(nn.Linear, width, 3 * width, bias=False)
        self.merge_heads = skip_init(nn.Linear, width, width, bias=False)
        self.norm_network = nn.LayerNorm(width)
        self.expand = skip_init(nn.Linear, width, 4 * width)
        self.contract = skip_init(nn.Linear, 4 * width, width)

    def forward(
        self, x: Tensor, visible: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Process new positions, given keys and values of the positions before them.

        Args:
            x: (B, S, width) the new positions.
            visible: (B, 1, S, L) bool, which of all L positions each new one may look at.
            past: keys and values of the first L - S positions, None if there are none.
        Returns: (B, S, width) and the keys and values of all L positions.
        """
        B, S, width = x.shape
        joint = self.query_key_value(self.norm_attention(x))  # (B, S, 3 * width)
        heads = joint.view(B, S, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)  # each (B, heads, S, width / heads)
        if past is not None:
            key = torch.cat([past[0], key], dim=2)
            value = torch.cat([past[1], value], dim=2)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=visible)
        x = x + self.merge_heads(mixed.transpose(1, 2).reshape(B, S, width))
        x = x + self.contract(F.gelu(self.expand(self.norm_network(x))))
        return x, (key, value)


class GPT(nn.Module):
    """A decoder-only transformer with learned positions; (B, L) ids in, (B, L, V) logits out.

    Left padding is found from the ids: positions count from a row's first real token and no token
    looks at a pad, so the logits of real tokens do not depend on the amount of padding.

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3
    (norm before each sub-block and after the last, residual layers scaled by depth).  Differs:
    weights start with standard deviation 1 / sqrt(fan-in), embeddings with 0.5, attention has no
    biases, no dropout; at this width 0.02 starts too small to learn.

    Args:
        config: sizes; the default has 105,216 parameters.
        generator: draws the first weights; the global random state is neither used nor moved.
    """

    def __init__(self, config: GPTConfig, *, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        # skip_init leaves the weights to the loop below, so that no global random number is drawn.
        self.token_embedding = skip_init(nn.Embedding, config.vocab_size, config.width)
        self.position_embedding = skip_init(nn.Embedding, config.max_length, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = skip_init(nn.Linear, config.width, config.vocab_size, bias=False)
        self._initialise(generator)

    def _initialise(self, generator: torch.Generator) -> None:
        for name, parameter in self.named_parameters():
            if name.endswith("embedding.weight"):
                nn.init.normal_(parameter, std=0.5, generator=generator)
            elif parameter.dim() == 2:
                std = parameter.shape[1] ** -0.5
                if name.endswith(("merge_heads.weight", "contract.weight")):
                    std /= math.sqrt(2 * self.config.layers)
                nn.init.normal_(parameter, std=std, generator=generator)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, ids: Tensor) -> Tensor:
        """Compute the logits of all positions.

        Args:
            ids: (B, L) left-padded ids, L <= max_length.
        Returns: (B, L, V); the rows of pads are finite and mean nothing.
        Raises: ValueError if ids is not (B, L) or too long.
        """
        return self.extend(ids, None)[0]

    def extend(self, ids: Tensor, past: Cache | None) -> tuple[Tensor, Cache]:
        """Compute the logits of the positions that a cache does not cover yet.

        Args:
            ids: (B, L) all ids, those in the cache included.
            past: the cache of the first L - S positions of the same rows, or None.
        Returns: (B, S, V) logits of the last S positions, and the cache of all L.
        Raises: ValueError if ids is not (B, L) or too long.
        """
        check_rank("ids", ids, "(B, L)")
        L = ids.shape[1]
        if L > self.config.max_length:
            raise ValueError(
                f"ids must have at most max_length={self.config.max_length} positions; got L={L}. "
                "Shorten the prompt or raise GPTConfig.max_length."
            )
        start = 0 if past is None else past[0][0].shape[2]
        real = after_left_padding(ids, self.config.pad_id)
        positions = (real.cumsum(dim=1) - 1).clamp(min=0)[:, start:]
        index = torch.arange(L, device=ids.device)
        causal = index <= index[start:, None]  # (S, L)
        # A pad looks at itself: some attention kernels give NaN where a row may look at nothing.
        itself = index == index[start:, None]
        visible = ((causal & real[:, None, :]) | itself)[:, None]  # (B, 1, S, L)

        x = self.token_embedding(ids[:, start:]) + self.position_embedding(positions)
        layers = []
        for number, block in enumerate(self.blocks):
            x, layer = block(x, visible, None if past is None else past[number])
            layers.append(layer)
        return self.head(self.norm(x)), tuple(layers)


class IncrementalPolicy:
    """A GPT as a policy that remembers its last call and computes only what is new.

    `IncrementalPolicy(model)(ids)` gives the logits of `model(ids)`, without gradients. A call
    whose rows begin with those of the call before runs the network on the new positions only.
    Anything else, such as other rows or changed weights, is computed afresh.

    Args:
        model: the GPT; its weights are not copied.
    """

    def __init__(self, model: GPT) -> None:
        self.model = model
        self._ids: Tensor | None = None
        self._weights: list[tuple[int, int]] = []
        self._logits = torch.empty(0)
        self._cache: Cache | None = None

    def __call__(self, ids: Tensor) -> Tensor:
        """Compute the logits (B, L, V) of ids (B, L)."""
        # A parameter's version counts its in-place changes, such as an optimizer's step.
        weights = [(id(p), p._version) for p in self.model.parameters()]
        continues = weights == self._weights and self._is_prefix_of(ids)
        with torch.no_grad():
            logits, self._cache = self.model.extend(ids, self._cache if continues else None)
        self._logits = torch.cat([self._logits, logits], dim=1) if continues else logits
        self._ids, self._weights = ids.clone(), weights
        return self._logits.clone()

    def _is_prefix_of(self, ids: Tensor) -> bool:
        known = self._ids
        if known is None or ids.dim() != 2 or ids.device != known.device:
            return False
        if ids.shape[0] != known.shape[0] or ids.shape[1] <= known.shape[1]:
            return False
        return torch.equal(ids[:, : known.shape[1]], known)
