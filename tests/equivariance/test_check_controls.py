# SPDX-License-Identifier: Apache-2.0
"""What breaks equivariance is found, where it begins, and told why."""

import copy
import dataclasses
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.testing import assert_close

from equivariance import RowPermutation, Secret, check_equivariance, first_broken

MakeBlocks = Callable[..., nn.Module]
X = (3, 6, 16)


def broken(model: nn.Module, inputs: Any, **options: Any) -> tuple[str, str, str]:
    """Return quantity, module and reason of the line where the model begins to break."""
    report = check_equivariance(model.eval(), inputs, **{"tests": ("row",), **options})
    line = first_broken(report)
    assert line is not None
    assert line["error"] > 1e-3
    return line["quantity"], line["module"], line["why"]


class TokenConvolution(nn.Module):
    """A convolution along the tokens, beside the stream."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(16, 16, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x.transpose(1, 2)).transpose(1, 2)


class GridConvolution(nn.Module):
    """A convolution over the grid that the tokens make, as in hybrid ViTs."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(16, 16, 3, padding=1, groups=16)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x.mT.unflatten(2, (2, 3))).flatten(2).mT


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pos_embed = nn.Parameter(torch.randn(1, 6, 16))
        self.norm = nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.pos_embed)


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.tokens(x.mT).mT


class FirstToken(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, 0]


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(16, 16, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.rnn(x)[0]


@pytest.mark.parametrize(
    ("part", "where", "why"),
    [
        (TokenConvolution, "1.conv", "convolution"),
        (GridConvolution, "1.conv", "convolution"),
        (Positions, "1", r"position added inside (pos_embed)"),
        (Mixer, "1.tokens", "a linear layer along the token axis"),
        (FirstToken, "1", "reads tokens by place"),
        (Recurrent, "1.rnn", "recurrent"),
    ],
)
def test_rows(make_blocks: MakeBlocks, part: type[nn.Module], where: str, why: str) -> None:
    model = nn.Sequential(*make_blocks(depth=1), part())
    found = broken(model, torch.randn(X))
    assert found[:2] == ("output", where)
    assert why in found[2]
    report = check_equivariance(model, torch.randn(X), tests=("row",))
    before = report[(report["quantity"] == "output") & report["module"].str.startswith("0")]
    assert len(before) > 10
    assert before["holds"].all()
    assert (report["why"] != "").sum() == 1


def test_columns_across_heads(make_blocks: MakeBlocks) -> None:
    mixing = torch.arange(16).roll(1)
    quantity, module, why = broken(make_blocks(), torch.randn(X), tests=("column",), columns=mixing)
    assert (quantity, module) == ("output", "0.attn")
    assert "mixes heads: 4 of 4 heads" in why
    free = check_equivariance(
        make_blocks(), torch.randn(X), tests=("column",), columns=mixing, inner="none"
    )
    assert free["holds"].all()


def test_columns_of_an_unknown_module_are_not_claimed(make_blocks: MakeBlocks) -> None:
    model = nn.Sequential(*make_blocks(depth=1), TokenConvolution()).eval()
    report = check_equivariance(model, torch.randn(X), tests=("column",))
    assert report["holds"].tolist() == [False]
    line = first_broken(report)
    assert line is not None
    assert "1.conv.weight [16, 16, 3]: no rule for this name" in line["why"]


def test_rows_under_a_causal_mask() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=4, vocab_size=20, n_positions=9,
                                     bos_token_id=0, eos_token_id=0)  # fmt: skip
    model = transformers.GPT2Model(config)
    words = torch.randint(0, 20, (3, 7))
    quantity, module, why = broken(model, words, at="blocks")
    assert (quantity, module) == ("output", "h.0.attn")
    assert why.startswith("causal mask")
    quantity, module, why = broken(model, words)
    assert "position added inside (wpe)" in why
    assert "give position_ids" in why


@pytest.mark.parametrize("per_sample", [True, False])
def test_rows_of_a_causal_torch_encoder(make_blocks: MakeBlocks, per_sample: bool) -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 20, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(6)
    inputs = {"src": torch.randn(X), "src_mask": mask, "is_causal": True}
    quantity, module, why = broken(layer, inputs, per_sample=per_sample)
    assert (quantity, module) == ("output", "self_attn")
    assert why.startswith("causal mask")


def test_a_padding_mask_that_stays() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 20, batch_first=True)
    padding = torch.zeros(3, 6, dtype=torch.bool)
    padding[:, 4:] = True
    inputs = {"src": torch.randn(X), "src_key_padding_mask": padding}
    found = broken(layer, inputs, keep=["src_key_padding_mask"])
    assert found[:2] == ("output", "self_attn")
    assert found[2] == "not permuted along with the tokens: src_key_padding_mask"


def test_bert_s_padding_mask_and_pooler() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
                                     intermediate_size=12, vocab_size=20)  # fmt: skip
    model = transformers.BertModel(config)
    mask = torch.ones(3, 7, dtype=torch.int64)
    mask[:, 4:] = 0
    inputs = {"input_ids": torch.randint(0, 20, (3, 7)), "attention_mask": mask}
    found = broken(model, inputs, at="blocks", keep=["attention_mask"])
    assert found[1:] == (
        "encoder.layer.0.attention.self",
        "not permuted along with the tokens: attention_mask",
    )
    found = broken(model, inputs)
    assert found[1] == "embeddings"
    assert "position added inside" in found[2]
    inputs["position_ids"] = torch.arange(7).unsqueeze(0)
    found = broken(model, inputs)
    assert found[1] == "pooler"
    assert "`prefix`" in found[2]


@pytest.mark.parametrize("test", ["row", "column"])
@pytest.mark.parametrize("options", [{"proj_drop": 0.5}, {"drop_path": 0.5}, {"attn_drop": 0.5}])
def test_active_randomness(make_blocks: MakeBlocks, test: str, options: dict[str, float]) -> None:
    """A drop-path drops whole samples, so neither permutation disturbs it; the others do break."""
    model = make_blocks(**options).train()
    report = check_equivariance(model, torch.randn(X), tests=(test,))
    line = first_broken(report)
    if "drop_path" in options:
        assert line is None
    else:
        assert line is not None
        assert "dropout or drop-path is active" in line["why"]
    assert check_equivariance(model.eval(), torch.randn(X), tests=(test,))["holds"].all()


class ForwardOnly(nn.Module):
    """Equivariant forward; its gradient is scaled by place."""

    def forward(self, x: Tensor) -> Tensor:
        weight = torch.linspace(0, 1, x.shape[1]).unsqueeze(1).to(x.dtype)
        return x.detach() + (x - x.detach()) * weight


def test_a_gradient_that_breaks_alone_is_found(make_blocks: MakeBlocks) -> None:
    model = nn.Sequential(*make_blocks(depth=1), ForwardOnly())
    quantity, module, why = broken(model, torch.randn(X))
    assert quantity == "gradient"
    assert module == "0"
    assert "the forward pass holds, this gradient does not" in why


def test_the_model_stays_as_it_is(make_blocks: MakeBlocks) -> None:
    model = make_blocks().float()
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    check_equivariance(model, torch.zeros(X), tests=("row", "column", "both"))
    assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None for p in model.parameters())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_given_permutations_are_used(make_blocks: MakeBlocks) -> None:
    """The identity leaves everything exactly the same; columns alike."""
    report = check_equivariance(
        make_blocks(),
        torch.randn(X),
        rows=RowPermutation.identity(6),
        columns=torch.arange(16),
    )
    assert report["error"].max() == 0.0
    drawn = check_equivariance(make_blocks(), torch.randn(X), secret=Secret.from_seed(5))
    assert drawn["error"].max() > 0.0


def test_wrong_questions_are_refused(make_blocks: MakeBlocks) -> None:
    model, x = make_blocks(), torch.randn(X)
    with pytest.raises(ValueError, match=r"tests \['rows'\] at None: allowed are tests row, col"):
        check_equivariance(model, x, tests=("rows",))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"the stream is \[B, N, D\], or token ids"):
        check_equivariance(model, torch.randn(2, 3, 4, 5), at="input")
    with pytest.raises(ValueError, match="the first must be a tensor"):
        check_equivariance(model, {})
    layer = nn.TransformerEncoderLayer(16, 4, 20, batch_first=True)
    with pytest.raises(ValueError, match="torch-encoder: one stack of blocks is wanted; found ar"):
        check_equivariance(layer, x, at="blocks")


class Rows(nn.Module):
    """Gives what a function makes of its input."""

    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


@dataclasses.dataclass
class Result:
    value: Tensor


def by_place(x: Tensor) -> Tensor:
    return x + torch.linspace(0, 1, x.shape[1], dtype=x.dtype).unsqueeze(1)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: Result(by_place(x)),
        lambda x: [{"deep": Result(by_place(x))}],
        lambda x: by_place(x)[..., :1] > 0.5,
        lambda x: (1000 * by_place(x)).long(),
        lambda x: torch.complex(by_place(x), x),
        # A single infinite entry must not make every other error small.
        lambda x: torch.cat([by_place(x), torch.full_like(x[..., :1], torch.inf)], dim=2),
        lambda x: torch.ones_like(x) * torch.linspace(0, 1, x.shape[1], dtype=x.dtype)[:, None],
    ],
    ids=["dataclass", "nested", "bool", "whole", "complex", "infinite", "constant"],
)
def test_outputs_of_any_kind_are_compared(function: Callable[[Tensor], Any]) -> None:
    report = check_equivariance(Rows(function), torch.randn(X), tests=("row",))
    assert not report["holds"].all()


@pytest.mark.parametrize(
    "function",
    [
        Result,
        lambda x: {"deep": (x > 0, (1000 * x).long(), torch.complex(x, x))},
        lambda x: torch.where(x > 0, x, -torch.inf),
        lambda x: x.mean(dim=1),
    ],
    ids=["dataclass", "kinds", "infinite", "pooled"],
)
def test_outputs_of_any_kind_hold(function: Callable[[Tensor], Any]) -> None:
    assert check_equivariance(Rows(function), torch.randn(X), tests=("row",))["holds"].all()


def test_an_output_that_stays_in_place_is_no_equivariance() -> None:
    model = Rows(lambda x: torch.ones_like(x).cumsum(1) + 0 * x.sum())
    _, module, why = broken(model, torch.randn(X))
    assert module == ""
    assert "has the shape of tokens and does not move with them" in why


def test_a_model_without_tensors_is_refused() -> None:
    with pytest.raises(ValueError, match="the model returns str, in which no tensor is found"):
        check_equivariance(Rows(lambda x: "text"), torch.randn(X), tests=("row",))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_tolerance_of_low_precision_is_asked_for(dtype: torch.dtype) -> None:
    model, x = Rows(by_place), torch.randn(X)
    with pytest.raises(ValueError, match=f"tolerance: must be given for {dtype}"):
        check_equivariance(model, x, tests=("row",), dtype=dtype)
    with pytest.raises(ValueError, match=r"tolerance 9\.7: allowed is 0 \.\.\. 0\.1"):
        check_equivariance(model, x, tests=("row",), dtype=dtype, tolerance=9.7)
    report = check_equivariance(model, x, tests=("row",), dtype=dtype, tolerance=0.02)
    assert not report["holds"].all()


def test_float32_finds_a_break_of_a_thousandth() -> None:
    model = Rows(lambda x: x + 1e-3 * (by_place(x) - x))
    report = check_equivariance(model, torch.randn(X), tests=("row",), dtype=torch.float32)
    assert not report["holds"].all()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("tokens", "prefix"), [(2, 0), (3, 1)])
def test_drawn_permutations_always_move_something(tokens: int, prefix: int, seed: int) -> None:
    """Half of the orders of two tokens are the identity, under which everything holds."""
    model = Rows(by_place)
    for per_sample in (True, False):
        report = check_equivariance(
            model,
            torch.randn(2, tokens, 4),
            tests=("row",),
            prefix=prefix,
            per_sample=per_sample,
            secret=Secret.from_seed(seed),
        )
        assert not report["holds"].all()


@pytest.mark.parametrize("seed", range(8))
def test_drawn_columns_always_move_something(seed: int) -> None:
    layer = nn.TransformerEncoderLayer(2, 2, 4, batch_first=True).eval()
    report = check_equivariance(
        layer, torch.randn(3, 4, 2), tests=("column",), secret=Secret.from_seed(seed)
    )
    assert "features" in set(report["relation"])


def test_nothing_to_permute_is_refused() -> None:
    model = Rows(by_place)
    with pytest.raises(ValueError, match="1 tokens, of which 0 stay"):
        check_equivariance(model, torch.randn(2, 1, 4), tests=("row",))
    with pytest.raises(ValueError, match=r"3 tokens, of which 2 stay \(prefix\); at least two"):
        check_equivariance(model, torch.randn(2, 3, 4), tests=("row",), prefix=2)
    with pytest.raises(ValueError, match="the batch is empty"):
        check_equivariance(model, torch.randn(0, 3, 4), tests=("row",))
    layer = nn.TransformerEncoderLayer(1, 1, 4, batch_first=True).eval()
    with pytest.raises(ValueError, match="nothing to permute: the model has 1 feature"):
        check_equivariance(layer, torch.randn(2, 3, 1), tests=("column",))


class Variadic(nn.Module):
    def forward(self, *args: Tensor, scale: float = 1.0) -> Tensor:
        return by_place(args[0]) * scale + args[1]


def test_arguments_without_names_are_passed_on() -> None:
    x, mask = torch.randn(X), torch.randn(X)
    quantity, module, _ = broken(Variadic(), [x, mask])
    assert (quantity, module) == ("output", "")
    holds = check_equivariance(Rows(lambda x: x.relu()), [x], tests=("row",))
    assert holds["holds"].all()


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_wrappers_are_looked_through(make_blocks: MakeBlocks) -> None:
    plain = check_equivariance(make_blocks(), torch.randn(X))
    for wrap in (torch.compile, nn.DataParallel):
        report = check_equivariance(wrap(make_blocks()), torch.randn(X))
        assert report["holds"].all()
        assert list(report["module"]) == list(plain["module"])
    with pytest.raises(ValueError, match="the model is scripted or traced"):
        check_equivariance(torch.jit.trace(make_blocks(), torch.randn(X).double()), torch.randn(X))


class HeadBias(nn.Module):
    """Attention with a bias [heads, N, N], [1, heads, N, N] or [B, heads, N, N]."""

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        split = x.reshape(*x.shape[:2], 4, -1).transpose(1, 2)
        out = functional.scaled_dot_product_attention(split, split, split, attn_mask=bias)
        return out.transpose(1, 2).reshape(x.shape)


@pytest.mark.parametrize(
    ("shape", "per_sample"),
    [
        ((4, 6, 6), False),
        *product([(1, 4, 6, 6), (1, 1, 1, 6), (2, 1, 6, 6), (2, 4, 6, 6)], [True, False]),
    ],
)
def test_biases_of_heads_move_along(shape: tuple[int, ...], per_sample: bool) -> None:
    """Two samples divide four heads: the bias must not be taken for one of samples."""
    inputs = {"x": torch.randn(2, 6, 16), "bias": torch.randn(shape)}
    report = check_equivariance(HeadBias(), inputs, tests=("row",), heads=4, per_sample=per_sample)
    assert report["holds"].all()


class Masked(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return x * mask.unsqueeze(2)


def test_a_square_mask_without_a_telling_name_is_refused() -> None:
    mask = torch.rand(4, 4)
    with pytest.raises(ValueError, match=r"mask \[4, 4\]: by samples and tokens, or by pairs"):
        check_equivariance(Masked(), {"x": torch.randn(4, 4, 8), "mask": mask}, tests=("row",))
    inputs = {"x": torch.randn(3, 4, 8), "mask": mask[:3]}
    assert check_equivariance(Masked(), inputs, tests=("row",))["holds"].all()


def test_one_mask_for_all_cannot_follow_an_order_for_each() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 20, batch_first=True)
    inputs = {"src": torch.randn(X), "src_mask": torch.randn(6, 6)}
    assert broken(layer, inputs)[2].endswith("per_sample=False")
    assert check_equivariance(layer.eval(), inputs, tests=("row",), per_sample=False)["holds"].all()


class PostNormed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.post_norm = nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        return by_place(self.post_norm(x))


def test_a_norm_after_is_no_position() -> None:
    _, module, why = broken(PostNormed(), torch.randn(X))
    assert module == ""
    assert "position" not in why
