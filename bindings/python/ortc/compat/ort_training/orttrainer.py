"""ORTTrainer: steps that compute the loss, gradients and the update, and give the loss and what the model predicts.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from ortc._errors import ArgumentError
from ortc.compat.ort_training import _trainer_state
from ortc.compat.ort_training._missing import answer_for
from ortc.compat.ort_training._notes import refuse
from ortc.compat.ort_training.optim._lamb import Lamb
from ortc.compat.ort_training.optim.config import AdamConfig, LambConfig, SGDConfig, _OptimizerConfig
from ortc.compat.ort_training.optim.fused_adam import AdamWMode, FusedAdam
from ortc.compat.ort_training.orttrainer_options import ORTTrainerOptions
from ortc.torch import compile_

__getattr__ = answer_for(__name__)

_MODES = {
    AdamConfig.DecayMode.BEFORE_WEIGHT_UPDATE: AdamWMode.ADAMW_TORCH,
    AdamConfig.DecayMode.AFTER_WEIGHT_UPDATE: AdamWMode.ADAMW_TRANSFORMERS,
}


class Description(NamedTuple):
    name: str
    shape: tuple[int | str, ...]
    is_loss: bool = False


class ModelDescription:
    """Names and shapes of inputs and outputs: `{"inputs": [(name, shape)], "outputs": [(name, shape, is_loss)]}`."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        if set(given) != {"inputs", "outputs"}:
            raise ArgumentError(f"model_desc has 'inputs' and 'outputs'; this has {', '.join(map(str, given)) or 'nothing'}")
        self.inputs = [self._describe(row, (2,)) for row in given["inputs"]]
        self.outputs = [self._describe(row, (2, 3)) for row in given["outputs"]]
        if sum(row.is_loss for row in self.outputs) != 1:
            raise ArgumentError("one output of model_desc is the loss: (name, shape, True)")

    @staticmethod
    def _describe(row: Any, lengths: tuple[int, ...]) -> Description:
        if not isinstance(row, tuple) or len(row) not in lengths or not isinstance(row[0], str) or not isinstance(row[1], (list, tuple)):
            raise ArgumentError(f"an input of model_desc is (name, shape), an output (name, shape, is_loss), not {row!r}")
        return Description(row[0], tuple(row[1]), *row[2:])


class TrainStepInfo:
    """Where a training stands, for schedulers. `fetches`: names of the only outputs that steps give, in this order."""

    def __init__(
        self,
        optimizer_config: _OptimizerConfig,
        all_finite: bool = True,
        fetches: list[str] | None = None,
        optimization_step: int = 0,
        step: int = 0,
    ) -> None:
        self.optimizer_config = optimizer_config
        self.all_finite = all_finite
        self.fetches = fetches or []
        self.optimization_step = optimization_step
        self.step = step


class _WithLoss(torch.nn.Module):
    """The outputs of model_desc: the loss first where a function computes it, of the last input."""

    def __init__(self, model: torch.nn.Module, loss: Callable[[Any, Any], Any] | None, names: list[str]) -> None:
        super().__init__()
        self.model = model
        self.loss = loss
        taken = inspect.signature(model.forward).parameters
        wanted = names if loss is None else names[:-1]
        if not any(each.kind == each.VAR_KEYWORD for each in taken.values()):
            for name in wanted:
                if name not in taken:
                    raise ArgumentError(f"input '{name}' of model_desc is no argument of the model's forward ({', '.join(taken)})")
        self.places = {name: place for place, name in enumerate(wanted)}

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        result = self.model(**{name: inputs[place] for name, place in self.places.items()})
        if self.loss is not None:
            rest = tuple(result) if isinstance(result, (tuple, list)) else (result,)
            return self.loss(result, inputs[-1]), *rest
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)


class ORTTrainer:
    """Trains a module of PyTorch in place."""

    def __init__(
        self,
        model: torch.nn.Module,
        model_desc: Mapping[str, Any],
        optim_config: _OptimizerConfig,
        loss_fn: Callable[[Any, Any], Any] | None = None,
        options: ORTTrainerOptions | None = None,
        **flags: Any,
    ) -> None:
        """`flags`: of ortc.torch.compile_, such as wait=True, and of `ortc train`, with underscores."""
        if not isinstance(model, torch.nn.Module):
            refuse(f"ORTTrainer of a {type(model).__qualname__}", "artifacts.generate_artifacts and api.Module train models of ONNX")
        if not isinstance(optim_config, _OptimizerConfig):
            raise ArgumentError(f"optim_config is a {type(optim_config).__qualname__}, but must be an SGDConfig, AdamConfig or LambConfig")
        if loss_fn is not None and len(inspect.signature(loss_fn).parameters) < 2:
            raise ArgumentError("loss_fn takes what the model gives, and the label")
        self.model_desc = ModelDescription(model_desc)
        self.optim_config = optim_config
        self.loss_fn = loss_fn
        self.options = options or ORTTrainerOptions()
        self._train_step_info = TrainStepInfo(optim_config)
        self._model = model
        self._freeze(self.options.utils.frozen_weights)
        self._whole = _WithLoss(model, loss_fn, [row.name for row in self.model_desc.inputs])
        compile_(self._whole, **flags)
        self._optimizer = self._make_optimizer()

    def _freeze(self, names: list[str]) -> None:
        parameters = dict(self._model.named_parameters())
        unknown = [name for name in names if name not in parameters]
        if unknown:
            raise ArgumentError(f"utils.frozen_weights: the model has no parameter {', '.join(unknown)}")
        for name in names:
            parameters[name].requires_grad_(False)

    def _make_optimizer(self) -> torch.optim.Optimizer:
        config = self.optim_config
        trained = {name: each for name, each in self._model.named_parameters() if each.requires_grad}
        known = {name for name, _ in self._model.named_parameters(remove_duplicate=False)}
        unknown = [name for group in config.params for name in group["params"] if name not in known]
        if unknown:
            raise ArgumentError(f"groups of optim_config: the model has no parameter {', '.join(unknown)}")
        if isinstance(config, SGDConfig):
            return torch.optim.SGD(list(trained.values()), lr=config.lr)
        parts: dict[int, dict[str, Any]] = {}
        for name, each in trained.items():
            settings = config.settings(name)
            parts.setdefault(id(settings), {**settings, "params": [], "lr": config.lr})["params"].append(each)
        groups = list(parts.values())
        if isinstance(config, LambConfig):
            return Lamb(groups)
        assert isinstance(config, AdamConfig)
        for group in groups:
            group.update(
                betas=(group["alpha"], group["beta"]),
                eps=group["epsilon"],
                weight_decay=group["lambda_coef"],
                bias_correction=group["do_bias_correction"],
            )
        return FusedAdam(groups, adam_w_mode=_MODES[config.defaults["weight_decay_mode"]])

    # ---- Steps.

    def train_step(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs of model_desc, before the update. Inputs are those of model_desc, in its order or by name; after them
        there may be a learning rate for this step."""
        inputs, rate = self._inputs(args, kwargs)
        info = self._train_step_info
        info.step += 1
        if rate is None:
            rate = self.optim_config.lr
            if self.options.lr_scheduler is not None:
                rate = self.options.lr_scheduler._step(info)[0]
        if not self._whole.training:
            self._whole.train()
        outputs = self._whole(*inputs)
        loss = next(each for row, each in zip(self.model_desc.outputs, outputs, strict=True) if row.is_loss)
        every = self.options.batch.gradient_accumulation_steps
        (loss / every if every > 1 else loss).backward()
        if info.step % every == 0:
            self._update(float(rate))
            info.optimization_step += 1
        return self._results(outputs)

    def eval_step(self, *args: Any, **kwargs: Any) -> Any:
        """The same without an update, in evaluation mode."""
        inputs, _ = self._inputs(args, kwargs)
        was_training = self._whole.training
        self._whole.eval()
        with torch.no_grad():
            outputs = _WithLoss.forward(self._whole, *inputs)
        self._whole.train(was_training)
        return self._results(outputs)

    def _inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[torch.Tensor], Any]:
        rows = self.model_desc.inputs
        given = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
        rate = kwargs.pop("learning_rate", None) if "learning_rate" not in {row.name for row in rows} else None
        for row in rows[len(given) :]:
            if row.name not in kwargs:
                raise ArgumentError(f"input '{row.name}' of model_desc is missing")
            given.append(kwargs.pop(row.name))
        if len(given) == len(rows) + 1:
            rate = given.pop()
        if kwargs or len(given) != len(rows):
            names = ", ".join(row.name for row in rows)
            raise ArgumentError(f"a step takes the inputs of model_desc ({names}) and a learning rate, not {len(given)} and {list(kwargs)}")
        sizes: dict[str, int] = {}
        for row, each in zip(rows, given, strict=True):
            self._check(row, each, sizes)
        return given, rate

    @staticmethod
    def _check(row: Description, each: Any, sizes: dict[str, int]) -> None:
        if not isinstance(each, torch.Tensor):
            raise ArgumentError(f"input '{row.name}' is a {type(each).__qualname__}, but must be a tensor")
        fits = each.dim() == len(row.shape) and all(
            size == (sizes.setdefault(wanted, size) if isinstance(wanted, str) else wanted)
            for size, wanted in zip(each.shape, row.shape, strict=True)
        )
        if not fits:
            raise ArgumentError(f"input '{row.name}' is {list(each.shape)}, but model_desc says {list(row.shape)}, with {sizes}")

    def _results(self, outputs: tuple[torch.Tensor, ...]) -> Any:
        named = {row.name: each.detach() for row, each in zip(self.model_desc.outputs, outputs, strict=True)}
        unknown = [name for name in self._train_step_info.fetches if name not in named]
        if unknown:
            raise ArgumentError(f"fetches: model_desc has no output {', '.join(unknown)}")
        results = [named[name] for name in self._train_step_info.fetches or named]
        return results[0] if len(results) == 1 else results

    def _update(self, rate: float) -> None:
        if self.options.utils.grad_norm_clip and not isinstance(self.optim_config, SGDConfig):
            self._clip()
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad()

    def _clip(self) -> None:
        """By the norm of all gradients, to the bound of each group."""
        groups = [[each.grad for each in group["params"] if each.grad is not None] for group in self._optimizer.param_groups]
        norm = float(torch.nn.utils.get_total_norm([each for gradients in groups for each in gradients]))
        for group, gradients in zip(self._optimizer.param_groups, groups, strict=True):
            if norm > group["max_norm_clip"] and gradients:
                torch._foreach_mul_(gradients, group["max_norm_clip"] / norm)

    # ---- State.

    def state_dict(self, pytorch_format: bool = False) -> dict[str, Any]:
        """`{"model": {"full_precision": {name: array}}, "optimizer": {name: {"Moment_1": array, ...}}, "trainer_options": ...}`;
        with `pytorch_format` that of the module."""
        if pytorch_format:
            return {name: each.detach().clone() for name, each in self._model.state_dict().items()}
        return _trainer_state.collect(self._model, self._optimizer, self._train_step_info, self.optim_config.name)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """What state_dict has given, or a part of it with `strict=False`."""
        _trainer_state.put(state_dict, self._model, self._optimizer, self._train_step_info, strict)

    def save_checkpoint(
        self, path: str | os.PathLike[str], user_dict: Mapping[str, Any] | None = None, include_optimizer_states: bool = True
    ) -> None:
        """A safetensors file; `user_dict` is what JSON has."""
        state = self.state_dict()
        if not include_optimizer_states:
            del state["optimizer"]
        _trainer_state.write(path, state, user_dict or {})

    def load_checkpoint(self, *paths: str | os.PathLike[str], strict: bool = True) -> dict[str, Any]:
        """Takes a file of save_checkpoint and gives its user_dict."""
        if len(paths) != 1:
            refuse("load_checkpoint of several files", "checkpoints of ortc are whole: give one")
        state, user = _trainer_state.read(paths[0])
        self.load_state_dict(state, strict=strict and "optimizer" in state)
        return user

    def save_as_onnx(self, path: str | os.PathLike[str]) -> None:
        refuse("save_as_onnx", "torch.onnx.export(model, arguments, path, dynamo=False) writes the model that was trained")
