# SPDX-License-Identifier: Apache-2.0
"""The trunk in training: what it refuses, how it weights clients, copies, averages and resumes."""

import pickle
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from split import (
    ModelSpec,
    OptimiserSpec,
    RefusedTensor,
    TrunkSpec,
    TrunkStep,
    WireTensor,
    build_split,
    decode,
    encode,
    weighted_mean,
)

SPEC = TrunkSpec(
    model=ModelSpec(
        name="vit_tiny_patch16_224", image_size=16, patch_size=4, dim=16, depth=2, heads=2
    ),
    cut=0,
    optimiser=OptimiserSpec(kind="sgd", lr_start=0.5, lr_end=0.05, weight_decay=0.01),
    returns="all",
    wire_dtype="fp32",
)
TOKENS, DIM = 17, 16


def make(**changes: object) -> TrunkStep:
    return TrunkStep(replace(SPEC, **changes), torch.device("cpu"))  # type: ignore[arg-type]


def draw(batch: int, seed: int = 0, shape: tuple[int, ...] = (TOKENS, DIM)) -> Tensor:
    return torch.randn(batch, *shape, generator=torch.Generator().manual_seed(seed))


def wires(tensors: Mapping[int, Tensor]) -> dict[int, WireTensor]:
    return {client: encode(tensor, "fp32") for client, tensor in tensors.items()}


def step(trunk: TrunkStep, seed: int, clients: tuple[int, ...] = (0, 1)) -> dict[int, Tensor]:
    """One step on two random batches of unequal size."""
    smashed = {client: draw(2 + client, 10 * seed + client) for client in clients}
    hidden = trunk.forward(wires(smashed), round=1, step=seed)
    gradients = {c: draw(2 + c, 10 * seed + c + 5, decode(h).shape[1:]) for c, h in hidden.items()}
    answers = trunk.backward(wires(gradients), clients=clients, progress=0.1 * seed)
    return {client: decode(wire) for client, wire in answers.items()}


def equal(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


# -- what it refuses --------------------------------------------------------------------------


def with_value(value: float) -> WireTensor:
    tensor = draw(2)
    tensor[1, 3, 4] = value
    return encode(tensor, "fp32")


BAD = {
    "tokens": (encode(draw(2, shape=(16, 16)), "fp32"), r"shape \[2, 16, 16\], not \[batch, 17"),
    "dim": (encode(draw(2, shape=(17, 8)), "fp32"), "not .batch, 17, 16"),
    "rank": (encode(draw(2, shape=(16,)), "fp32"), r"shape \[2, 16\]"),
    "empty": (encode(draw(0), "fp32"), r"shape \[0, 17, 16\]"),
    "half": (encode(draw(2), "fp16"), "are float16, not float32"),
    "double": (WireTensor(np.zeros((2, 17, 16))), "are float64, not float32"),
    "nan": (with_value(float("nan")), "hold NaN or infinity"),
    "infinity": (with_value(float("-inf")), "hold NaN or infinity"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_smashed_data_are_refused_before_anything_is_computed(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, text = BAD[kind]
    trunk = make()
    monkeypatch.setattr(trunk, "_run", lambda *a, **k: pytest.fail("computed"))
    for call in (lambda s: trunk.forward(s, round=1, step=0), trunk.infer):
        with pytest.raises(RefusedTensor, match=f"client 4: smashed data .*{text}") as caught:
            call({2: encode(draw(2), "fp32"), 4: bad})
        assert caught.value.client == 4


@pytest.mark.parametrize("kind", ["tokens", "half", "nan"])
def test_a_bad_gradient_is_refused_and_the_step_can_go_on(kind: str) -> None:
    trunk, oracle = make(), make()
    smashed = wires({0: draw(2, 1), 1: draw(2, 2)})
    good = wires({0: draw(2, 3)})
    for one in (trunk, oracle):
        one.forward(smashed, round=1, step=0)
    before = trunk.state()[0]
    with pytest.raises(RefusedTensor, match="client 1: gradient"):
        trunk.backward({**good, 1: BAD[kind][0]}, clients=(0, 1), progress=0.0)
    assert equal(trunk.state()[0], before)
    answers = trunk.backward(good, clients=(0, 1), progress=0.0)
    expected = oracle.backward(good, clients=(0, 1), progress=0.0)
    assert answers.keys() == {0}
    assert torch.equal(decode(answers[0]), decode(expected[0]))
    assert equal(trunk.state()[0], oracle.state()[0])


def test_the_refusal_pickles() -> None:
    again = pickle.loads(pickle.dumps(RefusedTensor(3, "bad")))
    assert (again.client, str(again)) == (3, "client 3: bad")


# -- one batch of many clients ----------------------------------------------------------------


def test_clients_with_unequal_batches_equal_one_batch() -> None:
    sizes = {0: 1, 3: 4, 5: 2}
    smashed = {client: draw(size, client) for client, size in sizes.items()}
    joint = torch.cat(list(smashed.values()))
    target = draw(len(joint), 99)

    def loss_gradient(hidden: Tensor, target: Tensor) -> Tensor:
        return 2 * (hidden - target) / hidden.numel()  # of the batch's mean square

    whole = make()
    hidden = decode(whole.forward({0: encode(joint, "fp32")}, round=1, step=0)[0])
    (back,) = whole.backward(
        wires({0: loss_gradient(hidden, target)}), clients=(0,), progress=0.0
    ).values()

    trunk = make()
    answers = trunk.forward(wires(smashed), round=1, step=0)
    parts = dict(zip(sizes, torch.split(target, list(sizes.values())), strict=True))
    gradients = {c: loss_gradient(decode(h), parts[c]) for c, h in answers.items()}
    returned = trunk.backward(wires(gradients), clients=(0, 3, 5), progress=0.0)
    torch.testing.assert_close(torch.cat([decode(h) for h in answers.values()]), hidden)
    torch.testing.assert_close(trunk.state()[0], whole.state()[0], rtol=1e-5, atol=1e-7)
    # Each client gets the gradient of its own mean loss.
    for client, piece in zip(sizes, torch.split(decode(back), list(sizes.values())), strict=True):
        own = piece * (len(joint) / sizes[client])
        torch.testing.assert_close(decode(returned[client]), own, rtol=1e-5, atol=1e-7)


def test_a_client_that_did_not_answer_leaves_no_trace() -> None:
    with_missing, without = make(), make()
    smashed = {0: draw(2, 1), 1: draw(3, 2), 2: draw(2, 3)}
    gradients = wires({0: draw(2, 4), 2: draw(2, 5)})
    with_missing.forward(wires(smashed), round=1, step=0)
    some = with_missing.backward(gradients, clients=(0, 1, 2), progress=0.0)
    without.forward(wires({0: smashed[0], 2: smashed[2]}), round=1, step=0)
    same = without.backward(gradients, clients=(0, 2), progress=0.0)
    assert some.keys() == same.keys() == {0, 2}
    for client in some:
        torch.testing.assert_close(decode(some[client]), decode(same[client]))
    torch.testing.assert_close(with_missing.state()[0], without.state()[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_pooled_hidden_is_the_pooling_of_all(pool: str) -> None:
    model = replace(SPEC.model, pool=pool)
    smashed = wires({0: draw(2)})
    pooled = decode(make(model=model, returns="pooled").infer(smashed)[0])
    hidden = decode(make(model=model).infer(smashed)[0])
    expected = hidden[:, 0] if pool == "cls" else hidden[:, 1:].mean(dim=1)
    torch.testing.assert_close(pooled, expected)


def test_it_computes_what_the_trunk_of_the_model_computes() -> None:
    trunk = build_split(SPEC.model, 0).trunk
    smashed = draw(3)
    torch.testing.assert_close(decode(make().infer(wires({7: smashed}))[7]), trunk(smashed))


# -- shared and own ---------------------------------------------------------------------------


def test_own_trunks_are_as_if_alone_and_averaged_with_their_moments() -> None:
    own = make(sharing="own")
    own.begin_round((0, 1))
    for index in range(2):
        step(own, index)
    alone: dict[int, tuple[dict[str, Tensor], dict[str, Tensor]]] = {}
    for client in (0, 1):
        single = make()
        for index in range(2):
            step(single, index, (client,))
        alone[client] = single.state()
    own.end_round({0: 1.0, 1: 3.0})
    for part in (0, 1):
        assert alone[0][part]
        expected = weighted_mean({c: alone[c][part] for c in alone}, {0: 1.0, 1: 3.0})
        torch.testing.assert_close(own.state()[part], expected)


def test_evaluation_between_rounds_uses_the_average() -> None:
    own = make(sharing="own")
    own.begin_round((0, 1))
    step(own, 0)
    own.end_round({0: 1.0, 1: 1.0})
    probe = draw(2, 50)
    single = make()
    single.load(*own.state())
    for client in (0, 1):
        hidden = own.infer(wires({client: probe}))[client]
        torch.testing.assert_close(decode(hidden), decode(single.infer(wires({0: probe}))[0]))


def test_a_dropped_clients_copy_is_not_averaged() -> None:
    own, single = make(sharing="own"), make()
    own.begin_round((0, 1))
    step(own, 0)
    step(single, 0, (0,))
    own.end_round({0: 5.0})
    assert equal(own.state()[0], single.state()[0])


def test_a_shared_trunk_ignores_the_ends_of_rounds() -> None:
    trunk = make()
    trunk.begin_round((0, 1))
    step(trunk, 0)
    before = trunk.state()
    trunk.end_round({0: 1.0, 1: 3.0})
    assert equal(trunk.state()[0], before[0])


# -- state ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sgd", "adamw"])
def test_loaded_state_goes_on_as_if_never_stopped(kind: str) -> None:
    changes = {"optimiser": replace(SPEC.optimiser, kind=kind, lr_start=0.01, lr_end=0.0)}
    straight, stopped, resumed = make(**changes), make(**changes), make(**changes)
    for index in range(4):
        step(straight, index)
        if index < 2:
            step(stopped, index)
    resumed.load(*stopped.state())
    assert all(equal(*pair) for pair in zip(resumed.state(), stopped.state(), strict=True))
    for index in range(2, 4):
        step(resumed, index)
    assert all(equal(*pair) for pair in zip(resumed.state(), straight.state(), strict=True))


def test_a_state_is_a_copy() -> None:
    trunk = make()
    step(trunk, 0)
    weights, moments = trunk.state()
    kept = {n: t.clone() for n, t in {**weights, **moments}.items()}
    step(trunk, 1)
    assert equal({**weights, **moments}, kept)
    assert not equal(trunk.state()[0], weights)


@pytest.mark.parametrize("forget", ["begin", "load"])
def test_graphs_that_wait_are_forgotten(forget: str) -> None:
    trunk = make()
    trunk.forward(wires({0: draw(2)}), round=1, step=0)
    if forget == "begin":
        trunk.begin_round((0,))
    else:
        trunk.load(*trunk.state())
    with pytest.raises(KeyError):
        trunk.backward(wires({0: draw(2)}), clients=(0,), progress=0.0)


def test_drop_path_is_a_function_of_round_and_step() -> None:
    model = replace(SPEC.model, drop_path=0.9)
    smashed = wires({0: draw(8)})

    def hidden(round: int, step: int) -> Tensor:
        return decode(make(model=model).forward(smashed, round=round, step=step)[0])

    assert torch.equal(hidden(1, 0), hidden(1, 0))
    assert not torch.equal(hidden(1, 0), hidden(1, 1))
    assert not torch.equal(hidden(1, 0), hidden(2, 0))
    trunk = make(model=model)
    assert torch.equal(decode(trunk.infer(smashed)[0]), decode(make().infer(smashed)[0]))
