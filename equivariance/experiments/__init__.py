# SPDX-License-Identifier: Apache-2.0
"""The paper's experiments, each beside the paper's numbers.

"Permutation Equivariance of Transformers and Its Applications" (Xu et al., CVPR 2024). An
experiment is a file here: a frozen options class and `run(options)`, which returns a pandas table
whose rows say what was measured, what is claimed, within which tolerance, and whether it holds (see
`results`). Defaults are small and run offline; the full setting is a matter of options. To add one:
its file, and a line in `EXPERIMENTS`.

========================  ==================================================
`experiment`, `options`   how experiments are declared and called
`results`                 the table and its claims
`examples`, `data`        images and text: computed, from files, from the hub
`models`, `subject`       models under test and their conjugated twins
`sandwich`, `dense`       permuting around a stack of blocks
`training`, `twins`       training, evaluation, and plain against permuted
`measure`                 operations, bytes, seconds
========================  ==================================================
"""

from equivariance.experiments.errors import ExperimentError
from equivariance.experiments.experiment import Experiment
from equivariance.experiments.options import Options, describe_options, parse_options
from equivariance.experiments.results import Claim, Results, failures

__all__ = [
    "EXPERIMENTS",
    "Claim",
    "Experiment",
    "ExperimentError",
    "Options",
    "Results",
    "describe_options",
    "failures",
    "parse_options",
]

EXPERIMENTS: dict[str, Experiment] = {
    "vit-test-time": Experiment(
        "vit_test_time", "ViTTestTimeOptions", "A trained ViT under row and column permutation."
    ),
    "vit-training": Experiment(
        "vit_training", "ViTTrainingOptions", "Training a ViT plain, row- and column-permuted."
    ),
    "vit-adapter": Experiment(
        "vit_adapter", "AdapterOptions", "Dense prediction with injectors and extractors."
    ),
    "bert-snli": Experiment(
        "bert_snli", "BertSnliOptions", "A two-layer BERT with padding mask, row-permuted."
    ),
    "bert-imdb": Experiment(
        "bert_imdb", "BertImdbOptions", "Full BERT with padding mask, column-permuted."
    ),
    "gpt2-imdb": Experiment(
        "gpt2_imdb", "Gpt2ImdbOptions", "GPT-2 as a classifier, column-permuted."
    ),
    "gpt2-wikitext": Experiment(
        "gpt2_wikitext", "Gpt2WikitextOptions", "The perplexity of GPT-2, column-permuted."
    ),
    "pma": Experiment(
        "pma", "PmaOptions", "Pooling by multihead attention (Set Transformer), row-permuted."
    ),
    "authorization": Experiment(
        "authorization", "AuthorizationOptions", "Fine-tuning a locked ViT with and without key."
    ),
    "cost": Experiment(
        "cost", "CostOptions", "Operations, memory and time of permuting: index against dense."
    ),
}
