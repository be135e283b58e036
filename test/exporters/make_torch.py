#!/usr/bin/env python3
"""Makes the fixtures torch-* of shared layers, group norms and batch norms: models as both exporters of PyTorch write them, by default and as
docs/exporters.md recommends, with the first loss and gradients and the losses of training steps that PyTorch computes.

usage: make_torch.py    writes the folders beside this file
Needs torch, onnx, onnxscript and numpy. A folder has model.onnx, data.npz (STEPS slices along the first axis), golden.npz: `losses`,
plain SGD with a learning rate of LR, gradients of the first step under the names of PyTorch, in its layouts, and with running
statistics `predictions` for the data in evaluation mode after all steps.
"""
import contextlib
import copy
import io
import pathlib
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
STEPS, LR = 4, 0.2


class SharedLayers(nn.Module):
    """An embedding tied with the head, and layers that are called twice, among them one too large for the exporter to merge."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 36)
        self.fc = nn.Linear(36, 36)
        self.conv = nn.Conv1d(36, 36, 1)
        self.norm = nn.LayerNorm(36)

    def forward(self, ids):
        x = self.embed(ids)
        x = self.norm(x + torch.tanh(self.fc(x)))
        x = self.norm(x + torch.tanh(self.fc(x)))
        x = self.conv(torch.tanh(self.conv(x.transpose(1, 2)))).transpose(1, 2)
        return x @ self.embed.weight.T


class GroupNorms(nn.Module):
    """Fresh group norms of one group, of two, and of as many as there are channels; an instance norm with and without weights."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.one = nn.GroupNorm(1, 4)
        self.two = nn.GroupNorm(2, 4)
        self.all = nn.GroupNorm(4, 4)
        self.instance = nn.InstanceNorm2d(4, affine=True)
        self.bare = nn.InstanceNorm2d(4)
        self.plain = nn.GroupNorm(2, 4, affine=False)
        self.mix = nn.Conv2d(4, 4, 1)
        self.head = nn.Linear(4 * 36, 5)

    def forward(self, x):
        x = torch.tanh(self.two(self.one(self.conv(x))))
        x = torch.tanh(self.all(self.mix(self.instance(x))))
        return self.head(self.plain(x + self.bare(self.mix(x))).flatten(1))


class CopiedLayers(nn.Module):
    """Layers that start as copies of one, as nn.TransformerEncoder makes them: equal, and trained apart."""

    def __init__(self):
        super().__init__()
        layer = nn.Sequential(nn.Linear(36, 36), nn.LayerNorm(36))
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(2))
        self.head = nn.Linear(36, 5)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return self.head(x.mean(1))


class BatchNorms(nn.Module):
    """A batch norm beside others that have no running statistics: none at all, or made on the spot."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.untracked = nn.BatchNorm2d(4, track_running_stats=False)
        self.scale = nn.Parameter(torch.rand(4) + 0.5)
        self.shift = nn.Parameter(torch.rand(4))
        self.head = nn.Linear(4 * 36, 5)

    def forward(self, x):
        x = torch.tanh(self.norm(self.conv(x)))
        x = torch.tanh(self.untracked(x) * self.scale[:, None, None])
        x = F.batch_norm(x, torch.zeros(4, dtype=x.dtype), torch.ones(4, dtype=x.dtype), self.scale, self.shift, training=True)
        return self.head(x.flatten(1))


class StandardizedConv(nn.Conv2d):
    """Weight standardisation as timm and BiT write it."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.gain = nn.Parameter(torch.rand(self.out_channels, 1, 1, 1) + 0.5)

    def forward(self, x):
        weight = self.weight.reshape(1, self.out_channels, -1)
        weight = F.batch_norm(weight, None, None, weight=self.gain.view(-1), training=True, momentum=0.0, eps=1e-6)
        return F.conv2d(x, weight.reshape_as(self.weight), self.bias)


class InstanceStatistics(nn.Module):
    """An instance norm with running statistics, which are means over the samples of a batch."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.InstanceNorm2d(4, affine=True, track_running_stats=True)
        self.head = nn.Linear(4 * 36, 5)

    def forward(self, x):
        return self.head(torch.tanh(self.norm(self.conv(x))).flatten(1))


def standardized():
    return nn.Sequential(StandardizedConv(3, 4, 3), nn.BatchNorm2d(4), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 36, 5))


EXPORTS = {
    "torchscript": dict(dynamo=False),
    "torchscript-unfolded": dict(dynamo=False, do_constant_folding=False, training=torch.onnx.TrainingMode.TRAINING),
    "dynamo": dict(dynamo=True, external_data=False),
    "dynamo-unfolded": dict(dynamo=True, optimize=False, external_data=False),
    "dynamo-21": dict(dynamo=True, opset_version=21, external_data=False),
    "torchscript-13": dict(dynamo=False, opset_version=13, do_constant_folding=False, training=torch.onnx.TrainingMode.TRAINING),
}


def strip(model):
    """Leaves paths and stack traces out."""
    for node in model.graph.node:
        kept = [p for p in node.metadata_props if p.key == "pkg.torch.onnx.fx_node"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    del model.metadata_props[:]
    return model


def write(name, exporter, module, x, label, per_step, mark=lambda model: {}):
    folder = HERE / f"torch-{name}-{exporter}"
    folder.mkdir(exist_ok=True)
    path = folder / "model.onnx"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(copy.deepcopy(module), (x[0],), path, input_names=["x"], output_names=["y"], **EXPORTS[exporter])
    model = strip(onnx.load(path))
    onnx.helper.set_model_props(model, mark(model))
    onnx.save(model, path)
    np.savez(folder / "data.npz", x=x.flatten(0, 1).numpy(), label=label.flatten(0, 1).numpy())
    net = copy.deepcopy(module).double()
    written = {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy()) for t in onnx.load(path).graph.initializer}
    for name, buffer in net.named_buffers():  # TorchScript's tracing has moved running statistics
        if name in written:
            buffer.copy_(written[name])
    optimizer = torch.optim.SGD(net.parameters(), lr=LR)
    golden, losses = {}, []
    for step in range(STEPS):
        y = net(x[step].double() if x.is_floating_point() else x[step])
        loss = F.cross_entropy(y.movedim(-1, 1) if per_step else y, label[step])
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            golden = {n: p.grad.float().numpy().copy() for n, p in net.named_parameters() if p.grad is not None}
        optimizer.step()
        losses.append(float(loss.detach()))
    net.eval()
    with torch.no_grad():
        after = [net(each.double() if each.is_floating_point() else each) for each in x]
    evaluation = {"predictions": torch.stack(after).float().numpy()} if any(k.endswith("running_var") for k in net.state_dict()) else {}
    np.savez(folder / "golden.npz", losses=np.array(losses, np.float32), **evaluation, **golden)


class First(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


class Means(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x):
        places = torch.tensor([[0, 0, 1, 1]]).expand(x.shape[0], -1)
        return torch.zeros(x.shape[0], 2).scatter_reduce(1, places, self.layer(x), "mean", include_self=False)


def write_faults():
    """Files that no runtime takes, or that compute something else than the module."""
    folder = HERE / "torch-faults"
    folder.mkdir(exist_ok=True)

    def fault(name, module, x, exporter):
        path = folder / f"{name}.onnx"
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            torch.onnx.export(module, (x,), path, input_names=["x"], output_names=["y"], **EXPORTS[exporter])
        onnx.save(strip(onnx.load(path)), path)

    fault("conv3d-without-bias", nn.Conv3d(3, 4, 2, bias=False), torch.randn(1, 3, 3, 3, 3), "dynamo-unfolded")
    sequence = torch.randn(4, 2, 3)
    fault("lstm-projection", First(nn.LSTM(3, 5, proj_size=2)), sequence, "dynamo-unfolded")
    fault("lstm-projection-two-layers", First(nn.LSTM(3, 5, proj_size=2, num_layers=2)), sequence, "dynamo")
    fault("instancenorm-statistics", nn.InstanceNorm2d(2, track_running_stats=True), torch.randn(1, 2, 3, 3), "torchscript-unfolded")
    fault("scatter-mean", Means(), torch.randn(2, 3), "dynamo-unfolded")
    unnoted = onnx.load(folder / "lstm-projection.onnx")
    for node in unnoted.graph.node:
        del node.metadata_props[:]
    onnx.save(unnoted, folder / "lstm-projection-unnoted.onnx")


def main():
    warnings.filterwarnings("ignore")
    torch.manual_seed(5)
    shared, groups, copied = SharedLayers(), GroupNorms(), CopiedLayers()
    ids, next_ids = torch.randint(0, 50, (2, STEPS, 3, 5))
    images, classes = torch.randn(STEPS, 2, 3, 8, 8), torch.randint(0, 5, (STEPS, 2))
    rows = torch.randn(STEPS, 2, 3, 36)
    for exporter in EXPORTS:
        if exporter == "torchscript-13":
            continue
        if exporter != "dynamo-21":
            write("shared", exporter, shared, ids, next_ids, True)
            write("copied", exporter, copied, rows, classes, False)
        write("groupnorm", exporter, groups, images, classes, False)
    norms, standard, instances = BatchNorms(), standardized(), InstanceStatistics()
    images, classes = torch.randn(STEPS, 4, 3, 8, 8), torch.randint(0, 5, (STEPS, 4))
    for exporter in ("dynamo-unfolded", "torchscript-unfolded"):
        write("batchnorm", exporter, norms, images, classes, False)
        write("standardized", exporter, standard, images, classes, False)
    write("instancenorm", "torchscript-13", instances, images, classes, False)
    write_faults()


if __name__ == "__main__":
    main()
