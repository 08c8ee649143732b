# SPDX-License-Identifier: Apache-2.0
"""`pma`: pooling by multihead attention, of the Set Transformer, under row permutation.

The paper calls PMA pseudo-invariant. Measured are both directions: outputs are equal, weight
gradients are equal, and the gradient of the input is permuted as the input was, all to rounding, so
training is the same too. A seed attends to a sum over elements, which no order changes, and the
chain rule does the rest: nothing pseudo was found.

The negative control pools by a fixed weight for each place, which sees the order.
"""

import pandas as pd
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from equivariance.experiments.errors import ExperimentError
from equivariance.experiments.models.set_transformer import SetTransformer
from equivariance.experiments.options import Options
from equivariance.experiments.results import Results
from equivariance.keys import Secret
from equivariance.row import permute_rows, unpermute_rows
from equivariance.stream import random_permutations

__all__ = ["PmaOptions", "run"]

CLAIM = "pseudo-invariant"
FEATURES = 4


class PmaOptions(Options):
    """Sets of random points, of which the model learns the largest first coordinate."""

    dim: int = Field(32, ge=4, description="Features of an element.")
    heads: int = Field(4, ge=1, description="Attention heads; must divide dim.")
    seeds: int = Field(2, ge=1, description="Seed vectors of the pooling.")
    elements: int = Field(20, ge=2, description="Elements of a set.")
    batch_size: int = Field(16, ge=1, description="Sets of a step.")
    steps: int = Field(50, ge=1, description="Steps of AdamW after which weights are compared.")


def run(options: PmaOptions) -> pd.DataFrame:
    """Return the table."""
    if options.dim % options.heads:
        raise ExperimentError(f"dim = {options.dim}: must be a multiple of heads = {options.heads}")
    tolerance = 1e-12 if options.dtype == "float64" else 1e-4
    results, model = Results(), _model(options)
    x_BNF, y_B1 = _sets(options, 0)
    order_BN = _orders(options, 0).to(options.device)
    plain, found = _pass(model, x_BNF, y_B1), _pass(model, permute_rows(x_BNF, order_BN), y_B1)
    results.equal("outputs", "row", found[0], plain[0], tolerance=tolerance, paper=CLAIM)
    results.equal("weight gradients", "row", found[1], plain[1], tolerance=tolerance, paper=CLAIM)
    aligned = unpermute_rows(found[2], order_BN)
    results.equal("input gradient, un-permuted", "row", aligned, plain[2], tolerance=tolerance)
    results.different("input gradient, as it is", "row", found[2], plain[2])

    with torch.no_grad():
        z_BND, moved_BND = model.encode(x_BNF), model.encode(permute_rows(x_BNF, order_BN))
        places_N = torch.linspace(0, 1, options.elements, dtype=x_BNF.dtype).to(x_BNF.device)
        pooled, control = (places_N @ z for z in (z_BND, moved_BND))
        pma = model.pooled(z_BND)
    results.equal("pooled", "row", model.pooled(moved_BND).detach(), pma, tolerance=tolerance)
    results.different("pooled", "row, by place in place of PMA", control, pooled)

    plain_weights, found_weights = _trained(options, rows=False), _trained(options, rows=True)
    trained = f"row, {options.steps} steps"
    results.equal(
        "weights",
        trained,
        found_weights,
        plain_weights,
        tolerance=1e-6 if options.dtype == "float64" else 1e-2,
    )
    return results.frame()


def _model(options: PmaOptions) -> SetTransformer:
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        model = SetTransformer(FEATURES, options.dim, options.heads, options.seeds, 1)
    return model.to(options.device, options.torch_dtype)


def _sets(options: PmaOptions, step: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1000 * options.seed + step)
    shape = (options.batch_size, options.elements, FEATURES)
    x_BNF = torch.randn(shape, generator=generator, dtype=options.torch_dtype).to(options.device)
    return x_BNF, x_BNF[..., :1].amax(1)


def _orders(options: PmaOptions, step: int) -> Tensor:
    secret = Secret.from_seed(options.seed, "pma", step)
    return random_permutations(secret, count=options.batch_size, length=options.elements)


def _pass(
    model: nn.Module, x_BNF: Tensor, y_B1: Tensor
) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """Return outputs, the gradients of the weights by name, and that of the input."""
    x_BNF = x_BNF.detach().requires_grad_()
    names, parameters = zip(*model.named_parameters(), strict=True)
    output = model(x_BNF)
    *found, input_gradient = torch.autograd.grad(
        functional.mse_loss(output, y_B1), [*parameters, x_BNF]
    )
    return output.detach(), dict(zip(names, found, strict=True)), input_gradient


def _trained(options: PmaOptions, *, rows: bool) -> dict[str, Tensor]:
    model = _model(options)
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(options.steps):
        x_BNF, y_B1 = _sets(options, step)
        if rows:
            x_BNF = permute_rows(x_BNF, _orders(options, step).to(options.device))
        optimiser.zero_grad()
        functional.mse_loss(model(x_BNF), y_B1).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return {name: parameter.detach() for name, parameter in model.named_parameters()}
