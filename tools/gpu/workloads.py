"""The models whose speed is measured on a GPU: how they are made, what fills them, and PyTorch's name for them.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Initializers of the files are zeros and ones, so that an artifact packs into little; `fill` makes the weights where they are used, from
a seed. Names and shapes are those of the PyTorch module, so that both begin with the same numbers.
"""
import collections
import math
import random
import struct

from onnx_model import FLOAT, INT64, Graph

# inputs: [{name, dtype, shape, below}] of one step; integers are below `below`, floats are as `fill` makes them.
# tensors: [{name, shape, fill}]; fill: "zeros", "ones" or an exponent.
# flags: of ortc train. torch: the job of torch_step.py that is the same work.
Workload = collections.namedtuple("Workload", "graph tensors inputs flags torch")

SLICES = 4  # of data; every system goes through them again and again


def exponent_for(deviation):
    """Of numbers that are spread evenly over plus and minus [2^e, 2^(e+1)): their standard deviation is 1.53 * 2^e."""
    return round(math.log2(deviation / math.sqrt(7 / 3)))


def fill(generator, count, kind):
    """The bytes of `count` floats, in chunks: random sign and fraction, one exponent."""
    chunk = 1 << 18
    if kind in ("zeros", "ones"):
        one = struct.pack("<f", 1.0 if kind == "ones" else 0.0)
        yield from (one * min(chunk, count - begin) for begin in range(0, count, chunk))
        return
    repeat = lambda word, times: int.from_bytes(struct.pack("<I", word) * times, "little")
    masks = {}
    for begin in range(0, count, chunk):
        size = min(chunk, count - begin)
        if size not in masks:
            masks[size] = repeat(0x807FFFFF, size), repeat((kind + 127) << 23, size)
        keep, exponents = masks[size]
        bits = int.from_bytes(generator.randbytes(4 * size), "little")
        yield (bits & keep | exponents).to_bytes(4 * size, "little")


def fill_input(generator, described, slices):
    """The bytes of some slices of an input, one after the other, in chunks."""
    count = slices * math.prod(described["shape"])
    if described["dtype"] == "F32":
        return fill(generator, count, -1)
    return [struct.pack(f"<{count}q", *(generator.randrange(described["below"]) for _ in range(count)))]


def generator_of(name):
    """Random numbers of an own sequence for everything that has a name."""
    return random.Random(name)


class Builder:
    """A graph with its weights."""

    def __init__(self, opset):
        self.graph, self.tensors, self.inputs = Graph(opset), [], []

    def weight(self, name, shape, kind="zeros"):
        initial = "ones" if kind == "ones" else "zeros"
        data = b"".join(fill(None, math.prod(shape), initial))
        self.tensors.append({"name": name, "shape": list(shape), "fill": kind})
        return self.graph.initializer(name, FLOAT, shape, data)

    def input(self, name, dtype, shape, below=None):
        self.inputs.append({"name": name, "dtype": dtype, "shape": list(shape), "below": below})
        return self.graph.input(name, FLOAT if dtype == "F32" else INT64, shape)

    def label(self, samples, classes):
        """What the loss adds to the inputs of the graph."""
        self.inputs.append({"name": "label", "dtype": "I64", "shape": [samples], "below": classes})

    def finish(self, flags, torch):
        return Workload(self.graph.serialize(), self.tensors, self.inputs, flags, torch)


def gpt2(batch, sequence, layers=12, width=768, vocabulary=50257, positions=1024):
    """As GPT2 in benchmarks/train-step/models.py: heads of 64, tied head, GELU by tanh."""
    make = Builder(opset=23)
    node, integers, small = make.graph.node, make.graph.integers, exponent_for(0.02)

    def norm(x, name):
        inputs = [x, make.weight(f"{name}.weight", [width], "ones"), make.weight(f"{name}.bias", [width])]
        return node("LayerNormalization", inputs, axis=-1, epsilon=1e-5)

    def linear(x, name, inputs, outputs):
        weight = make.weight(f"{name}.weight", [outputs, inputs], small)
        return node("Gemm", [x, weight, make.weight(f"{name}.bias", [outputs])], transB=1)

    def attend(x, name):
        joined = node("Reshape", [linear(x, f"{name}.qkv", width, 3 * width), integers(batch, sequence, 3 * width)])
        parts = node("Split", [joined], outputs=3, axis=2, num_outputs=3)
        heads = width // 64
        mixed = node("Attention", parts, is_causal=1, q_num_heads=heads, kv_num_heads=heads)
        return linear(node("Reshape", [mixed, integers(batch * sequence, width)]), f"{name}.out", width, width)

    tokens = make.input("tokens", "I64", [batch, sequence], vocabulary)
    words = make.weight("word.weight", [vocabulary, width], small)
    places = node("Slice", [make.weight("position.weight", [positions, width], small), integers(0), integers(sequence)])
    x = node("Reshape", [node("Add", [node("Gather", [words, tokens]), places]), integers(batch * sequence, width)])
    for layer in range(layers):
        name = f"layers.{layer}"
        x = node("Add", [x, attend(norm(x, f"{name}.norm1"), name)])
        hidden = linear(norm(x, f"{name}.norm2"), f"{name}.up", width, 4 * width)
        x = node("Add", [x, linear(node("Gelu", [hidden], approximate="tanh"), f"{name}.down", 4 * width, width)])
    node("Gemm", [norm(x, "norm"), words], outputs=["output"], transB=1)
    make.graph.output("output", FLOAT, [batch * sequence, vocabulary])
    make.label(batch * sequence, vocabulary)
    arguments = {"layers": layers, "width": width, "seq": sequence, "vocab": vocabulary}
    flags = ["--loss", "cross_entropy", "--optimizer", "adamw:lr=0.0003,weight_decay=0.01", "--gradients"]
    optimizer = {"kind": "AdamW", "lr": 3e-4, "weight_decay": 0.01}
    return make.finish(flags, {"kind": "train", "module": "gpt2", "arguments": arguments, "optimizer": optimizer})


def resnet18(batch, size, classes=1000):
    """As resnet18 of torchvision. The steps are small: normalisation multiplies what rounding changes, and at lr=0.001 the losses of
    PyTorch's two layouts are 1e-3 apart after 7 steps (16 images of 64x64), at lr=0.0001 they are 1e-4 apart after 20.
    """
    make = Builder(opset=17)
    node = make.graph.node

    def convolution(x, name, inputs, outputs, kernel, stride):
        deviation = math.sqrt(2 / (outputs * kernel * kernel))
        weight = make.weight(f"{name}.weight", [outputs, inputs, kernel, kernel], exponent_for(deviation))
        return node("Conv", [x, weight], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4)

    def norm(x, name, width):
        kinds = {"weight": "ones", "bias": "zeros", "running_mean": "zeros", "running_var": "ones"}
        inputs = [x, *(make.weight(f"{name}.{part}", [width], kind) for part, kind in kinds.items())]
        return node("BatchNormalization", inputs, outputs=3, training_mode=1, momentum=0.9, epsilon=1e-5)[0]

    def block(x, name, inputs, outputs, stride):
        y = node("Relu", [norm(convolution(x, f"{name}.conv1", inputs, outputs, 3, stride), f"{name}.bn1", outputs)])
        y = norm(convolution(y, f"{name}.conv2", outputs, outputs, 3, 1), f"{name}.bn2", outputs)
        if stride > 1:
            x = norm(convolution(x, f"{name}.downsample.0", inputs, outputs, 1, stride), f"{name}.downsample.1", outputs)
        return node("Relu", [node("Add", [y, x])])

    x = convolution(make.input("input", "F32", [batch, 3, size, size]), "conv1", 3, 64, 7, 2)
    x = node("MaxPool", [node("Relu", [norm(x, "bn1", 64)])], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, (inputs, outputs) in enumerate([(64, 64), (64, 128), (128, 256), (256, 512)]):
        x = block(x, f"layer{stage + 1}.0", inputs, outputs, 1 if stage == 0 else 2)
        x = block(x, f"layer{stage + 1}.1", outputs, outputs, 1)
    x = node("Flatten", [node("GlobalAveragePool", [x])])
    weight = make.weight("fc.weight", [classes, 512], exponent_for(1 / math.sqrt(3 * 512)))
    node("Gemm", [x, weight, make.weight("fc.bias", [classes])], outputs=["output"], transB=1)
    make.graph.output("output", FLOAT, [batch, classes])
    make.label(batch, classes)
    flags = ["--loss", "cross_entropy", "--optimizer", "sgd:lr=0.0001,momentum=0.9,weight_decay=0.0001"]
    optimizer = {"kind": "SGD", "lr": 1e-4, "momentum": 0.9, "weight_decay": 1e-4}
    return make.finish(flags, {"kind": "train", "module": "resnet18", "arguments": {"num_classes": classes}, "optimizer": optimizer})


CHAIN = 8  # products one after the other, so that starting the first does not count


def product(size):
    """Square products in float32: x w w w ..., all on the device."""
    make = Builder(opset=17)
    x, w = make.input("x", "F32", [size, size]), make.input("w", "F32", [size, size])
    for i in range(CHAIN):
        x = make.graph.node("MatMul", [x, w], outputs=["output"] if i == CHAIN - 1 else 1)
    make.graph.output("output", FLOAT, [size, size])
    return make.finish(["--loss", "none"], {"kind": "product", "size": size, "chain": CHAIN})


def layer_norm(rows, width):
    """Only layer normalisation, which reads and writes every number once where it is done well."""
    make = Builder(opset=17)
    x = make.input("x", "F32", [rows, width])
    scale, bias = make.weight("weight", [width], "ones"), make.weight("bias", [width])
    make.graph.node("LayerNormalization", [x, scale, bias], outputs=["output"], axis=-1, epsilon=1e-5)
    make.graph.output("output", FLOAT, [rows, width])
    return make.finish(["--loss", "none"], {"kind": "layer-norm", "rows": rows, "width": width})


WORKLOADS = {
    "gpt2-small": lambda: gpt2(batch=4, sequence=512),
    "resnet18-224": lambda: resnet18(batch=32, size=224),
    "product-1024": lambda: product(1024),
    "product-2048": lambda: product(2048),
    "product-4096": lambda: product(4096),
    "layer-norm": lambda: layer_norm(rows=262144, width=1024),
}
