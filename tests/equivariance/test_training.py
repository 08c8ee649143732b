# SPDX-License-Identifier: Apache-2.0
"""Training commutes: after 50 steps the permuted model is the plain one, permuted.

The model is the paper's sandwich: F1 (embedding and positions), blocks, F2 (norm and head), trained
as one; only the blocks' features are permuted, by rows, by columns, or both.
"""

import copy
from collections.abc import Callable, Iterable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from timm.models.vision_transformer import Block
from torch import Tensor, nn
from torch.nn import functional
from torch.testing import assert_close

from equivariance import (
    RULES,
    ColumnPermutation,
    ConjugationError,
    RowPermutation,
    Secret,
    conjugate_,
    conjugate_optimizer_,
    conjugate_state,
)

MakeOptimiser = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
STEPS, BATCH, TOKENS, CLASSES = 50, 3, 5, 3


class Sandwich(nn.Module):
    def __init__(self, dim: int, heads: int, *, kind: str) -> None:
        super().__init__()
        self.embed = nn.Linear(4, dim)
        self.positions = nn.Parameter(0.1 * torch.randn(TOKENS, dim))
        if kind == "timm-vit":
            block: nn.Module = Block(dim, heads, mlp_ratio=2, qkv_bias=True, init_values=0.5)
        else:
            block = nn.TransformerEncoderLayer(dim, heads, 2 * dim, 0.0, batch_first=True)
        self.blocks = nn.Sequential(block)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, CLASSES)

    def forward(self, x: Tensor, rows: RowPermutation, columns: ColumnPermutation) -> Tensor:
        z = columns.apply(rows.apply(self.embed(x) + self.positions))
        z = rows.inverse().apply(columns.inverse().apply(self.blocks(z)))
        logits: Tensor = self.head(self.norm(z).mean(dim=1))
        return logits


def sgd(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=5e-4)


def adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    # Softmax cancels the key bias: its gradient is rounding noise, which a small eps would amplify.
    return torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.05, eps=1e-4, amsgrad=True)


def train(
    model: Sandwich,
    optimiser: torch.optim.Optimizer,
    columns: ColumnPermutation,
    *,
    rows: bool,
    steps: Iterable[int] = range(STEPS),
) -> None:
    """Train on drawn data; with `rows` each sample of each step has a row order of its own."""
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(BATCH, TOKENS, 4, dtype=torch.float64, generator=generator)
        y = torch.randint(0, CLASSES, (BATCH,), generator=generator)
        order = RowPermutation.identity(TOKENS)
        if rows:
            order = RowPermutation.sample(Secret.from_seed(step), tokens=TOKENS, batch=BATCH)
        optimiser.zero_grad()
        functional.cross_entropy(model(x, order, columns), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimiser.step()


def prepared(
    kind: str, columns: ColumnPermutation, heads: int, perturb: Callable[[nn.Module], nn.Module]
) -> tuple[Sandwich, Sandwich]:
    """Return a plain model, and its copy with conjugated blocks."""
    plain = Sandwich(columns.dim, heads, kind=kind)
    perturb(plain)
    permuted = copy.deepcopy(plain)
    conjugate_(permuted.blocks, columns, rules=RULES[kind])
    return plain, permuted


@settings(deadline=None, max_examples=4, derandomize=True)
@given(
    heads=st.integers(1, 4),
    # Fewer features than this in all, and LayerNorm's gradient amplifies rounding without bound.
    size=st.integers(4, 6),
    seed=st.integers(0, 1000),
)
@pytest.mark.parametrize("kind", ["timm-vit", "torch-encoder"])
@pytest.mark.parametrize(
    ("group", "rows"),
    [("identity", True), ("headwise", False), ("headwise", True), ("none", False), ("none", True)],
)
@pytest.mark.parametrize("make_optimiser", [sgd, adamw])
def test_fifty_steps_commute(
    perturb: Callable[[nn.Module], nn.Module],
    make_optimiser: MakeOptimiser,
    group: str,
    rows: bool,
    kind: str,
    heads: int,
    size: int,
    seed: int,
) -> None:
    torch.manual_seed(seed)
    dim = heads * size
    secret = Secret.from_seed(seed)
    drawn = ColumnPermutation.sample(secret, dim=dim, heads=None if group == "none" else heads)
    columns = ColumnPermutation.identity(dim) if group == "identity" else drawn
    same = ColumnPermutation.identity(dim)
    plain, permuted = prepared(kind, columns, heads, perturb)
    before = copy.deepcopy(plain.state_dict())
    train(plain, make_optimiser(plain.parameters()), same, rows=False)
    train(permuted, make_optimiser(permuted.parameters()), columns, rows=rows)
    conjugate_(permuted.blocks, columns.inverse(), rules=RULES[kind])
    assert_close(permuted.state_dict(), plain.state_dict(), rtol=1e-11, atol=1e-12)
    assert (plain.state_dict()["embed.weight"] - before["embed.weight"]).abs().max() > 1e-3


@pytest.mark.parametrize("make_optimiser", [sgd, adamw])
@pytest.mark.parametrize("heads", [4, None], ids=["headwise", "none"])
def test_model_and_optimiser_are_conjugated_amid_training(
    perturb: Callable[[nn.Module], nn.Module], make_optimiser: MakeOptimiser, heads: int | None
) -> None:
    columns = ColumnPermutation.sample(Secret.from_seed(0), dim=16, heads=heads)
    same = ColumnPermutation.identity(16)
    plain, _ = prepared("timm-vit", same, 4, perturb)
    keyed = copy.deepcopy(plain)
    optimiser, keyed_optimiser = (make_optimiser(m.parameters()) for m in (plain, keyed))
    for model, its in ((plain, optimiser), (keyed, keyed_optimiser)):
        train(model, its, same, rows=False, steps=range(10))
    conjugate_(keyed.blocks, columns)
    conjugate_optimizer_(keyed_optimiser, keyed.blocks, columns)
    train(plain, optimiser, same, rows=False, steps=range(10, 30))
    train(keyed, keyed_optimiser, columns, rows=True, steps=range(10, 30))
    assert_close(
        conjugate_state(plain.blocks.state_dict(), columns),
        dict(keyed.blocks.state_dict()),
        rtol=1e-11,
        atol=1e-12,
    )
    assert_close(keyed.head.state_dict(), plain.head.state_dict(), rtol=1e-11, atol=1e-12)


def test_without_its_moments_training_goes_elsewhere(
    perturb: Callable[[nn.Module], nn.Module],
) -> None:
    """Negative control for the above."""
    columns = ColumnPermutation.sample(Secret.from_seed(0), dim=16, heads=4)
    plain, keyed = prepared("timm-vit", ColumnPermutation.identity(16), 4, perturb)
    optimisers = [sgd(m.parameters()) for m in (plain, keyed)]
    for model, optimiser in zip((plain, keyed), optimisers, strict=True):
        train(model, optimiser, ColumnPermutation.identity(16), rows=False, steps=range(5))
    conjugate_(keyed.blocks, columns)
    train(plain, optimisers[0], ColumnPermutation.identity(16), rows=False, steps=range(5, 10))
    train(keyed, optimisers[1], columns, rows=False, steps=range(5, 10))
    assert (plain.head.weight - keyed.head.weight).abs().max() > 1e-4


def test_factored_moments_are_refused_and_nothing_changes() -> None:
    model = nn.Sequential(Block(16, 4, qkv_bias=True))
    optimiser = torch.optim.Adafactor(model.parameters())
    model(torch.randn(2, 3, 16)).square().sum().backward()
    optimiser.step()
    before = copy.deepcopy(optimiser.state_dict())
    key = ColumnPermutation.sample(Secret.from_seed(0), dim=16, heads=4)
    with pytest.raises(
        ConjugationError, match=r"0\.attn\.qkv\.weight \[48, 16\]: the optimiser's row_var is"
    ):
        conjugate_optimizer_(optimiser, model, key)
    assert_close(optimiser.state_dict()["state"], before["state"], rtol=0, atol=0)


def test_tensors_in_lists_of_the_state_are_refused() -> None:
    """As LBFGS keeps them, and timm's Kron, whose factors are a list for each parameter."""
    model = nn.Sequential(Block(16, 4, qkv_bias=True))
    key = ColumnPermutation.sample(Secret.from_seed(0), dim=16, heads=4)
    history = torch.optim.LBFGS(model.parameters())

    def closure() -> Tensor:
        history.zero_grad()
        loss = model(torch.ones(2, 3, 16)).square().sum()
        loss.backward()
        return loss

    for _ in range(2):
        history.step(closure)
    factors = torch.optim.AdamW(model.parameters())
    factors.step()
    first = next(iter(factors.state.values()))
    first["Q"] = [torch.eye(2)]
    for optimiser in (history, factors):
        with pytest.raises(ConjugationError, match=r"the optimiser's \w+ is a list of tensors"):
            conjugate_optimizer_(optimiser, model, key)
