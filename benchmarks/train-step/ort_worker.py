"""A model of the performance set in ONNX Runtime Training: artifacts, training step, AdamW. A worker (see worker.py).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: ort_worker.py FOLDER --threads N
The artifacts are made by a process of its own, so that what it needs does not count as memory of the training.
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

import worker

BATCHES = 4
LOSSES = {"cross_entropy": "CrossEntropyLoss", "mse": "MSELoss", "bce_with_logits": "BCEWithLogitsLoss"}


def prepare(model):
    """What the gradient builder asks for.

    Layer norm has its optional outputs. Batch norm is in its inference form: it trains it all the same, with the
    statistics of the batch.
    """
    for k, node in enumerate(model.graph.node):
        if node.op_type == "LayerNormalization":
            node.output.extend([f"mean_{k}", f"inverse_{k}"][len(node.output) - 1 :])
        if node.op_type == "BatchNormalization":
            del node.output[1:]
            for attribute in node.attribute:
                if attribute.name == "training_mode":
                    attribute.i = 0


def generate(folder, out):
    """Writes the training artifacts of folder/model.onnx to `out`."""
    import onnx
    from onnxruntime.training import artifacts, onnxblock

    onnxruntime.set_default_logger_severity(3)
    recipe = json.loads((folder / "recipe.json").read_text())
    model = onnx.load(folder / "model.onnx")
    prepare(model)
    running = {name for node in model.graph.node if node.op_type == "BatchNormalization" for name in node.input[3:5]}
    floats = [i.name for i in model.graph.initializer if i.data_type == onnx.TensorProto.FLOAT]
    loss = LOSSES[recipe["flags"][recipe["flags"].index("--loss") + 1]]
    artifacts.generate_artifacts(
        model,
        requires_grad=[name for name in floats if name not in running],
        frozen_params=[name for name in floats if name in running],
        loss=getattr(onnxblock.loss, loss)(),
        optimizer=onnxblock.optim.AdamW(eps=1e-8, weight_decay=0.01),
        artifact_directory=out,
    )


def make_step(folder, artifacts, threads):
    from onnxruntime.training import api

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    data = np.load(folder / "data.npz")
    names = [name for name in data.files if name != "label"] + ["label"]
    parts = zip(*(np.split(data[name], BATCHES) for name in names))
    turns = itertools.cycle([[onnxruntime.OrtValue.ortvalue_from_numpy(part) for part in batch] for batch in parts])
    state = api.CheckpointState.load_checkpoint(f"{artifacts}/checkpoint")
    module = api.Module(
        f"{artifacts}/training_model.onnx", state, f"{artifacts}/eval_model.onnx", session_options=options
    )
    optimizer = api.Optimizer(f"{artifacts}/optimizer_model.onnx", module)
    optimizer.set_learning_rate(1e-3)
    module.train()

    def step():
        loss = module(*next(turns))
        optimizer.step()
        module.lazy_reset_grad()
        return loss.numpy()

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--generate", metavar="OUT", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.generate:
        return generate(args.folder, args.generate)
    with tempfile.TemporaryDirectory() as artifacts:
        started = time.perf_counter()
        if subprocess.run([sys.executable, __file__, args.folder, "--generate", artifacts]).returncode:
            sys.exit(1)
        seconds, base = time.perf_counter() - started, worker.reset_peak()
        started = time.perf_counter()
        step = make_step(args.folder, artifacts, args.threads)
        seconds += time.perf_counter() - started
    worker.serve(step, seconds, version=f"ONNX Runtime Training {onnxruntime.__version__}", base_mib=base)


if __name__ == "__main__":
    main()
