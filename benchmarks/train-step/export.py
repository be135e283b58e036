#!/usr/bin/env python3
"""Writes models of the performance set as ONNX files with data and initial weights.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

usage: export.py FOLDER [NAME ...]
Each FOLDER/NAME holds model.onnx (TorchScript exporter, opset 17, batch norm in training form, nothing folded), data.npz
(four batches, `label` included), weights.npz (PyTorch's state) and recipe.json (the flags of `ortc train`). recipe.json
comes last: a folder without it is not whole.
"""

import argparse
import json
import pathlib
import warnings

import numpy as np
import torch

from models import make
from performance_set import NAMES


def export(name, folder):
    folder.mkdir(parents=True, exist_ok=True)
    case = make(name)
    inputs, _ = case.batches[0]
    np.savez(folder / "weights.npz", **{key: value.numpy() for key, value in case.module.state_dict().items()})
    arrays = {key: torch.cat([batch[key] for batch, _ in case.batches]).numpy() for key in inputs}
    arrays["label"] = torch.cat([label for _, label in case.batches]).numpy()
    np.savez(folder / "data.npz", **arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            case.module,
            tuple(inputs.values()),
            str(folder / "model.onnx"),
            dynamo=False,
            opset_version=17,
            input_names=list(inputs),
            output_names=["output"],
            training=torch.onnx.TrainingMode.TRAINING,
            do_constant_folding=False,
        )
    recipe = {"name": name, "flags": ["--loss", case.spec], "optimizer": "adamw:lr=0.001,weight_decay=0.01"}
    (folder / "recipe.json").write_text(json.dumps(recipe, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", default=NAMES)
    args = parser.parse_args()
    for name in args.names:
        export(name, args.folder / name)


if __name__ == "__main__":
    main()
