#!/usr/bin/env python3
"""Runs docs/examples/federated: the loss falls in every round and comes near that of one place, with float and int8 changes alike.

    run-federated.py ORTC DEVICE SOURCE

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import re
import subprocess
import sys


def main():
    ortc, device, source = sys.argv[1:]
    digits = f"{source}/test/data/digits"
    losses, accuracies, sent = {}, {}, {}
    for kind, flags in (("float", []), ("int8", ["--int8"])):
        command = [sys.executable, "-B", f"{source}/docs/examples/federated/server.py", ortc, device,
                   f"{source}/test/zoo/mlp-digits/model.onnx", f"{digits}/train.npz", f"{digits}/test.npz", *flags]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        print(text, end="")
        found = re.findall(r"loss ([0-9.]+), accuracy ([0-9.]+) %", text)
        losses[kind] = [float(loss) for loss, _ in found]
        accuracies[kind] = [float(accuracy) for _, accuracy in found]
        sent[kind] = sum(int(count) for count in re.findall(r"([0-9]+) bytes were sent", text))
        assert len(found) == 7, "a line for the beginning, five rounds, and one place"
        rounds = losses[kind][:6]
        assert all(after < before for before, after in zip(rounds, rounds[1:])), f"{kind}: the loss does not fall"
        # Ten epochs over all samples, against five means of two epochs over parts: less steps in a row.
        assert rounds[5] < 0.15 and rounds[5] < losses[kind][6] + 0.1, f"{kind}: the loss is not near that of one place"
        assert accuracies[kind][5] > accuracies[kind][6] - 4, f"{kind}: the accuracy is not near that of one place"
    for number, (a, b) in enumerate(zip(losses["float"], losses["int8"])):
        assert abs(a - b) < 0.01 * a, f"round {number}: int8 gives another loss"
    assert sent["int8"] < 0.3 * sent["float"], "int8 is not small"


if __name__ == "__main__":
    main()
