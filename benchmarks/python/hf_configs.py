#!/usr/bin/env python3
"""How many architectures of transformers train right under ortc.torch: small ones, made from configurations, three steps each.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    python benchmarks/python/hf_configs.py [MODEL ...]

Prints a table. A model is right where losses, outputs and every gradient of three steps are no further from a run in float64 than eight
times what PyTorch's float32 is, and at least 2e-5: relative to the largest number of a tensor, and of a gradient to 1e-4 of the model's
largest, since some gradients (those of key biases) are zero except for rounding.
"""
import copy
import datetime
import pathlib
import re
import sys
import tempfile
import unittest.mock
import warnings

import torch
import torch.utils._pytree as pytree
import transformers as hf

import ortc.torch
from ortc.torch import _export, _verify

ROWS, LENGTH, WORDS, STEPS, TOLERANCE = 4, 16, 120, 3, 2e-5
TEXT = dict(vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=40,
            pad_token_id=1, bos_token_id=0, eos_token_id=2)
IMAGE = dict(image_size=32, num_channels=3, num_labels=5)
VISION = dict(IMAGE, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
MODELS = {}


def model(make):
    """Registers a function that gives a class, its configuration and a batch."""
    MODELS[make.__name__] = make
    return make


def tokens(rows=ROWS, length=LENGTH):
    return torch.randint(3, WORDS, (rows, length))


def padded():
    """Token numbers of several lengths, and their mask."""
    mask = (torch.arange(LENGTH)[None] < torch.tensor([LENGTH, 12, 9, LENGTH])[:, None]).long()
    return {"input_ids": torch.where(mask > 0, tokens(), 1), "attention_mask": mask}


def classified():
    return {**padded(), "labels": torch.randint(2, (ROWS,))}


def masked():
    """Most labels are ignored."""
    batch = padded()
    chosen = (torch.rand(ROWS, LENGTH) < 0.3) & (batch["attention_mask"] > 0)
    return {**batch, "labels": torch.where(chosen, batch["input_ids"], -100)}


def causal():
    batch = padded()
    return {**batch, "labels": batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)}


def pictures(size=32):
    return {"pixel_values": torch.randn(ROWS, 3, size, size), "labels": torch.randint(5, (ROWS,))}


@model
def bert():
    return hf.BertForSequenceClassification, hf.BertConfig(**TEXT), classified()


@model
def roberta():
    return hf.RobertaForMaskedLM, hf.RobertaConfig(**TEXT), masked()


@model
def distilbert():
    config = hf.DistilBertConfig(vocab_size=WORDS, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=40, pad_token_id=1)
    return hf.DistilBertForSequenceClassification, config, classified()


@model
def albert():
    return hf.AlbertForMaskedLM, hf.AlbertConfig(**TEXT, embedding_size=16), masked()


@model
def electra():
    batch = padded()
    return hf.ElectraForPreTraining, hf.ElectraConfig(**TEXT, embedding_size=16), {**batch, "labels": torch.randint(2, (ROWS, LENGTH))}


@model
def electra_tokens():
    config = hf.ElectraConfig(**TEXT, embedding_size=16)
    return hf.ElectraForTokenClassification, config, {**padded(), "labels": torch.randint(2, (ROWS, LENGTH))}


@model
def deberta_v2():
    config = hf.DebertaV2Config(**TEXT, relative_attention=True, position_buckets=8, max_relative_positions=16, norm_rel_ebd="layer_norm",
                                share_att_key=True, pos_att_type=["p2c", "c2p"], position_biased_input=False)
    return hf.DebertaV2ForMaskedLM, config, masked()


@model
def mpnet():
    return hf.MPNetForMaskedLM, hf.MPNetConfig(**TEXT), masked()


@model
def xlm_roberta():
    return hf.XLMRobertaForTokenClassification, hf.XLMRobertaConfig(**TEXT), {**padded(), "labels": torch.randint(2, (ROWS, LENGTH))}


@model
def camembert():
    ends = {"start_positions": torch.randint(8, (ROWS,)), "end_positions": torch.randint(8, (ROWS,))}
    return hf.CamembertForQuestionAnswering, hf.CamembertConfig(**TEXT), {**padded(), **ends}


@model
def mobilebert():
    config = hf.MobileBertConfig(**TEXT, embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16)
    return hf.MobileBertForSequenceClassification, config, classified()


@model
def modernbert():
    return hf.ModernBertForMaskedLM, hf.ModernBertConfig(**TEXT, cls_token_id=0, sep_token_id=2, local_attention=8), masked()


@model
def gpt2():
    config = hf.GPT2Config(vocab_size=WORDS, n_positions=40, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=2)
    return hf.GPT2LMHeadModel, config, causal()


@model
def gpt_neo():
    config = hf.GPTNeoConfig(vocab_size=WORDS, hidden_size=32, num_layers=2, num_heads=4, intermediate_size=64, max_position_embeddings=40,
                             window_size=8, attention_types=[[["global", "local"], 1]], bos_token_id=0, eos_token_id=2)
    return hf.GPTNeoForCausalLM, config, causal()


@model
def gpt_neox():
    return hf.GPTNeoXForCausalLM, hf.GPTNeoXConfig(**TEXT), causal()


@model
def opt():
    config = hf.OPTConfig(vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, word_embed_proj_dim=32,
                          max_position_embeddings=40, pad_token_id=1, bos_token_id=0, eos_token_id=2)
    return hf.OPTForCausalLM, config, causal()


@model
def llama():
    return hf.LlamaForCausalLM, hf.LlamaConfig(**TEXT, num_key_value_heads=2), causal()


@model
def mistral():
    return hf.MistralForCausalLM, hf.MistralConfig(**TEXT, num_key_value_heads=2, sliding_window=8), causal()


@model
def qwen2():
    return hf.Qwen2ForCausalLM, hf.Qwen2Config(**TEXT, num_key_value_heads=2), causal()


@model
def qwen3():
    return hf.Qwen3ForCausalLM, hf.Qwen3Config(**TEXT, num_key_value_heads=2, head_dim=8), causal()


@model
def gemma():
    return hf.GemmaForCausalLM, hf.GemmaConfig(**TEXT, num_key_value_heads=2, head_dim=8), causal()


@model
def phi():
    return hf.PhiForCausalLM, hf.PhiConfig(**TEXT), causal()


@model
def falcon():
    config = hf.FalconConfig(vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, bos_token_id=0, eos_token_id=2)
    return hf.FalconForCausalLM, config, causal()


@model
def bloom():
    config = hf.BloomConfig(vocab_size=WORDS, hidden_size=32, n_layer=2, n_head=4, pad_token_id=1, bos_token_id=0, eos_token_id=2)
    return hf.BloomForCausalLM, config, causal()


@model
def mixtral():
    """The other ways to run experts look at numbers, or have gradients of their own."""
    config = hf.MixtralConfig(**TEXT, num_key_value_heads=2, num_local_experts=4, experts_implementation="batched_mm")
    return hf.MixtralForCausalLM, config, causal()


@model
def mamba():
    config = hf.MambaConfig(vocab_size=WORDS, hidden_size=16, state_size=4, num_hidden_layers=1, conv_kernel=4, time_step_rank=2)
    text = tokens(2, 8)
    return hf.MambaForCausalLM, config, {"input_ids": text, "labels": text}


@model
def t5():
    config = hf.T5Config(vocab_size=WORDS, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, relative_attention_num_buckets=8,
                         pad_token_id=1, decoder_start_token_id=0)
    return hf.T5ForConditionalGeneration, config, {**padded(), "labels": tokens(length=8)}


@model
def bart():
    config = hf.BartConfig(vocab_size=WORDS, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                           decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=40)
    return hf.BartForConditionalGeneration, config, {**padded(), "labels": tokens(length=8)}


@model
def vit():
    return hf.ViTForImageClassification, hf.ViTConfig(**VISION), pictures()


@model
def deit():
    return hf.DeiTForImageClassification, hf.DeiTConfig(**VISION), pictures()


@model
def dinov2():
    return hf.Dinov2ForImageClassification, hf.Dinov2Config(**VISION), pictures()


@model
def beit():
    return hf.BeitForImageClassification, hf.BeitConfig(**VISION, use_relative_position_bias=True), pictures()


@model
def swin():
    config = hf.SwinConfig(**IMAGE, patch_size=4, embed_dim=16, depths=[2, 1], num_heads=[2, 4], window_size=4)
    return hf.SwinForImageClassification, config, pictures()


@model
def convnext():
    config = hf.ConvNextConfig(**IMAGE, patch_size=4, hidden_sizes=[8, 12, 16, 24], depths=[1, 1, 1, 1])
    return hf.ConvNextForImageClassification, config, pictures()


@model
def resnet():
    config = hf.ResNetConfig(num_labels=5, embedding_size=8, hidden_sizes=[8, 12, 16], depths=[1, 1, 1], layer_type="basic")
    return hf.ResNetForImageClassification, config, pictures()


@model
def mobilevit():
    config = hf.MobileViTConfig(num_labels=5, image_size=96, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 12, 16, 16, 16, 32],
                                num_attention_heads=4, initializer_range=0.2)
    return hf.MobileViTForImageClassification, config, pictures(96)


@model
def segformer():
    config = hf.SegformerConfig(num_labels=5, num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[16, 32], strides=[4, 2],
                                patch_sizes=[7, 3], num_attention_heads=[2, 4], mlp_ratios=[2, 2], decoder_hidden_size=16)
    return hf.SegformerForSemanticSegmentation, config, {**pictures(), "labels": torch.randint(5, (ROWS, 32, 32))}


def wav2vec2_config():
    return hf.Wav2Vec2Config(**{**TEXT, "vocab_size": 12}, conv_dim=[16, 16], conv_kernel=[10, 3], conv_stride=[5, 2],
                             num_feat_extract_layers=2, num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2,
                             apply_spec_augment=False, ctc_zero_infinity=True)


@model
def wav2vec2():
    return hf.Wav2Vec2ForCTC, wav2vec2_config(), {"input_values": torch.randn(ROWS, 400), "labels": torch.randint(3, 12, (ROWS, 6))}


@model
def wav2vec2_classes():
    batch = {"input_values": torch.randn(ROWS, 400), "labels": torch.randint(2, (ROWS,))}
    return hf.Wav2Vec2ForSequenceClassification, wav2vec2_config(), batch


@model
def whisper():
    config = hf.WhisperConfig(vocab_size=WORDS, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                              decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=12, max_source_positions=16,
                              max_target_positions=40, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=0)
    return hf.WhisperForConditionalGeneration, config, {"input_features": torch.randn(ROWS, 12, 32), "labels": tokens(length=8)}


@model
def clip():
    config = hf.CLIPConfig(text_config=TEXT, vision_config=dict(VISION, patch_size=8), projection_dim=16)
    return hf.CLIPModel, config, {**padded(), "pixel_values": torch.randn(ROWS, 3, 32, 32), "return_loss": True}


def without_dropout(config):
    """Probabilities of dropping anything are zero, in configurations within it too."""
    for name, value in vars(config).items():
        if isinstance(value, hf.PreTrainedConfig):
            without_dropout(value)
        elif isinstance(value, float) and re.search("drop|pdrop", name):
            setattr(config, name, 0.0)
    return config


def widen(value):
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def train(module, batch, steps=STEPS):
    """Outputs and gradients of some steps, by name."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    seen = {}
    for step in range(steps):
        optimizer.zero_grad()
        result = module(**batch)
        result.loss.backward()
        for i, each in enumerate(pytree.tree_leaves(result)):
            if isinstance(each, torch.Tensor):
                seen[f"{step} output {i}"] = each.detach().clone()
        for name, each in module.named_parameters():
            seen[f"{step} gradient {name}"] = None if each.grad is None else each.grad.clone()
        optimizer.step()
    return seen


def measure(exact, eager, got):
    """The largest distances of gradients, and what is further than it may be."""
    largest, far = 0.0, []
    biggest = max(float(each.abs().max()) for name, each in exact.items() if " gradient " in name and each is not None)
    for name, wanted in exact.items():
        if wanted is None or got[name] is None or eager[name] is None:
            far += [] if (eager[name] is None) == (got[name] is None) else [f"{name} is there or not"]
            continue
        is_gradient = " gradient " in name
        span = max(float(wanted.abs().max()), 1e-4 * biggest if is_gradient else 1e-6)
        mine, theirs = (float((wanted.double() - each.double()).abs().max()) / span for each in (got[name], eager[name]))
        if is_gradient:
            largest = max(largest, mine)
        if not mine <= max(TOLERANCE, 8 * theirs):
            far.append(f"{name} is {mine:.0e} off, PyTorch {theirs:.0e}")
    return largest, far


def judge(name):
    """One row of the table."""
    torch.manual_seed(0)
    kind, config, batch = MODELS[name]()
    config = without_dropout(config)
    config.use_cache = False
    module = kind(config).train()
    mine, double = copy.deepcopy(module), copy.deepcopy(module).double()
    ortc.torch.compile_(mine, wait=True, fallback="error")
    with tempfile.TemporaryDirectory() as folder:
        stage = pathlib.Path(folder, "stage")

        def mark(number, function):
            def marked(*args):
                stage.write_text(str(number))
                return function(*args)
            return marked

        stage.write_text("0")
        compiler, verify = mark(1, _export.run_compiler), mark(2, _verify.verify)
        with unittest.mock.patch.object(_export, "run_compiler", compiler), unittest.mock.patch.object(_verify, "verify", verify):
            try:
                got, reason = train(mine, batch), ""
            except ortc.CompileError as error:
                got, reason = None, str(error).removeprefix("ortc.torch: this call is not compiled: ").splitlines()[0]
        reached = int(stage.read_text()) if got is None else 2
    right = "no"
    if got is not None:
        largest, far = measure(train(double, pytree.tree_map(widen, batch)), train(module, batch), got)
        right = "no" if far else f"yes ({largest:.0e})"
        reason = f"{len(far)} numbers: {far[0]}" if far else ""
    stages = " | ".join("yes" if reached > each else "no" for each in range(2))
    return f"| {kind.__name__} | {stages} | {right} | {reason.replace('|', '/')[:200]} |"


def main():
    warnings.simplefilter("ignore")
    hf.logging.set_verbosity_error()
    torch.set_num_threads(1)
    names = sys.argv[1:] or list(MODELS)
    print(f"{datetime.date.today()}, PyTorch {torch.__version__}, transformers {hf.__version__}\n")
    print("| model | exported | compiled | right (largest distance of gradients) | reason |\n|---|---|---|---|---|")
    right = 0
    for name in names:
        row = judge(name)
        right += "| yes (" in row
        print(row, flush=True)
    print(f"\n{right} of {len(names)} are right.")


if __name__ == "__main__":
    main()
