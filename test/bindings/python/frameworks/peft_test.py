"""LoRA adapters of peft.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import os
import pathlib
import tempfile
import unittest
import unittest.mock
from typing import Any

import torch
from launch import run_processes
from modules import use_own_cache
from optional import need
from tolerance import distance, limit, nudge

import ortc.torch

need("peft", "transformers", "safetensors")
import language_models as lm
import peft
from safetensors.torch import load_file


def setUpModule() -> None:
    use_own_cache()
    torch.set_num_threads(1)


def adapt(model: Any, **options: Any) -> Any:
    """With adapters; of BERT the head is trained, too, as peft has it for new classes."""
    torch.manual_seed(1)
    if type(model).__name__ == "GPT2LMHeadModel":
        options |= dict(target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM")
    else:
        options |= dict(target_modules=["query", "value"], task_type="SEQ_CLS")
    return peft.get_peft_model(model, peft.LoraConfig(r=4, lora_alpha=8, **options))


def train(model: Any, rows: list[dict[str, torch.Tensor]], wrapped: Any = None, rank: int = 0, world: int = 1) -> Any:
    """Eight steps of half of the rows each; `wrapped` is what is called, with this rank's part of them."""
    wrapped = wrapped or model
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-2)
    model.train()
    for step in range(8):
        part = rows[step % 2 :: 2][rank::world]
        optimizer.zero_grad()
        wrapped(**{name: torch.stack([row[name] for row in part]) for name in rows[0]}).loss.backward()
        optimizer.step()
    return model


def train_in_process(folder: str) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    model = ortc.torch.compile_(adapt(lm.bert()), wait=True, fallback="error")
    train(model, lm.questions(8), torch.nn.parallel.DistributedDataParallel(model), rank, world)
    report = ortc.torch.report(model)
    assert report.compiled == 8 and not report.eager, str(report)
    torch.save(model.state_dict(), f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def read_manifest() -> dict[str, Any]:
    """Of an artifact: the first is for gradients of all outputs, and another may be there already for that of the loss alone."""
    return ortc.load(next(pathlib.Path(os.environ["ORTC_CACHE_DIR"]).glob("*/meta.json")).parent / "artifact").manifest


class PeftTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(unittest.mock.patch.dict(os.environ, ORTC_CACHE_DIR=f"{self.folder}/cache"))

    def check_weights(self, wanted: Any, got: Any, eager: list[Any], names: list[str]) -> None:
        """Dictionaries of weights: in float64, ours, and those of float32 runs of PyTorch."""
        for name in names:
            runs = [each[name] for each in eager]
            self.assertLessEqual(distance(wanted[name], got[name]), limit(wanted[name], runs), name)

    def check(self, make: Any, rows: list[Any], whole: bool) -> None:
        """`whole`: compile_ is called with what peft makes, otherwise with the model before."""
        base = make()
        model = base if whole else ortc.torch.compile_(base, wait=True, fallback="error")
        model = adapt(model)
        if whole:
            ortc.torch.compile_(model, wait=True, fallback="error")
        begun = {name: value.clone() for name, value in model.state_dict().items()}
        train(model, rows)
        report = ortc.torch.report(model if whole else base)
        self.assertEqual((report.compiled, sum(report.eager.values()), report.artifacts), (8, 0, 1), str(report))

        runs = [train(each, rows) for each in (adapt(make()).double(), adapt(make()), adapt(nudge(make(), 0)))]
        trained = {name for name, each in model.named_parameters() if each.requires_grad}
        wanted, *eager = (each.state_dict() for each in runs)
        self.check_weights(wanted, model.state_dict(), eager, sorted(trained))
        for name, value in model.state_dict().items():
            self.assertEqual(torch.equal(value, begun[name]), name not in trained, name)

        manifest = read_manifest()
        (binding,) = manifest["bindings"]
        gradients = [each["name"] for each in binding["outputs"] if each["name"].endswith(".gradient")]
        self.assertEqual(len(gradients), len(trained))
        flops = {each["role"]: each["flops"] for each in manifest["entries"]}
        self.assertLess(flops["backward"], 1.25 * flops["forward"], "gradients of the base would be as many again")

        for each, name in ((model, "ortc"), (runs[1], "eager")):
            each.save_pretrained(f"{self.folder}/{name}")
        saved = [load_file(f"{self.folder}/{name}/adapter_model.safetensors") for name in ("ortc", "eager")]
        self.assertEqual(*({name: value.shape for name, value in each.items()} for each in saved))
        loaded = peft.PeftModel.from_pretrained(make(), f"{self.folder}/ortc").state_dict()
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, loaded[name]), name)

        got, wanted, *eager = (each.merge_and_unload().state_dict() for each in (model, *runs))
        self.assertEqual(list(got), list(wanted))
        self.check_weights(wanted, got, eager, list(wanted))

    def test_bert(self) -> None:
        self.check(lm.bert, lm.questions(8), whole=True)

    def test_two_processes(self) -> None:
        """Only adapters are exchanged; each rank has half of every batch."""
        run_processes(2, train_in_process, self.folder)
        first, second = (torch.load(f"{self.folder}/{rank}.pt") for rank in range(2))
        runs = [train(each, lm.questions(8)) for each in (adapt(lm.bert()).double(), adapt(lm.bert()), adapt(nudge(lm.bert(), 0)))]
        wanted, *eager = (each.state_dict() for each in runs)
        self.check_weights(wanted, first, eager, list(wanted))
        for name, value in first.items():
            self.assertTrue(torch.equal(value, second[name]), name)

    def test_bert_base(self) -> None:
        self.check(lm.bert, lm.questions(8), whole=False)

    def test_gpt2(self) -> None:
        self.check(lm.gpt2, lm.stories(8), whole=True)

    def test_gpt2_base(self) -> None:
        self.check(lm.gpt2, lm.stories(8), whole=False)


if __name__ == "__main__":
    unittest.main()
