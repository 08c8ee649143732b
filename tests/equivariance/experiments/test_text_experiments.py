# SPDX-License-Identifier: Apache-2.0
"""Text experiments at their smallest: equalities hold, and what should break is seen to break."""

import builtins
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from equivariance.experiments import EXPERIMENTS, ExperimentError

TEXT = ("bert-imdb", "gpt2-imdb", "bert-snli", "gpt2-wikitext")
TINY = {"data": "synthetic:40", "test-texts": 8, "dim": 8, "heads": 2, "depth": 2}
TINY |= {"steps": 3, "batch-size": 4, "max-length": 24}


def ran(name: str, **options: Any) -> pd.DataFrame:
    values = TINY | {key.replace("_", "-"): value for key, value in options.items()}
    return EXPERIMENTS[name].run_with(values)


@pytest.mark.parametrize("name", TEXT)
def test_equalities_hold_and_controls_differ(name: str) -> None:
    pytest.importorskip("transformers")
    table = ran(name)
    equal = table[table["claim"] == "equal"]
    assert equal["holds"].all()
    assert equal[equal["quantity"].isin(["outputs", "gradients"])]["max_rel"].max() < 1e-12
    assert equal[equal["quantity"] == "weights"]["max_rel"].max() < 1e-9
    assert table[table["claim"] == "different"]["holds"].tolist() == [True]
    assert set(equal["case"]) == (
        {"row", "trained row"} if name == "bert-snli" else {"column", "trained column"}
    )


def test_a_given_model_in_files_of_ones_own(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary))
    transformers.BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    config = transformers.BertConfig(
        vocab_size=8,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
    )
    transformers.BertModel(config).save_pretrained(tmp_path)
    reviews = tmp_path / "reviews.jsonl"
    lines = [f'{{"text": "{word} film", "label": {i % 2}}}' for i, word in enumerate(vocabulary)]
    reviews.write_text("\n".join(lines))
    files = {"data": str(reviews), "test_data": str(reviews), "model": str(tmp_path)}
    table = ran("bert-imdb", **files, max_length=16)
    assert table[table["claim"] == "equal"]["holds"].all()
    with pytest.raises(ExperimentError, match="max-length = 17: the model takes at most 16"):
        ran("bert-imdb", **files, max_length=17)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ExperimentError, match=r'pip install "permsplit\[text\]"'):
        ran("bert-imdb")


def test_nothing_but_text_experiments_needs_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] in ("transformers", "flwr", "ray"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert EXPERIMENTS["pma"].run_with({"steps": 1})["holds"].all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 9}, "dim = 9: must be a multiple of heads = 2"),
        ({"model": "./nowhere"}, "model = ./nowhere: no tokenizer"),
    ],
)
def test_models_that_cannot_be_built(options: dict[str, Any], message: str) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(ExperimentError, match=message):
        ran("gpt2-imdb", **options)


def test_without_padding_the_control_would_show_nothing() -> None:
    pytest.importorskip("transformers")
    with pytest.raises(ExperimentError, match="test-texts = 1: all 1 have one length"):
        ran("bert-snli", test_texts=1)
