# SPDX-License-Identifier: Apache-2.0
"""Rules for Hugging Face's BERT: post-norm blocks, separate query, key and value."""

from equivariance.rules.architecture import Architecture
from equivariance.rules.rule import AFFINE, Axis, in_block, outside

__all__ = ["HF_BERT"]

_QUERY = r"attention\.self\.(?:query|key|value)"
_TABLE = r"embeddings\.(?:word|position|token_type)_embeddings"
_HEAD = r"(?:classifier|qa_outputs|cls\.seq_relationship)"
_MASKED = r"cls\.predictions\."

HF_BERT = Architecture(
    name="hf-bert",
    blocks=(
        in_block(_QUERY + r"\.weight", Axis.INNER, Axis.STREAM),
        in_block(_QUERY + r"\.bias", Axis.INNER),
        in_block(r"attention\.output\.dense\.weight", Axis.STREAM, Axis.INNER),
        in_block(r"attention\.output\.dense\.bias", Axis.STREAM),
        in_block(r"(?:attention\.)?output\.LayerNorm" + AFFINE, Axis.STREAM),
        in_block(r"intermediate\.dense\.weight", Axis.KEEP, Axis.STREAM),
        in_block(r"intermediate\.dense\.bias", Axis.KEEP),
        in_block(r"output\.dense\.weight", Axis.STREAM, Axis.KEEP),
        in_block(r"output\.dense\.bias", Axis.STREAM),
    ),
    outside=(
        outside(_TABLE + r"\.weight", Axis.KEEP, Axis.STREAM),
        outside(r"embeddings\.(?:position_ids|token_type_ids)", Axis.KEEP, Axis.KEEP),
        outside(r"embeddings\.LayerNorm" + AFFINE, Axis.STREAM),
        # A classifier reads the stream itself (a label for each token) or what the pooler made of
        # it. So that one rule serves both, the pooler's output is permuted like the stream.
        outside(r"pooler\.dense\.weight", Axis.STREAM, Axis.STREAM),
        outside(r"pooler\.dense\.bias", Axis.STREAM),
        outside(_HEAD + r"\.weight", Axis.KEEP, Axis.STREAM),
        outside(_HEAD + r"\.bias", Axis.KEEP),
        # The word predictor's table is the word embedding's: the stream reaches up to it.
        outside(_MASKED + r"transform\.dense\.weight", Axis.STREAM, Axis.STREAM),
        outside(_MASKED + r"transform\.dense\.bias", Axis.STREAM),
        outside(_MASKED + r"transform\.LayerNorm" + AFFINE, Axis.STREAM),
        outside(_MASKED + r"decoder\.weight", Axis.KEEP, Axis.STREAM),
        outside(_MASKED + r"(?:decoder\.)?bias", Axis.KEEP),
    ),
    stack=r"(?:.*\.)?encoder\.layer",
    types=frozenset({"transformers.models.bert.modeling_bert.BertLayer"}),
)
