"""generate_artifacts: the files that the on-device classes of `api` take.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

training_model.onnx is the graph with what it is trained with in its metadata; training_model.ortc, a folder, is that compiled, where
shapes are known; eval_model.onnx is the graph with the loss, for evaluation; optimizer_model.onnx names the optimizer; checkpoint has the weights.
"""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ortc._compile import Shape, compile
from ortc._errors import ArgumentError
from ortc.compat.ort_training._folders import written_at_once
from ortc.compat.ort_training._graphs import add_outputs, describe_training, graph_inputs, make_evaluated, write_checkpoint
from ortc.compat.ort_training._missing import answer_for
from ortc.compat.ort_training._notes import note, refuse
from ortc.compat.ort_training._optimizers import Update, describe_optimizer, find_rate, make_adamw
from ortc.compat.ort_training._sizes import compile_with_some
from ortc.compat.ort_training.onnxblock import INSTEAD, Block, base, names_of
from ortc.compat.ort_training.onnxblock import loss as losses
from ortc.compat.ort_training.onnxblock.optim import Optimizer

if TYPE_CHECKING:
    import onnx

__getattr__ = answer_for(__name__)


class LossType(Enum):
    MSELoss = 1
    CrossEntropyLoss = 2
    BCEWithLogitsLoss = 3
    L1Loss = 4


class OptimType(Enum):
    AdamW = 1
    SGD = 2


_LOSSES = {
    LossType.MSELoss: "mse",
    LossType.CrossEntropyLoss: "cross_entropy",
    LossType.BCEWithLogitsLoss: "bce_with_logits",
    LossType.L1Loss: "l1",
}
_BLOCKS: dict[LossType, Callable[[], Block]] = {
    LossType.MSELoss: losses.MSELoss,
    LossType.CrossEntropyLoss: losses.CrossEntropyLoss,
    LossType.BCEWithLogitsLoss: losses.BCEWithLogitsLoss,
    LossType.L1Loss: losses.L1Loss,
}
_OPTIMIZERS = {
    OptimType.AdamW: make_adamw(),
    OptimType.SGD: Update("sgd:lr=0.001"),
}


def generate_artifacts(
    model: onnx.ModelProto | str | os.PathLike[str],
    requires_grad: list[str] | None = None,
    frozen_params: list[str] | None = None,
    loss: LossType | Block | str | Mapping[str, str] | None = None,
    optimizer: OptimType | Optimizer | str | None = None,
    artifact_directory: str | os.PathLike[str] | None = None,
    prefix: str = "",
    ort_format: bool = False,
    custom_op_library: str | os.PathLike[str] | None = None,
    additional_output_names: list[str] | None = None,
    nominal_checkpoint: bool = False,
    loss_input_names: list[str] | None = None,
    *,
    shapes: Mapping[str, Shape] | None = None,
    **flags: Any,
) -> None:
    """Without `requires_grad`, what `ortc train` trains by itself is trained, except `frozen_params`. `loss` takes a block of onnxblock,
    which gets the names of all outputs, or `loss_input_names`, and gives that of the loss and of further outputs, and `optimizer` one of
    onnxblock.optim. Both take what ortc.compile does: {"boxes": "smooth_l1@boxes",
    "classes": "cross_entropy@logits"}, and "lion:lr=1e-4", whose rate must be there. `shapes` as for ortc.compile, `flags` as for `ortc train`: with all shapes known the artifact is compiled now, and devices need
    neither the compiler nor the package onnx."""
    import onnx

    if ort_format:
        refuse("generate_artifacts(ort_format=True)", "training_model.ortc is what devices take, whatever their size")
    if custom_op_library is not None:
        refuse("generate_artifacts(custom_op_library=...)", "operators of libraries have no gradients; `ortc ops` lists what there is")
    if nominal_checkpoint:
        refuse("generate_artifacts(nominal_checkpoint=True)", "give no_weights=True: the artifact has no weights, and the checkpoint all")
    if loss is not None and not isinstance(loss, (LossType, Block, str, Mapping)):
        refuse(f"the loss {type(loss).__qualname__}", INSTEAD)
    if optimizer is not None and not isinstance(optimizer, (OptimType, Optimizer, str)):
        refuse(f"the optimizer {type(optimizer).__qualname__}", INSTEAD)
    if isinstance(optimizer, str) and find_rate(optimizer) is None:
        raise ArgumentError(f"optimizer='{optimizer}' must have its rate, such as '{optimizer.partition(':')[0]}:lr=1e-3'")
    for name in ("loss", "loss_input", "optimizer", "train", "gradients", "output"):
        if name in flags:
            raise ArgumentError(f"'{name}' is no flag for generate_artifacts: its own arguments say it")
    proto = model if isinstance(model, onnx.ModelProto) else onnx.load(os.fspath(model))
    frozen = list(frozen_params or ())
    weights = {each.name: onnx.numpy_helper.to_array(each) for each in proto.graph.initializer}
    _check_names(requires_grad, frozen, weights)

    forward = copy.deepcopy(proto)
    outputs = [each.name for each in forward.graph.output]
    more = list(additional_output_names or ())
    of_losses = {f"loss.{name}" for name in loss} if isinstance(loss, Mapping) else set()
    add_outputs(forward, (name for name in more if name not in of_losses))
    if isinstance(loss, Block):
        with base(forward) as accessor:
            name, *others = names_of(loss(*(loss_input_names or outputs)))
        graph, chosen = accessor.model, {"loss": f"output:{name}"}
        more = [*others, *(each for each in more if each not in others)]
        add_outputs(graph, (name, *others))
        evaluated = make_evaluated(graph, [name])
    else:
        evaluated = _make_evaluated(forward, loss, loss_input_names or outputs)
        graph, chosen = copy.deepcopy(forward), _loss_flags(loss, loss_input_names, outputs)
    update = _find_update(optimizer)
    if update.is_of_transformers:
        _check_groups(update, flags)
    flags = {**chosen, **update.flags, "gradients": True, **flags}

    folder = Path(artifact_directory or ".")
    with written_at_once(folder) as made:
        onnx.save(evaluated, os.fspath(made / f"{prefix}eval_model.onnx"))
        path = made / f"{prefix}training_model.onnx"
        trained = _find_trained(graph, frozen, made, flags) if requires_grad is None else list(requires_grad)
        flags = describe_training(graph, trained, flags)
        onnx.save(graph, os.fspath(path))
        if optimizer is not None:
            onnx.save(describe_optimizer(update), os.fspath(made / f"{prefix}optimizer_model.onnx"))
        parameters = {name: each for name, each in weights.items() if name in {*trained, *frozen}}
        write_checkpoint(made / f"{prefix}checkpoint", trained, parameters, more)
        compiled = path.with_suffix(".ortc")
        is_compiled = bool(shapes) or "bindings" in flags or _is_static(graph)
        if is_compiled:
            compile(path, shapes=shapes, output=compiled, **flags)
    if not is_compiled:
        shutil.rmtree(folder / compiled.name, ignore_errors=True)  # of another model, perhaps


def _make_evaluated(forward: onnx.ModelProto, loss: LossType | str | Mapping[str, str] | None, outputs: list[str]) -> onnx.ModelProto:
    """With the loss, where that is one of LossType or in the model."""
    if not isinstance(loss, LossType):
        return make_evaluated(forward, outputs[:1] if loss is None else [])
    with base(forward) as accessor:
        name = _BLOCKS[loss]()(outputs[0])
    return make_evaluated(accessor.model, [name])


def _find_trained(graph: onnx.ModelProto, frozen: list[str], folder: Path, flags: Mapping[str, Any]) -> list[str]:
    """Where requires_grad is not given: what `ortc train` trains by itself."""
    import onnx

    path = folder / "model.onnx"
    onnx.save(graph, os.fspath(path))
    chosen = {name: each for name, each in flags.items() if name not in ("bindings", "target")} | {"target": "native"}
    artifact = compile_with_some(path, graph, output=folder / "artifact", **chosen)
    weights = [each.name for each in graph.graph.initializer]
    found = [name for name in weights if name in artifact.names("parameter") and name not in frozen]
    path.unlink()
    shutil.rmtree(folder / "artifact")
    if not found:
        raise ArgumentError("requires_grad is not given, and nothing is left to train beside frozen_params")
    note(f"requires_grad is not given: {', '.join(found)} are trained, as `ortc train` chooses")
    return found


def _find_update(optimizer: OptimType | Optimizer | str | None) -> Update:
    if isinstance(optimizer, Optimizer):
        return optimizer.update
    return _OPTIMIZERS[optimizer] if isinstance(optimizer, OptimType) else Update(optimizer or "sgd")


def _check_groups(update: Update, flags: Mapping[str, Any]) -> None:
    """Module decays after the update by a rate and a decay that all parameters share."""
    decays = not update.flag.endswith("weight_decay=0.0")
    for name in ("group", "no_decay"):
        if (given := flags.get(name)) and (decays or "weight_decay" in str(given)):
            refuse(
                f"AdamW of OptimType and onnxblock.optim with a decay and {name}",
                "all parameters decay alike there; give optimizer='adamw:lr=...,weight_decay=...', which is PyTorch's",
            )


def _check_names(trained: Sequence[str] | None, frozen: list[str], weights: Mapping[str, Any]) -> None:
    if unknown := [name for name in frozen if name not in weights]:
        note(f"frozen_params: the model has no initializer {', '.join(unknown)}")
    if trained is None:
        return
    if both := sorted({*trained} & {*frozen}):
        raise ArgumentError(f"requires_grad and frozen_params both have {', '.join(both)}")
    if unknown := [name for name in trained if name not in weights]:
        raise ArgumentError(f"the model has no initializer {', '.join(unknown)}; it has {', '.join(weights)}")
    if not trained:
        raise ArgumentError("requires_grad is empty: nothing would be trained")


def _loss_flags(loss: LossType | str | Mapping[str, str] | None, inputs: list[str] | None, outputs: list[str]) -> dict[str, Any]:
    if inputs and (len(inputs) > 1 or isinstance(loss, Mapping)):
        refuse(f"loss_input_names of {len(inputs)}", "name the output that is compared with the label as loss='LOSS@OUTPUT'")
    if loss is None:
        return {"loss": f"output:{inputs[0] if inputs else outputs[0]}"}
    if isinstance(loss, Mapping):
        return {"loss": dict(loss)}
    return {"loss": _LOSSES[loss] if isinstance(loss, LossType) else loss} | ({"loss_input": inputs[0]} if inputs else {})


def _is_static(model: onnx.ModelProto) -> bool:
    return all(each.type.tensor_type.HasField("shape") for each in graph_inputs(model)) and all(
        dim.HasField("dim_value") for each in graph_inputs(model) for dim in each.type.tensor_type.shape.dim
    )
