"""The state of an ORTTrainer as nested dicts of arrays, and as a safetensors file.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from ortc._errors import ArgumentError, FormatError
from ortc.compat.ort_training import _safetensors

if TYPE_CHECKING:
    from ortc.compat.ort_training.orttrainer import TrainStepInfo

_STATES = {"exp_avg": "Moment_1", "exp_avg_sq": "Moment_2", "step": "Update_Count"}


def collect(model: torch.nn.Module, optimizer: torch.optim.Optimizer, info: TrainStepInfo, optimizer_name: str) -> dict[str, Any]:
    """Copies."""
    moments: dict[str, dict[str, Any]] = {}
    for name, parameter in model.named_parameters():
        state = optimizer.state.get(parameter)
        if state:
            moments[name] = {_STATES[key]: each.detach().cpu().numpy().copy() for key, each in state.items()}
    return {
        "model": {"full_precision": {name: each.detach().cpu().numpy().copy() for name, each in model.state_dict().items()}},
        "optimizer": moments,
        "trainer_options": {
            "optimizer_name": optimizer_name,
            "mixed_precision": False,
            "zero_stage": 0,
            "world_rank": 0,
            "world_size": 1,
            "data_parallel_size": 1,
            "horizontal_parallel_size": 1,
        },
        "train_step_info": {"optimization_step": info.optimization_step, "step": info.step},
    }


def put(
    state: Mapping[str, Any], model: torch.nn.Module, optimizer: torch.optim.Optimizer, info: TrainStepInfo, strict: bool
) -> None:
    """Into the tensors of the module, in place. With `strict` all of it must be there, and nothing else."""
    missing = [key for key in ("model", "optimizer") if key not in state]
    if strict and missing:
        raise ArgumentError(f"load_state_dict: the state has no {' and no '.join(missing)}; strict=False takes what there is")
    optimizer_name = state.get("trainer_options", {}).get("optimizer_name", info.optimizer_config.name)
    if "optimizer" in state and optimizer_name != info.optimizer_config.name:
        raise ArgumentError(f"load_state_dict: the state is of {optimizer_name}, but the trainer has {info.optimizer_config.name}")
    parameters = dict(model.named_parameters())
    moments = state.get("optimizer", {})
    unknown = [name for name in moments if name not in parameters]
    if strict and unknown:
        raise ArgumentError(f"load_state_dict: the model has no parameter {', '.join(unknown)}")
    weights = {name: torch.as_tensor(each) for name, each in state.get("model", {}).get("full_precision", {}).items()}
    try:
        model.load_state_dict(weights, strict=strict)
    except RuntimeError as error:
        raise ArgumentError(f"load_state_dict: {error}") from error
    for name, row in moments.items():
        if name in parameters:
            keys = {theirs: ours for ours, theirs in _STATES.items()}
            optimizer.state[parameters[name]] = {keys[key]: torch.as_tensor(each).clone() for key, each in row.items()}
    for group in optimizer.param_groups:
        counts = [int(optimizer.state[each]["step"]) for each in group["params"] if "step" in optimizer.state.get(each, {})]
        if counts and "bias_correction" in group:  # FusedAdam counts by group
            group["step"] = max(counts)
    for key, value in state.get("train_step_info", {}).items():
        setattr(info, key, int(value))


def write(path: str | os.PathLike[str], state: Mapping[str, Any], user: Mapping[str, Any]) -> None:
    tensors = {f"model/{name}": each for name, each in state["model"]["full_precision"].items()}
    for name, row in state.get("optimizer", {}).items():
        tensors.update({f"optimizer/{key}/{name}": each for key, each in row.items()})
    try:
        metadata = {key: json.dumps(state[key]) for key in ("trainer_options", "train_step_info")} | {"user_dict": json.dumps(dict(user))}
    except TypeError as error:
        raise ArgumentError(f"save_checkpoint: user_dict holds what JSON has: {error}") from error
    metadata["parts"] = " ".join(key for key in ("model", "optimizer") if key in state)
    _safetensors.write(path, tensors, metadata)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state, and user_dict."""
    tensors, metadata = _safetensors.read(path)
    if "parts" not in metadata:
        raise FormatError(f"{os.fspath(path)}: is no checkpoint of ORTTrainer.save_checkpoint")
    state: dict[str, Any] = {"model": {"full_precision": {}}} | {part: {} for part in metadata["parts"].split() if part != "model"}
    for key, each in tensors.items():
        part, _, rest = key.partition("/")
        if part == "model":
            state["model"]["full_precision"][rest] = each
        else:
            kind, _, name = rest.partition("/")
            state["optimizer"].setdefault(name, {})[kind] = each
    for part in ("trainer_options", "train_step_info"):
        state[part] = json.loads(metadata[part])
    return state, json.loads(metadata["user_dict"])
