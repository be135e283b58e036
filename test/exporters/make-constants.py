#!/usr/bin/env python3
"""Makes the fixtures whose files have constants of formulas and frozen weights among their initializers.

usage: make-constants.py [NAME ...]
Needs torch, jax, flax, keras, jax2onnx, onnx and onnxscript. Each fixture gets model.onnx, data.npz (inputs and label) and
golden.npz: the mean squared error and its gradients as the framework computes them, under the names of the file.
"""
import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "jax"
import numpy as np
import onnx

HERE = pathlib.Path(__file__).resolve().parent
KEPT = ("graph_signature", "pkg.torch.onnx.fx_node", "pkg.onnxscript.optimizer.folded_from", "ortc.")


def write(name, model, data, golden):
    """Without paths and stack traces."""
    for message in [model, model.graph, *model.graph.node, *model.graph.initializer, *model.graph.value_info,
                    *model.graph.input, *model.graph.output]:
        kept = [p for p in message.metadata_props if any(key in p.key for key in KEPT)]
        kept = [(p.key, p.value) for p in kept]
        del message.metadata_props[:]
        for key, value in kept:
            message.metadata_props.add(key=key, value=value)
        message.doc_string = ""
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    np.savez_compressed(folder / "data.npz", **data)
    np.savez_compressed(folder / "golden.npz", **golden)
    print(name, "loss", float(golden["loss"]), len(golden) - 1, "gradients")


def name_after_values(model, gradients):
    """Gradients by the names of the file, where each parameter has values of its own: {name: gradient} from [(value, gradient)]."""
    named = {}
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        for value, gradient in gradients:
            value, gradient = np.asarray(value), np.asarray(gradient)
            if array.dtype == value.dtype and array.size == value.size and array.tobytes() == value.tobytes():
                named[tensor.name] = gradient.reshape(array.shape)
    assert len(named) == len(gradients), (len(named), len(gradients))
    return named


def shaken(tree, rng):
    """Every leaf with random values of its own, near its own: names are found by values."""
    import jax
    return jax.tree.map(lambda leaf: (leaf + 0.1 * rng.normal(size=leaf.shape)).astype(np.float32), tree)


def make_flax():
    """Norms with their epsilon as an initializer, a larger of two, a count, a scale of scores, NaN for an empty mean; and weights of one element: a slope, a layer scale, the logarithm of a temperature, a bias."""
    import jax
    import jax.numpy as jnp
    from flax import nnx
    from jax2onnx import to_onnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.inner = nnx.Linear(6, 8, rngs=rngs)
            self.rms = nnx.RMSNorm(8, rngs=rngs)
            self.slope = nnx.PReLU()
            self.norm = nnx.LayerNorm(8, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(num_heads=2, in_features=8, decode=False, rngs=rngs)
            self.scale = nnx.Param(jnp.array([0.7]))
            self.temperature = nnx.Param(jnp.array(0.3))
            self.head = nnx.Param(jnp.ones((8, 1)))
            self.bias = nnx.Param(jnp.zeros((1,)))

        def __call__(self, x):
            x = self.slope(self.rms(self.inner(x)))
            x = x + self.scale * self.attention(self.norm(x))
            x = jax.nn.relu6(x) + jax.nn.squareplus(x)
            x = (x - x.mean(-1, keepdims=True)) / (jnp.std(x, -1, keepdims=True) + 1e-3)
            x = x / jnp.maximum(jnp.linalg.norm(x, axis=-1, keepdims=True), 1e-6)
            return (x * jnp.exp(self.temperature[...])) @ self.head + self.bias

    rng = np.random.default_rng(0)
    graph, parameters, rest = nnx.split(Net(nnx.Rngs(0)), nnx.Param, ...)
    parameters = shaken(parameters, rng)
    x = rng.normal(size=(4, 5, 6)).astype(np.float32)
    label = rng.normal(size=(4, 5, 1)).astype(np.float32)

    def loss(parameters):
        return jnp.mean((nnx.merge(graph, parameters, rest)(x) - label) ** 2)

    value, gradients = jax.value_and_grad(loss)(parameters)
    net = nnx.merge(graph, parameters, rest)
    model = to_onnx(net, [jax.ShapeDtypeStruct(x.shape, jnp.float32)])
    pairs = list(zip(jax.tree.leaves(parameters), jax.tree.leaves(gradients)))
    named = name_after_values(model, pairs)
    write("flax-norms", model, {"in_0": x, "label": label}, {"loss": np.float32(value), **named})


def make_keras():
    """Batch normalisation written as its formula, whose statistics are no weights; PReLU with one slope, a layer with one scale, a head with one bias."""
    import jax
    import jax.numpy as jnp
    import keras
    from keras import layers, ops

    class Scale(layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(shape=(1,), initializer="ones", name="scale")
            self.temperature = self.add_weight(shape=(), initializer="zeros", name="temperature")

        def call(self, x):
            y = x / ops.sqrt(ops.mean(ops.square(x), -1, keepdims=True) + 1e-3)
            return self.scale * y + ops.normalize(x, axis=-1) * ops.exp(self.temperature)

    inputs = keras.Input((5, 6), batch_size=4, name="x")
    h = layers.Dense(8)(inputs)
    h = layers.LayerNormalization()(h)
    h = layers.PReLU(shared_axes=[1, 2])(h)
    h = layers.MultiHeadAttention(2, 4)(h, h) + h
    h = layers.BatchNormalization()(h)
    h = layers.RMSNormalization()(Scale()(h))
    net = keras.Model(inputs, layers.Dense(1)(layers.Activation("relu6")(h)))
    rng = np.random.default_rng(1)
    for variable in net.weights:
        noise = np.abs(rng.normal(size=variable.shape)) if "variance" in variable.path else rng.normal(size=variable.shape)
        variable.assign((np.array(variable) + 0.1 * noise).astype(np.float32))
    x = rng.normal(size=(4, 5, 6)).astype(np.float32)
    label = rng.normal(size=(4, 5, 1)).astype(np.float32)
    fixed = [v.value for v in net.non_trainable_variables]

    def loss(trained):
        result, _ = net.stateless_call(trained, fixed, x, training=False)
        return jnp.mean((result - label) ** 2)

    trained = [v.value for v in net.trainable_variables]
    value, gradients = jax.value_and_grad(loss)(trained)
    path = HERE / "keras-norms.tmp.onnx"
    net(x)  # exporters want a model that has been called
    net.export(str(path), format="onnx", verbose=False)
    model = onnx.load(path)
    path.unlink()
    named = name_after_values(model, list(zip(trained, gradients)))
    write("keras-norms", model, {model.graph.input[0].name: x, "label": label}, {"loss": np.float32(value), **named})


def make_torch(dynamo):
    """A frozen backbone and a head; numbers of formulas that are buffers, and weights of one element with names of their own."""
    import torch
    from torch import nn

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.rand(8) + 0.5)
            self.register_buffer("eps", torch.tensor(1e-5))

        def forward(self, x):
            return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8))
            self.positions = nn.Parameter(torch.randn(5, 8) * 0.1)
            self.norm = Norm()
            self.query, self.key = nn.Linear(8, 4), nn.Linear(8, 4)
            self.register_buffer("scale", torch.tensor(4 ** -0.5))
            self.temperature = nn.Parameter(torch.tensor(0.9))
            self.layer_scale = nn.Parameter(torch.tensor([0.4]))
            self.slope = nn.PReLU(init=0.2)
            self.register_buffer("most", torch.tensor(6.0))
            self.head = nn.Linear(8, 1)

        def forward(self, x):
            x = self.norm(self.backbone(x) + self.positions)
            scores = self.query(x) @ self.key(x).transpose(1, 2) * self.scale
            x = x + self.layer_scale * (torch.softmax(scores * self.temperature, -1) @ x)
            return self.head(torch.minimum(self.slope(x), self.most))

    torch.manual_seed(2)
    net = Net()
    for name, parameter in net.named_parameters():
        parameter.requires_grad = not name.startswith(("backbone", "positions"))
    x, label = torch.randn(4, 5, 6), torch.randn(4, 5, 1)
    loss = nn.functional.mse_loss(net(x), label)
    loss.backward()
    name = "torch-dynamo-frozen" if dynamo else "torchscript-frozen"
    path = HERE / (name + ".tmp.onnx")
    if dynamo:  # as it comes by default
        torch.onnx.export(net, (x,), path, dynamo=True, input_names=["x"], external_data=False, verbose=False)
    else:
        torch.onnx.export(net, (x,), path, dynamo=False, input_names=["x"], do_constant_folding=False,
                          training=torch.onnx.TrainingMode.TRAINING)
    model = onnx.load(path)
    path.unlink()
    frozen = [n for n, p in net.named_parameters() if not p.requires_grad]
    if dynamo:
        model.metadata_props.add(key="ortc.frozen", value="\n".join(frozen))
    golden = {"loss": loss.detach().numpy()}
    names = {t.name: t for t in model.graph.initializer}
    pairs = []
    for key, parameter in net.named_parameters():
        if not parameter.requires_grad:
            continue
        if key in names:
            golden[key] = parameter.grad.numpy()
        else:  # folded: transposed
            pairs.append((np.ascontiguousarray(parameter.detach().numpy().T), np.ascontiguousarray(parameter.grad.numpy().T)))
    golden.update(name_after_values(model, pairs))
    write(name, model, {"x": x.numpy(), "label": label.numpy()}, golden)
    if not dynamo:
        (HERE / name / "frozen.txt").write_text("\n".join(frozen) + "\n")


MAKERS = {"flax-norms": make_flax, "keras-norms": make_keras, "torch-dynamo-frozen": lambda: make_torch(True),
          "torchscript-frozen": lambda: make_torch(False)}
for wanted in sys.argv[1:] or MAKERS:
    MAKERS[wanted]()
