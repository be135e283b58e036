"""Small BERT and GPT-2 with made data, trained by the Trainer of transformers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from optional import need

need("transformers")
import transformers

VOCABULARY, LENGTH = 120, 16
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def bert(dropout: float = 0.0) -> Any:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
    )
    return transformers.BertForSequenceClassification(config).train()


def gpt2(dropout: float = 0.0) -> Any:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=32, n_embd=32, n_layer=2, n_head=4, use_cache=False, bos_token_id=0, eos_token_id=0,
        resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout,
    )
    return transformers.GPT2LMHeadModel(config).train()


def questions(count: int = 64) -> list[dict[str, torch.Tensor]]:
    """Rows of several lengths, filled up, whose label is the parity of their second token."""
    draw = torch.Generator().manual_seed(1)
    rows = []
    for _ in range(count):
        tokens = torch.randint(1, VOCABULARY, (LENGTH,), generator=draw)
        mask = (torch.arange(LENGTH) < torch.randint(4, LENGTH + 1, (), generator=draw)).long()
        rows.append({"input_ids": tokens * mask, "attention_mask": mask, "labels": tokens[1] % 2})
    return rows


def stories(count: int = 64) -> list[dict[str, torch.Tensor]]:
    """Rows in which each token is one of two that may follow the one before; a beginning of some length has no label, so that
    the number of labels is another in each step."""
    draw = torch.Generator().manual_seed(2)
    rows = []
    for _ in range(count):
        tokens = [int(torch.randint(VOCABULARY, (), generator=draw))]
        while len(tokens) < LENGTH:
            tokens.append((3 * tokens[-1] + int(torch.randint(2, (), generator=draw))) % VOCABULARY)
        labels = torch.tensor(tokens)
        labels[: int(torch.randint(1, LENGTH - 4, (), generator=draw))] = -100
        rows.append({"input_ids": torch.tensor(tokens), "labels": labels})
    return rows


def make_trainer(model: torch.nn.Module, rows: list[Any], folder: str, **arguments: Any) -> Any:
    """Four rows in a batch, four batches in a step."""
    defaults = dict(
        max_steps=20, per_device_train_batch_size=4, gradient_accumulation_steps=4, learning_rate=2e-3, seed=0,
        logging_steps=1, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
    )
    trainer = transformers.Trainer(
        model=model, args=transformers.TrainingArguments(folder, **{**defaults, **arguments}), train_dataset=rows, eval_dataset=rows[:8]
    )
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


def losses(trainer: Any) -> torch.Tensor:
    """Those of all steps, in order."""
    return torch.tensor([entry["loss"] for entry in trainer.state.log_history if "loss" in entry], dtype=torch.float64)


def train(model: torch.nn.Module, rows: list[Any], **arguments: Any) -> torch.Tensor:
    """The losses of a whole run that keeps no files."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(model, rows, folder, **arguments)
        trainer.train()
        return losses(trainer)
