#!/usr/bin/env python3
"""Writes what torch.ao.quantization makes of two small nets that are trained to be quantised, as goldens.

    python make-qat.py

NET/model.onnx: conv (strided, depthwise and 1x1 convolutions, linear layers) and text (an embedding, attention, a perceptron).
NET/data.npz: what they are trained with. NET/golden.npz: for each case of CASES the losses of its steps, parameters, ranges and scales
afterwards, and the output, in float32. Weights are rounded by the layers of torch.ao.nn.qat, what these read by a FakeQuantize in front.

A run from weights that are off in their last place is no measure of a tolerance here: the element that sets the range of a weight lies half
way between two integers, and the last place decides which of both it is. The steps below meet no other such element.
Needs torch, onnx and numpy.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import copy
import pathlib
import warnings

import numpy as np
import torch
import torch.ao.nn.qat as qat
import torch.ao.quantization as ao
import torch.nn.functional as F
from torch.ao.quantization._learnable_fake_quantize import _LearnableFakeQuantize

FOLDER = pathlib.Path(__file__).parent
STEPS, BATCH = 6, 8
# name: net, optimizer, quantisers as the flag has them
CASES = {
    "default": ("conv", "sgd", {}),
    "adam": ("conv", "adam", {}),
    "frozen": ("conv", "sgd", {"observe": 3}),
    "minmax": ("conv", "sgd", {"per": "tensor", "observer": "minmax"}),
    "four": ("conv", "sgd", {"bits": 4}),
    "learned": ("conv", "sgd", {"learned": 1, "observe": 2}),
    "text": ("text", "sgd", {}),
    "text-adam": ("text", "adam", {"averaging": 0.25}),
    "text-learned": ("text", "sgd", {"learned": 1, "per": "tensor"}),
}


class Conv(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.depth = torch.nn.Conv2d(2, 6, 3, stride=2, padding=1), torch.nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.point, self.hidden, self.head = torch.nn.Conv2d(6, 8, 1), torch.nn.Linear(128, 16), torch.nn.Linear(16, 5)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = torch.relu(self.point(torch.tanh(self.depth(x))))
        return self.head(F.gelu(self.hidden(x.flatten(1))))

    @staticmethod
    def data():
        return torch.randn(STEPS * BATCH, 2, 8, 8)


class Text(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.norm = torch.nn.Embedding(20, 12), torch.nn.LayerNorm(12)
        # Softmax takes no notice of a bias of the key, whose gradient would be noise.
        self.query, self.key, self.value = (torch.nn.Linear(12, 12, bias=name != "key") for name in ("query", "key", "value"))
        self.mix, self.wide, self.narrow, self.head = torch.nn.Linear(12, 12), torch.nn.Linear(12, 24), torch.nn.Linear(24, 12), torch.nn.Linear(12, 5)

    def forward(self, tokens):
        x = self.word(tokens)
        y = self.norm(x)
        scores = self.query(y) @ self.key(y).transpose(1, 2) / 12 ** 0.5
        x = x + self.mix(torch.softmax(scores, -1) @ self.value(y))
        x = x + self.narrow(F.gelu(self.wide(x)))
        return self.head(x.mean(1))

    @staticmethod
    def data():
        return torch.randint(20, (STEPS * BATCH, 6))


def quantiser(shape, channels, flags):
    """For a weight of `channels` channels, or for what a layer reads (None)."""
    bits, is_minmax = flags.get("bits", 8), flags.get("observer") == "minmax"
    per_channel = channels is not None and flags.get("per", "channel") == "channel"
    if is_minmax:
        observer, more = (ao.PerChannelMinMaxObserver if per_channel else ao.MinMaxObserver), {}
    else:
        observer = ao.MovingAveragePerChannelMinMaxObserver if per_channel else ao.MovingAverageMinMaxObserver
        more = {"averaging_constant": flags.get("averaging", 0.01)}
    if channels is None:
        more |= {"quant_min": 0, "quant_max": 2 ** bits - 1, "dtype": torch.quint8, "qscheme": torch.per_tensor_affine}
    else:
        more |= {"quant_min": -2 ** (bits - 1), "quant_max": 2 ** (bits - 1) - 1, "dtype": torch.qint8,
                 "qscheme": torch.per_channel_symmetric if per_channel else torch.per_tensor_symmetric}
    if per_channel:
        more["ch_axis"] = 0
    if flags.get("learned"):
        return _LearnableFakeQuantize(observer, channel_len=channels if per_channel else -1, use_grad_scaling=True, **more)
    return ao.FakeQuantize(observer, **more)


def prepare(net, flags):
    """`net` with quantisers; layers that read one value share one."""
    net = copy.deepcopy(net)
    shared = {name: "query" for name in ("query", "key", "value")}
    inputs = {}
    for name, layer in list(net.named_children()):
        kind = {torch.nn.Conv2d: qat.Conv2d, torch.nn.Linear: qat.Linear}.get(type(layer))
        if not kind:
            continue
        config = ao.QConfig(activation=None, weight=lambda layer=layer, **_: quantiser(layer.weight.shape, layer.weight.shape[0], flags))
        layer.qconfig = config
        new = kind.from_float(layer)
        group = shared.get(name, name)
        if group not in inputs:
            inputs[group] = quantiser(None, None, flags)
        new.quantise_input = inputs[group]
        new.register_forward_pre_hook(lambda self, args: (once(self.quantise_input, args[0]),))
        setattr(net, name, new)
    return net


def once(quantise, x):
    """A value that several layers read is observed and rounded once."""
    if getattr(quantise, "last", (None,))[0] is not x:
        quantise.last = x, quantise(x)
    return quantise.last[1]


def quantisers(net):
    """By the name of the tensor in model.onnx, as far as PyTorch knows it: NAME.weight, and NAME.input for what layer NAME reads."""
    found = {}
    for name, layer in net.named_children():
        if hasattr(layer, "weight_fake_quant"):
            found[name + ".weight"], found[name + ".input"] = layer.weight_fake_quant, layer.quantise_input
    return found


def train(net, data, label, optimizer, flags):
    net = prepare(net, flags)
    all_quantisers = set(quantisers(net).values())
    learned = [q.scale for q in all_quantisers] if flags.get("learned") else []
    for scale in learned:
        scale.requires_grad_(True)
    trained = [p for n, p in net.named_parameters() if not n.endswith("zero_point") and not n.endswith("scale")]
    rate = 0.02 if optimizer == "sgd" else 0.003
    groups = [{"params": trained}, {"params": learned, "lr": 0.1 * rate}] if learned else trained
    step = torch.optim.SGD(groups, lr=rate, momentum=0.9) if optimizer == "sgd" else torch.optim.Adam(groups, lr=rate, eps=1e-6)
    observed = flags.get("observe", 1 if learned else 0)
    losses = []
    for i, (x, y) in enumerate(zip(data.split(BATCH), label.split(BATCH))):
        is_observing = not observed or i < observed
        for q in all_quantisers:
            if learned:
                q.toggle_observer_update(is_observing)
            else:
                q.enable_observer(is_observing)
        step.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        for scale in learned if is_observing else ():
            scale.grad.zero_()
        step.step()
        losses.append(loss.item())
    result = {"loss": np.array(losses)}
    for name, p in net.named_parameters():
        if name.split(".")[-1] in ("weight", "bias"):
            result["param/" + name] = p.detach().numpy()
    for name, q in quantisers(net).items():
        observer = q.activation_post_process
        result["min/" + name], result["max/" + name] = observer.min_val.numpy(), observer.max_val.numpy()
        result["scale/" + name] = q.scale.detach().numpy().copy()
        if learned:
            q.toggle_observer_update(False)
        else:
            q.disable_observer()
    result["output"] = net.eval()(data[:BATCH]).detach().numpy()
    return result


def main():
    torch.set_num_threads(1)
    for kind, name in ((Conv, "conv"), (Text, "text")):
        folder = FOLDER / name
        folder.mkdir(exist_ok=True)
        torch.manual_seed(1)
        net, data = kind(), kind.data()
        label = torch.randint(5, (STEPS * BATCH,))
        np.savez_compressed(folder / "data.npz", x=data.numpy(), label=label.numpy())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(net, (data[:BATCH],), str(folder / "model.onnx"), dynamo=False, opset_version=17, input_names=["x"],
                              output_names=["output"], training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
        golden = {}
        for case, (which, optimizer, flags) in CASES.items():
            if which != name:
                continue
            result = train(net, data, label, optimizer, flags)
            golden |= {case + "/" + key: value for key, value in result.items()}
            print(case, result["loss"])
        np.savez_compressed(folder / "golden.npz", **golden)


if __name__ == "__main__":
    main()
