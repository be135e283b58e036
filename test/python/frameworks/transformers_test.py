"""Models and the Trainer of transformers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import copy
import tempfile
import unittest

import torch
from modules import use_own_cache

import ortc.torch

try:
    import transformers
except ImportError:
    transformers = None  # type: ignore[assignment]


def setUpModule() -> None:
    use_own_cache()


@unittest.skipIf(transformers is None, "there is no package transformers")
class TransformersTest(unittest.TestCase):
    def check(self, model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> None:
        eager = copy.deepcopy(model)
        ortc.torch.compile_(model, wait=True, fallback="error")
        optimizers = [torch.optim.AdamW(each.parameters(), lr=1e-3) for each in (model, eager)]
        for _ in range(5):
            losses = []
            for each, optimizer in zip((model, eager), optimizers, strict=True):
                optimizer.zero_grad()
                result = each(**batch)
                result.loss.backward()
                optimizer.step()
                losses.append(result.loss.item())
                kind = type(result)
            self.assertAlmostEqual(losses[0], losses[1], places=4)
            self.assertIs(type(model(**batch)), kind)
        with tempfile.TemporaryDirectory() as folder:
            for name, each in (("ortc", model), ("eager", eager)):
                each.save_pretrained(f"{folder}/{name}")
            saved = [
                {name: value.shape for name, value in type(eager).from_pretrained(f"{folder}/{name}").state_dict().items()}
                for name in ("ortc", "eager")
            ]
            self.assertEqual(saved[0], saved[1])

    def test_bert(self) -> None:
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=120, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )
        batch = {
            "input_ids": torch.randint(120, (4, 16)),
            "attention_mask": (torch.arange(16)[None] < torch.tensor([16, 12, 9, 16])[:, None]).long(),
            "labels": torch.randint(2, (4,)),
        }
        self.check(transformers.BertForSequenceClassification(config).train(), batch)

    def test_gpt2(self) -> None:
        torch.manual_seed(0)
        config = transformers.GPT2Config(
            vocab_size=120, n_positions=32, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
            use_cache=False, bos_token_id=0, eos_token_id=0,
        )
        tokens = torch.randint(120, (4, 16))
        self.check(transformers.GPT2LMHeadModel(config).train(), {"input_ids": tokens, "labels": tokens})

    def test_trainer(self) -> None:
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )
        model = transformers.BertForSequenceClassification(config)
        eager = copy.deepcopy(model)
        ortc.torch.compile_(model, wait=True)
        rows = [{"input_ids": torch.randint(50, (8,)), "labels": torch.tensor(i % 2)} for i in range(32)]
        curves = []
        for each in (model, eager):
            with tempfile.TemporaryDirectory() as folder:
                arguments = transformers.TrainingArguments(
                    folder, max_steps=12, per_device_train_batch_size=4, gradient_accumulation_steps=2, logging_steps=1,
                    save_strategy="no", report_to=[], use_cpu=True, seed=0, disable_tqdm=True, learning_rate=1e-3,
                )
                trainer = transformers.Trainer(model=each, args=arguments, train_dataset=rows)
                trainer.train()
                curves.append([entry["loss"] for entry in trainer.state.log_history if "loss" in entry])
        for got, wanted in zip(*curves, strict=True):
            self.assertAlmostEqual(got, wanted, places=4)
        self.assertEqual(ortc.torch.report(model).compiled, 24, str(ortc.torch.report(model)))


if __name__ == "__main__":
    unittest.main()
