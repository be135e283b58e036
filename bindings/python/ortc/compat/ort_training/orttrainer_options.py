"""ORTTrainerOptions: a nested dict of settings, checked against what there is.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from ortc._errors import ArgumentError
from ortc.compat.ort_training._notes import note, refuse
from ortc.compat.ort_training.optim.lr_scheduler import _LRScheduler


class Option(NamedTuple):
    default: Any
    fate: str
    """works, ignored or refused where it is not the default."""
    text: str = ""
    """Why it is ignored, or what to do instead."""


_DISTRIBUTED = "wrap the module with ORTModule and then with torch.nn.parallel.DistributedDataParallel"
_RECOMPUTE = "give ORTTrainer memory_budget=BYTES, which finds out what to compute again"
_NO_GRAPH = "the graph is the compiler's own"
OPTIONS = {
    "batch.gradient_accumulation_steps": Option(1, "works"),
    "device.id": Option("cpu", "refused", "the trainer is for processors: leave it out, or give 'cpu'"),
    "device.mem_limit": Option(0, "refused", "give ORTTrainer memory_budget=BYTES, a bound on what a step keeps"),
    "distributed.world_rank": Option(0, "refused", _DISTRIBUTED),
    "distributed.world_size": Option(1, "refused", _DISTRIBUTED),
    "distributed.local_rank": Option(0, "refused", _DISTRIBUTED),
    "distributed.data_parallel_size": Option(1, "refused", _DISTRIBUTED),
    "distributed.horizontal_parallel_size": Option(1, "refused", _DISTRIBUTED),
    "distributed.pipeline_parallel_size": Option(1, "refused", _DISTRIBUTED),
    "distributed.num_pipeline_micro_batches": Option(1, "refused", _DISTRIBUTED),
    "distributed.pipeline_cut_info_string": Option("", "refused", _DISTRIBUTED),
    "distributed.allreduce_post_accumulation": Option(False, "refused", _DISTRIBUTED),
    "distributed.deepspeed_zero_optimization.stage": Option(0, "refused", _DISTRIBUTED),
    "distributed.enable_adasum": Option(False, "refused", _DISTRIBUTED),
    "distributed.sliced_schema": Option({}, "refused", _DISTRIBUTED),
    "distributed.sliced_axes": Option({}, "refused", _DISTRIBUTED),
    "distributed.sliced_tensor_names": Option([], "refused", _DISTRIBUTED),
    "lr_scheduler": Option(None, "works"),
    "mixed_precision.enabled": Option(False, "refused", "give ORTTrainer precision='bf16': products in bfloat16, no loss scale"),
    "mixed_precision.loss_scaler": Option(None, "refused", "there is no float16, and nothing to scale"),
    "graph_transformer.attn_dropout_recompute": Option(False, "refused", _RECOMPUTE),
    "graph_transformer.gelu_recompute": Option(False, "refused", _RECOMPUTE),
    "graph_transformer.transformer_layer_recompute": Option(False, "refused", _RECOMPUTE),
    "graph_transformer.number_recompute_layers": Option(0, "refused", _RECOMPUTE),
    "graph_transformer.propagate_cast_ops_config": Option({}, "ignored", _NO_GRAPH),
    "utils.frozen_weights": Option([], "works"),
    "utils.grad_norm_clip": Option(True, "works"),
    "utils.invertible_layer_norm_gradient": Option(False, "ignored", "what a step keeps is the compiler's choice"),
    "utils.run_symbolic_shape_infer": Option(False, "ignored", "shapes are known when compiling"),
    "debug.deterministic_compute": Option(False, "works"),
    "debug.check_model_export": Option(False, "works"),
    "debug.graph_save_paths": Option({}, "refused", "set ORTC_CACHE_DIR: artifacts are there"),
    "provider_options": Option({}, "refused", "the trainer is for processors"),
    "session_options": Option(None, "refused", "threads are those of torch.set_num_threads"),
    "_internal_use.enable_internal_postprocess": Option(True, "ignored", _NO_GRAPH),
    "_internal_use.extra_postprocess": Option(None, "refused", "change the module instead"),
    "_internal_use.onnx_opset_version": Option(12, "ignored", _NO_GRAPH),
    "_internal_use.enable_onnx_contrib_ops": Option(True, "ignored", _NO_GRAPH),
}


def _flatten(options: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in options.items():
        name = prefix + key
        if name not in OPTIONS and isinstance(value, Mapping):
            flat.update(_flatten(value, name + "."))
        else:
            flat[name] = value
    return flat


class ORTTrainerOptions:
    """Settings as attributes: `options.batch.gradient_accumulation_steps`."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        given = _flatten(options or {}, "")
        for name, value in given.items():
            if name not in OPTIONS:
                raise ArgumentError(f"ORTTrainerOptions has no '{name}'; it has {', '.join(OPTIONS)}")
            option = OPTIONS[name]
            if value == option.default:
                continue
            if option.fate == "refused":
                refuse(f"{name}={value!r}", option.text)
            if option.fate == "ignored":
                note(f"{name} has no effect: {option.text}")
        steps, scheduler = given.get("batch.gradient_accumulation_steps", 1), given.get("lr_scheduler")
        if not isinstance(steps, int) or steps < 1:
            raise ArgumentError(f"batch.gradient_accumulation_steps is {steps!r}, but is a whole number of at least 1")
        if scheduler is not None and not isinstance(scheduler, _LRScheduler):
            raise ArgumentError(f"lr_scheduler is a {type(scheduler).__qualname__}, but must be one of optim's or of a class below")
        for name, option in OPTIONS.items():
            place: Any = self
            *path, last = name.split(".")
            for part in path:
                if not hasattr(place, part):
                    setattr(place, part, SimpleNamespace())
                place = getattr(place, part)
            setattr(place, last, given.get(name, option.default))

    batch: Any
    utils: Any
    debug: Any
    lr_scheduler: _LRScheduler | None
