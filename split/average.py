# SPDX-License-Identifier: Apache-2.0
"""The weighted mean of named tensors, for clients' weights and for trunks of their own."""

from collections.abc import Mapping

from torch import Tensor


def weighted_mean(
    states: Mapping[int, Mapping[str, Tensor]], weights: Mapping[int, float]
) -> dict[str, Tensor]:
    """The mean of the clients' ``states``, client c weighted by ``weights[c]`` >= 0.

    A name that not all clients have (a moment of one that made no step) is averaged over those
    that have it. Summed in the order of the clients' numbers, so that the result does not depend
    on who answered first. Whole numbers (step counts) are averaged as floats where they are
    floats, and taken from the first client where they are integers.
    """
    mean: dict[str, Tensor] = {}
    for name in sorted({name for state in states.values() for name in state}):
        present = [client for client in sorted(states) if name in states[client]]
        first = states[present[0]][name]
        if not first.is_floating_point():
            mean[name] = first.clone()
            continue
        total = sum(weights[client] for client in present)
        mean[name] = first * (weights[present[0]] / total)
        for client in present[1:]:
            mean[name] = mean[name] + states[client][name] * (weights[client] / total)
    return mean
