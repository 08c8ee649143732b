# SPDX-License-Identifier: Apache-2.0
"""BERT and GPT-2 of Hugging Face as subjects of experiments, small and random or given ones.

Nothing here is imported before it is needed: transformers comes with the extra `text`.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from pydantic import Field
from torch import nn

from equivariance.experiments.data.texts import TextOptions
from equivariance.experiments.errors import ExperimentError
from equivariance.experiments.examples import Examples, Inputs
from equivariance.experiments.subject import Subject
from equivariance.experiments.training import TrainingOptions
from equivariance.locking import Stack

__all__ = [
    "LanguageOptions",
    "bert_classifier",
    "encode",
    "gpt2_classifier",
    "gpt2_language_model",
    "tokenizer_for",
]


class LanguageOptions(TextOptions, TrainingOptions):
    """Text, a language model, and how it is trained."""

    model: str = Field(
        "",
        description="Folder or hub name of a pretrained model with its tokenizer; "
        "empty: a small random one of the sizes below.",
    )
    lr: float = Field(4e-3, gt=0, description="Learning rate, falling to zero along a cosine.")
    dim: int = Field(32, ge=4, description="Features of a token, if model is empty.")
    depth: int = Field(2, ge=1, description="Blocks, if model is empty.")
    heads: int = Field(4, ge=1, description="Attention heads, if model is empty.")
    vocabulary: int = Field(
        8000, ge=10, description="Most frequent words that are known, if model is empty."
    )
    max_length: int = Field(64, ge=4, description="Tokens after which a text is cut.")
    steps: int = Field(80, ge=1, description="Optimiser steps.")


def tokenizer_for(options: LanguageOptions, texts: Sequence[str]) -> Any:
    """Return the model's tokenizer, or one of whole words that is made from training texts.

    Raises
    ------
    ExperimentError
        If transformers is missing or the model has no tokenizer.
    """
    if options.model:
        try:
            tokenizer = _transformers().AutoTokenizer.from_pretrained(options.model)
        except (OSError, ValueError) as error:
            raise ExperimentError(f"model = {options.model}: no tokenizer: {error}") from error
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer
    return _word_tokenizer(options, texts)


def encode(
    tokenizer: Any,
    texts: Sequence[str] | Sequence[tuple[str, str]],
    labels: Sequence[int],
    length: int,
) -> Examples:
    """Encode texts, or pairs of them, as padded examples; batches are cut to their longest text."""
    found = tokenizer(
        list(texts), truncation=True, max_length=length, padding="max_length", return_tensors="pt"
    )
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = {name: found[name] for name in names if name in found}
    return Examples(inputs, torch.tensor(labels), _without_common_padding)


def bert_classifier(options: LanguageOptions, tokenizer: Any, classes: int) -> Subject:
    """Return BERT with a classifier on its CLS token; ExperimentError if it cannot be built."""
    transformers = _transformers()
    dropout = dict.fromkeys(
        ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"), 0.0
    )

    def small() -> nn.Module:
        config = transformers.BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=options.dim,
            num_hidden_layers=options.depth,
            num_attention_heads=options.heads,
            intermediate_size=4 * options.dim,
            max_position_embeddings=options.max_length,
            pad_token_id=tokenizer.pad_token_id,
            num_labels=classes,
            **dropout,
        )
        model: nn.Module = transformers.BertForSequenceClassification(config)
        return model

    given = {"num_labels": classes, "ignore_mismatched_sizes": True, **dropout}
    kind = transformers.BertForSequenceClassification
    return _subject(options, "hf-bert", small, lambda: kind.from_pretrained(options.model, **given))


def gpt2_classifier(options: LanguageOptions, tokenizer: Any, classes: int) -> Subject:
    """Return GPT-2 with a classifier on the last token; ExperimentError if it cannot be built."""
    kind = _transformers().GPT2ForSequenceClassification
    more = {"num_labels": classes, "pad_token_id": tokenizer.pad_token_id}
    return _gpt2(options, tokenizer, kind, more)


def gpt2_language_model(options: LanguageOptions, tokenizer: Any) -> Subject:
    """Return GPT-2 that predicts the next token; ExperimentError if it cannot be built."""
    return _gpt2(options, tokenizer, _transformers().GPT2LMHeadModel, {})


def _gpt2(options: LanguageOptions, tokenizer: Any, kind: Any, more: dict[str, Any]) -> Subject:
    more |= dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    more["use_cache"] = False

    def small() -> nn.Module:
        config = _transformers().GPT2Config(
            vocab_size=len(tokenizer),
            n_embd=options.dim,
            n_layer=options.depth,
            n_head=options.heads,
            n_positions=options.max_length,
            bos_token_id=None,
            eos_token_id=None,
            **more,
        )
        model: nn.Module = kind(config)
        return model

    return _subject(options, "hf-gpt2", small, lambda: kind.from_pretrained(options.model, **more))


def _subject(
    options: LanguageOptions,
    architecture: str,
    small: Callable[[], nn.Module],
    given: Callable[[], nn.Module],
) -> Subject:
    if not options.model and options.dim % options.heads:
        raise ExperimentError(f"dim = {options.dim}: must be a multiple of heads = {options.heads}")
    # The global generator, which initialisation uses, is seeded here and then restored.
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        try:
            model: Any = given() if options.model else small()
        except (OSError, ValueError, RuntimeError) as error:
            raise ExperimentError(f"model = {options.model}: cannot be loaded: {error}") from error
    longest = model.config.max_position_embeddings
    if options.max_length > longest:
        raise ExperimentError(
            f"max-length = {options.max_length}: the model takes at most {longest} tokens"
        )
    model.to(options.device, options.torch_dtype).eval()
    heads, dim = model.config.num_attention_heads, model.config.hidden_size
    return Subject(model, Stack(architecture=architecture, dim=dim, heads=heads, inner="headwise"))


def _without_common_padding(inputs: Inputs) -> Inputs:
    longest = int(inputs["attention_mask"].sum(1).max())
    return {name: tensor[:, :longest] for name, tensor in inputs.items()}


def _word_tokenizer(options: LanguageOptions, texts: Sequence[str]) -> Any:
    transformers = _transformers()
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.normalizer = normalizers.BertNormalizer()
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordLevelTrainer(
        vocab_size=options.vocabulary, special_tokens=special, show_progress=False
    )
    words.train_from_iterator(texts, trainer)
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def _transformers() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise ExperimentError(
            'text experiments need transformers: pip install "permsplit[text]"'
        ) from error
