"""Writes cases/: one-node models with inputs and the outputs that ONNX Runtime gives them.

    python make-cases.py

Needs numpy, onnx and onnxruntime. Making them again gives the same bytes.
SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FOLDER = pathlib.Path(__file__).parent / "cases"


def values(name, shape, low=-2.0, high=2.0):
    """Multiples of 1/64, so that every type holds them."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    return (np.round(random.uniform(low, high, shape) * 64) / 64).astype(np.float32)


def evaluate(model, outputs, feeds, by_standard):
    """ONNX Runtime's numbers, or the reference evaluator's: where it has no kernel, or asked for because it deviates."""
    if by_standard:
        return ReferenceEvaluator(model).run(outputs, feeds)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(outputs, feeds)
    except Exception:
        return ReferenceEvaluator(model).run(outputs, feeds)


def stored(array):
    """As .npz files know it: integers below 8 bits are int8 or uint8."""
    array = np.asarray(array)
    return array.astype(np.uint8 if str(array.dtype).startswith("u") else np.int8) if str(array.dtype) in ("int4", "uint4", "int2", "uint2") else array


def case(name, op, opset, fed=(), constants=(), outputs=("y",), inputs=None, by_standard=False, domain="", **attributes):
    """`fed` are arrays given at run time, `constants` initializers; `inputs` orders them by name ("" = absent).
    Fed arrays are called x0, x1, ..., constants c0, c1, ..."""
    feeds = {f"x{i}": np.asarray(a) for i, a in enumerate(fed)}
    known = {f"c{i}": np.asarray(a) for i, a in enumerate(constants)}
    node = helper.make_node(op, inputs if inputs is not None else [*feeds, *known], list(outputs), domain=domain or None, **attributes)
    types = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()]
    graph = helper.make_graph([node], name, types, [helper.make_empty_tensor_value_info(o) for o in outputs if o],
                              [numpy_helper.from_array(v, k) for k, v in known.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else []), ir_version=10 if opset > 20 else 8, producer_name="")
    results = evaluate(model, [o for o in outputs if o], feeds, by_standard)
    onnx.save(model, FOLDER / f"{name}.onnx")
    arrays = {f"in/{k}": stored(v) for k, v in feeds.items()}
    arrays.update({f"out/{o}": stored(r) for o, r in zip([o for o in outputs if o], results)})
    np.savez(FOLDER / f"{name}.npz", **arrays)


def ints(*v):
    return np.array(v, np.int64)


def elementwise():
    a, b = values("a", (2, 3, 4)), values("b", (3, 1))
    case("add-broadcast", "Add", 14, [a, b])
    case("div-integers", "Div", 14, [np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)])
    case("mod-sign-of-divisor", "Mod", 13, [np.array([5, -5, 5, -5, 0], np.int64), np.array([3, 3, -3, -3, 3], np.int64)])
    case("pow-half", "Pow", 15, [np.abs(a)], [np.float32(2.5)])
    case("less-unsigned", "Less", 13, [np.array([200, 5], np.uint8), np.array([3, 250], np.uint8)])
    case("min-three", "Min", 13, [a, b, values("c", (4,))])
    case("cast-to-int", "Cast", 13, [a], to=7)
    case("cast-to-bool", "Cast", 13, [np.array([0.0, -0.0, 0.25], np.float32)], to=9)
    case("where-broadcast", "Where", 16, [np.array([[True], [False], [True]]), a, b])
    case("clip-by-attributes", "Clip", 7, [a], min=-1.0, max=0.5)
    case("clip-11-no-min", "Clip", 11, [a], [np.float32(0.5)], inputs=["x0", "", "c0"])
    case("round-halves", "Round", 11, [np.array([0.5, 1.5, -0.5, -1.5, 2.25], np.float32)])
    case("is-inf-negative", "IsInf", 20, [np.array([np.inf, -np.inf, np.nan, 1], np.float32)], detect_positive=0)
    case("bit-shift", "BitShift", 11, [np.array([1, 200, 7], np.uint8), np.array([1, 2, 7], np.uint8)], direction="RIGHT")


def activations():
    x = values("act", (3, 5), -4, 4)
    for op, opset in (("Sigmoid", 13), ("Softplus", 1 + 12), ("HardSwish", 14), ("Mish", 18), ("Selu", 7), ("Softsign", 13)):
        case(op.lower(), op, opset, [x])
    case("gelu-tanh", "Gelu", 20, [x], approximate="tanh")
    case("celu", "Celu", 12, [x], alpha=0.5)
    case("shrink", "Shrink", 9, [x], bias=0.25, lambd=1.0)
    case("prelu", "PRelu", 16, [values("p", (2, 3, 4))], [values("slope", (3, 1))])
    case("softmax-11-matrix", "Softmax", 11, [values("s", (2, 3, 4))], axis=1)
    case("softmax-13", "Softmax", 13, [values("s", (2, 3, 4))], axis=1)
    case("log-softmax", "LogSoftmax", 13, [values("s", (2, 3, 4))], axis=0)
    case("hardmax", "Hardmax", 13, [values("s", (2, 3, 4))], axis=-1)


def shapes():
    x = values("shape", (2, 3, 4))
    case("reshape-zero-and-rest", "Reshape", 14, [x], [ints(0, -1, 2)])
    case("flatten-negative", "Flatten", 13, [x], axis=-1)
    case("squeeze-11", "Squeeze", 11, [values("q", (1, 3, 1, 4))], axes=[0, -2])
    case("squeeze-13-all", "Squeeze", 13, [values("q", (1, 3, 1, 4))])
    case("unsqueeze-13", "Unsqueeze", 13, [x], [ints(0, -1)])
    case("expand-both-ways", "Expand", 13, [values("e", (3, 1))], [ints(2, 1, 4)])
    case("trilu-lower", "Trilu", 14, [values("t", (2, 4, 5))], [np.int64(-1)], upper=0)
    case("eye-like", "EyeLike", 9, [values("i", (3, 4))], k=1, dtype=6)
    case("shape-15-slice", "Shape", 15, [x], start=-2)


def random():
    """What is left of chance when there is only one choice. ONNX Runtime draws Bernoulli the wrong way round (1 - p)."""
    probabilities = np.array([[0, 1, 1], [1, 0, 1]], np.float32)
    case("bernoulli-certain", "Bernoulli", 15, [probabilities], by_standard=True)
    case("bernoulli-certain-bool", "Bernoulli", 15, [probabilities], by_standard=True, dtype=9)
    case("multinomial-certain", "Multinomial", 7, [np.array([[-200, 0, -200], [0, -200, -200], [-200, -200, 3]], np.float32)], sample_size=5, dtype=7)
    case("random-normal-like-mean", "RandomNormalLike", 7, [values("rn", (3, 5))], by_standard=True, mean=1.5, scale=0.0)
    case("random-uniform-like-empty-range", "RandomUniformLike", 7, [values("ru", (3, 5))], by_standard=True, low=0.75, high=0.75)


def movement():
    x = values("move", (3, 4, 5))
    case("transpose-default", "Transpose", 13, [x])
    case("concat-negative-axis", "Concat", 13, [x, values("m2", (3, 2, 5))], axis=-2)
    case("split-uneven", "Split", 18, [values("sp", (7, 2))], outputs=["a", "b", "c"], num_outputs=3)
    case("split-11", "Split", 11, [x], outputs=["a", "b"], axis=1, split=[1, 3])
    case("slice-9", "Slice", 9, [x], starts=[1, -3], ends=[1000, 4], axes=[0, 2])
    case("slice-negative-steps", "Slice", 13, [x], [ints(-1, 3), ints(-1000, 0), ints(2, 1), ints(-2, -1)])
    case("slice-start-before-all", "Slice", 13, [x], [ints(-100, 100), ints(-200, 1), ints(0, 2), ints(-1, -1)])
    case("pad-by-attributes", "Pad", 7, [x], pads=[0, 1, 0, 2, 0, 1], mode="constant", value=0.5)
    case("pad-reflect", "Pad", 13, [x], [ints(0, 2, 3, 0, 1, 2)], mode="reflect")
    case("pad-edge-axes", "Pad", 18, [x], [ints(2, 1), np.float32(0), ints(-1)], mode="edge")
    case("pad-cut", "Pad", 13, [x], [ints(-1, 0, 1, 0, -2, 0)])
    case("tile", "Tile", 13, [values("ti", (2, 1, 3))], [ints(1, 3, 2)])
    case("depth-to-space-crd", "DepthToSpace", 13, [values("d", (2, 8, 2, 3))], blocksize=2, mode="CRD")
    case("space-to-depth", "SpaceToDepth", 13, [values("d", (2, 2, 4, 6))], blocksize=2)


def linear():
    case("gemm-of-nothing", "Gemm", 13, [values("ga", (4, 0))], [values("gb", (0, 5)), values("gc", (5,))])
    case("gemm-transposed", "Gemm", 13, [values("ga", (4, 3)), values("gb", (5, 4)), values("gc", (5,))], transA=1, transB=1, alpha=0.5, beta=2.0)
    case("matmul-vector", "MatMul", 13, [values("ma", (2, 3, 4)), values("mb", (4,))])
    case("matmul-broadcast", "MatMul", 13, [values("ma", (2, 1, 3, 4)), values("mb", (5, 4, 2))])
    case("matmul-left-matrix", "MatMul", 13, [values("ma", (3, 4)), values("mb", (5, 4, 2))])
    case("einsum-batch", "Einsum", 12, [values("ea", (2, 3, 4)), values("eb", (2, 4, 5))], equation="bij,bjk->bki")
    case("einsum-ellipsis", "Einsum", 12, [values("ea", (2, 3, 4)), values("eb", (4, 5))], equation="...j,jk->...k")
    case("einsum-three", "Einsum", 12, [values("e1", (2, 3)), values("e2", (3, 4)), values("e3", (4, 2))], equation="ij,jk,kl->il")


def spatial():
    x, w = values("x", (2, 4, 7, 6)), values("w", (6, 2, 3, 3))
    case("conv-groups-strides-dilations", "Conv", 11, [x], [w, values("b", (6,))], group=2, strides=[2, 1], dilations=[1, 2], pads=[1, 0, 2, 1])
    case("conv-same-lower", "Conv", 11, [x], [values("w", (5, 4, 2, 2))], auto_pad="SAME_LOWER", strides=[2, 2])
    case("conv-1d", "Conv", 11, [values("x1", (2, 3, 9))], [values("w1", (4, 3, 3))], pads=[2, 0])
    case("conv-3d", "Conv", 11, [values("x3", (1, 2, 4, 4, 3))], [values("w3", (3, 2, 2, 3, 2))])
    case("conv-transpose", "ConvTranspose", 11, [values("xt", (2, 4, 3, 4))], [values("wt", (4, 3, 3, 3)), values("bt", (3,))],
         strides=[2, 3], output_padding=[1, 1], pads=[1, 0, 0, 1])
    case("conv-transpose-1d", "ConvTranspose", 11, [values("xt", (1, 4, 5))], [values("wt", (4, 3, 3))], dilations=[2], pads=[1, 1])
    case("max-pool-ceil", "MaxPool", 12, [x], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    case("max-pool-indices", "MaxPool", 12, [x], outputs=["y", "i"], kernel_shape=[2, 2], strides=[2, 2])
    case("average-pool-pads", "AveragePool", 11, [x], kernel_shape=[3, 2], pads=[1, 0, 1, 1])
    case("average-pool-count-pads", "AveragePool", 11, [x], kernel_shape=[3, 2], pads=[1, 0, 1, 1], count_include_pad=1)
    case("global-average-pool", "GlobalAveragePool", 1 + 12, [x])
    case("global-max-pool", "GlobalMaxPool", 1 + 12, [x])
    case("resize-linear", "Resize", 13, [x], [np.array([], np.float32), np.array([], np.float32), ints(2, 4, 10, 3)], mode="linear")
    case("resize-nearest-twice", "Resize", 13, [x], [np.array([1, 1, 2, 2], np.float32)], inputs=["x0", "", "c0"],
         mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")


def resizes():
    """Scales that give no whole size, sizes that stay or are 1, places where the last bit of float32 decides; many nodes a model.

    Regions of tf_crop_and_resize on axes whose size stays are left out: ONNX Runtime ignores them."""
    none, x0, x1 = np.array([], np.float32), values("rs", (1, 1, 6, 9)), values("rl", (1, 1, 1, 100))
    fractional, long = [(1.7, 1.7), (0.4, 0.6), (2.5, 0.75), (3, 0.15), (1.33, 0.29), (1.15, 1.1), (1, 1.4)], (0.7, 0.29, 2.3, 1 / 3, 1.1)
    sizes = [(4, 13), (1, 1), (12, 1), (2, 27), (5, 18)]

    def family(name, opset, ways, op="Resize", scales=fractional, long=(), rois=(None,), **common):
        nodes, known, feeds = [], {}, {"x0": x0, **({"x1": x1} if long else {})}

        def add(x, way, roi, second, third=None):
            inputs = [x]
            for array in (second,) if opset < 11 else (roi if roi is not None else none, second, *([] if third is None else [third])):
                inputs.append(f"c{len(known)}")
                known[inputs[-1]] = array
            nodes.append(helper.make_node(op, inputs, [f"y{len(nodes)}"], **common, **way))

        for way in ways:
            for roi in rois:
                region = roi if roi is None else np.array([0, 0, roi[0], roi[1], 1, 1, roi[2], roi[3]], np.float32)
                way = way | ({} if roi is None else {"extrapolation_value": 7.5})
                for scale in scales:
                    add("x0", way, region, np.array([1, 1, *scale], np.float32))
                for size in sizes if opset > 10 else ():
                    add("x0", way, region, none, ints(1, 1, *size))
            for scale in long:
                add("x1", way, None, np.array([1, 1, 1, scale], np.float32))
        types = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()]
        outputs = [n.output[0] for n in nodes]
        graph = helper.make_graph(nodes, name, types, [helper.make_empty_tensor_value_info(o) for o in outputs], [numpy_helper.from_array(v, k) for k, v in known.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, producer_name="")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        results = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(outputs, feeds)
        onnx.save(model, FOLDER / f"{name}.onnx")
        np.savez_compressed(FOLDER / f"{name}.npz", **{f"in/{k}": v for k, v in feeds.items()}, **{f"out/{o}": r for o, r in zip(outputs, results)})

    nearest = [{"mode": "nearest", "nearest_mode": m} for m in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")]
    ways = [*nearest, {"mode": "linear"}, {"mode": "cubic"}, {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1}]
    smooth = [{"mode": m, "antialias": 1, "exclude_outside": e} for m in ("linear", "cubic") for e in (0, 1)]
    for c in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"):
        family("resize-" + c.replace("_", "-"), 13, ways, long=long, coordinate_transformation_mode=c)
        family("resize-antialias-" + c.replace("_", "-"), 19, smooth, coordinate_transformation_mode=c)
    rois, moving = [(0.1, 0.2, 0.8, 0.9), (-0.3, -0.2, 1.4, 1.3), (0.9, 0.8, 0.1, 0)], fractional[:5]
    family("resize-crop", 13, ways, scales=moving, rois=rois, coordinate_transformation_mode="tf_crop_and_resize")
    family("resize-antialias-crop", 19, smooth, scales=moving, rois=rois, coordinate_transformation_mode="tf_crop_and_resize")
    family("resize-10", 10, [{"mode": "nearest"}, {"mode": "linear"}], long=long)
    family("upsample-9", 9, [{"mode": "nearest"}, {"mode": "linear"}], op="Upsample", scales=[(1.7, 1.7), (2.5, 1.3)], long=(2.3, 1.1))
    for policy in ("not_larger", "not_smaller"):
        for mode, c in (("nearest", "half_pixel"), ("linear", "align_corners"), ("cubic", "asymmetric")):
            case(f"resize-{policy.replace('_', '-')}-{mode}", "Resize", 19, [x0], [ints(9, 14)], inputs=["x0", "", "", "c0"], mode=mode, keep_aspect_ratio_policy=policy,
                 coordinate_transformation_mode=c, axes=[2, 3])


def norms():
    x, s, b = values("nx", (2, 4, 3, 5)), values("ns", (4,)), values("nb", (4,))
    case("batch-norm", "BatchNormalization", 15, [x], [s, b, values("mean", (4,)), np.abs(values("var", (4,)))], epsilon=1e-2)
    case("layer-norm-two-axes", "LayerNormalization", 17, [x], [values("ls", (3, 5)), values("lb", (3, 5))], axis=-2)
    case("instance-norm", "InstanceNormalization", 7, [x], [s, b], epsilon=1e-2)
    case("group-norm-21", "GroupNormalization", 21, [x], [s, b], num_groups=2)
    case("mean-variance-norm-small", "MeanVarianceNormalization", 13, [x * np.float32(2.0**-28)], by_standard=True)
    case("rms-norm", "RMSNormalization", 23, [x], [values("rs", (5,))])
    case("lrn", "LRN", 13, [x], size=3, alpha=0.5, beta=0.75, bias=1.5)
    case("lp-norm", "LpNormalization", 7, [x], axis=1, p=2)


def reductions():
    x = values("rx", (2, 3, 4))
    case("reduce-mean-11", "ReduceMean", 11, [x], axes=[0, -1], keepdims=0)
    case("reduce-sum-13", "ReduceSum", 13, [x], [ints(1)])
    case("reduce-sum-noop", "ReduceSum", 13, [x], noop_with_empty_axes=1)
    case("reduce-max-18", "ReduceMax", 18, [x], [ints(-1, 0)], keepdims=0)
    case("reduce-log-sum-exp", "ReduceLogSumExp", 18, [x], [ints(1)])
    case("reduce-l2", "ReduceL2", 18, [x], [ints(0)])
    case("reduce-prod", "ReduceProd", 18, [x], [ints(2)])
    case("arg-max-last", "ArgMax", 13, [np.array([[1, 3, 3], [2, 2, 0]], np.float32)], axis=1, select_last_index=1, keepdims=0)
    case("cum-sum-exclusive-reverse", "CumSum", 14, [x], [np.int64(-2)], exclusive=1, reverse=1)


def indexing():
    x = values("ix", (4, 5))
    case("gather-fed-negative", "Gather", 13, [x, ints(-1, 0, 2)], axis=1)
    case("gather-known-every-second", "Gather", 13, [x], [ints(0, 2)], axis=0)
    case("gather-scalar", "Gather", 13, [x], [np.int64(-2)], axis=1)
    case("gather-elements", "GatherElements", 13, [x, np.array([[0, -1, 2], [1, 1, 4]], np.int64)], axis=1)
    case("gather-nd-batch", "GatherND", 12, [values("g", (2, 3, 4)), np.array([[[1]], [[-1]]], np.int64)], batch_dims=1)
    case("scatter-elements-add", "ScatterElements", 16, [x, np.array([[0, 0, -1]], np.int64), values("u", (1, 3))], axis=1, reduction="add")
    case("scatter-nd", "ScatterND", 16, [values("sn", (4, 2, 2)), np.array([[0], [2]], np.int64), values("un", (2, 2, 2))])
    case("scatter-nd-add", "ScatterND", 16, [x, np.array([[0, 1], [0, 1], [3, 4]], np.int64), values("ua", (3,))], reduction="add")
    case("one-hot-axis-0", "OneHot", 11, [ints(0, 2, -1, 7)], [np.int64(3), np.array([0.5, 2], np.float32)], axis=0)


def selection():
    x = values("tx", (3, 40))
    case("top-k", "TopK", 11, [x], [ints(3)], outputs=["y", "i"])
    case("top-k-smallest-ties", "TopK", 11, [np.round(x)], [ints(20)], outputs=["y", "i"], largest=0)
    case("top-k-axis", "TopK", 10, [values("ty", (5, 2, 3))], [ints(2)], outputs=["y", "i"], axis=0)
    case("top-k-9", "TopK", 9, [values("tz", (2, 5))], outputs=["y", "i"], k=2)
    case("top-k-unsigned", "TopK", 24, [np.array([[3, 200, 7, 255]], np.uint8)], [ints(3)], outputs=["y", "i"])
    case("compress-axis", "Compress", 11, [x], [np.array([0, 1, 1], bool)], axis=0)
    case("compress-flat", "Compress", 11, [x], [np.array([0, 1, 1, 0, 1], bool)])
    case("non-zero", "NonZero", 13, [], [np.array([[1, 0, 2], [0, 3, 0]], np.float32)])
    case("unique-unsorted", "Unique", 11, [], [np.array([2, 1, 1, 3, 4, 3], np.int64)], outputs=["y", "i", "v", "c"], sorted=0)
    case("unique-axis", "Unique", 11, [], [np.array([[1, 0, 0], [1, 0, 0], [2, 3, 4]], np.int64)], outputs=["y", "i", "v", "c"], axis=0)
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]], np.float32)
    scores = np.array([[[0.9, 0.75, 0.6, 0.95, 0.5, 0.3]]], np.float32)
    case("non-max-suppression", "NonMaxSuppression", 11, [], [boxes, scores, ints(3), np.array([0.5], np.float32), np.array([0.4], np.float32)])


def sampling():
    x, grid = values("gx", (2, 3, 5, 7)), values("gg", (2, 3, 4, 2), -1.5, 1.5)
    case("grid-sample-linear", "GridSample", 20, [x, grid])
    case("grid-sample-border-align", "GridSample", 20, [x, grid], padding_mode="border", align_corners=1)
    case("grid-sample-reflection", "GridSample", 20, [x, 3 * grid], padding_mode="reflection")
    case("grid-sample-nearest", "GridSample", 16, [x, grid], mode="nearest", padding_mode="reflection", align_corners=1)
    case("grid-sample-bicubic", "GridSample", 16, [x, grid], mode="bicubic")
    case("grid-sample-cubic-reflection", "GridSample", 20, [x, 2 * grid], mode="cubic", padding_mode="reflection", align_corners=1)
    case("grid-sample-3d", "GridSample", 22, [values("gv", (1, 2, 3, 4, 5)), values("gw", (1, 2, 3, 2, 3), -1.25, 1.25)], padding_mode="border")
    image, filters = values("di", (2, 4, 6, 5)), values("dw", (6, 2, 3, 2))
    offset, mask = values("do", (2, 24, 3, 4)), values("dm", (2, 12, 3, 4), 0, 1)
    case("deform-conv", "DeformConv", 19, [image, filters, offset, values("db", (6,)), mask], by_standard=True,
         group=2, offset_group=2, strides=[2, 1], pads=[1, 0, 1, 1], dilations=[1, 2], kernel_shape=[3, 2])
    rois = np.array([[0.25, 1.5, 3.25, 4.75], [-2, -1, 8, 6], [1, 2, 1.5, 2.25]], np.float32)
    images = ints(1, 0, 1)
    case("roi-align", "RoiAlign", 16, [x, rois, images], output_height=2, output_width=3, sampling_ratio=2)
    case("roi-align-adaptive", "RoiAlign", 10, [x], [rois, images], output_height=2, output_width=2, spatial_scale=0.75)
    case("roi-align-adaptive-fed", "RoiAlign", 22, [x, rois[:1], images[:1]], output_height=2, output_width=2)
    case("roi-align-max", "RoiAlign", 16, [x], [rois[[0, 2]], images[[0, 2]]], by_standard=True, mode="max", output_height=2, output_width=2)
    case("max-roi-pool", "MaxRoiPool", 12, [x, np.array([[1, 0, 1, 4, 3], [0, 2, 2, 12, 9], [1, 6, 4, 6, 4]], np.float32)], pooled_shape=[2, 3], spatial_scale=0.75)


def placement():
    x = values("px", (4, 3, 2))
    case("reverse-sequence", "ReverseSequence", 10, [x, ints(4, 1, 3)])
    case("reverse-sequence-batch-first", "ReverseSequence", 10, [x, ints(1, 2, 3, 3)], batch_axis=0, time_axis=1)
    past, update = values("pp", (2, 3, 5, 2)), values("pu", (2, 3, 2, 2))
    case("tensor-scatter", "TensorScatter", 24, [past, update, ints(3, 0)], by_standard=True)
    case("tensor-scatter-circular", "TensorScatter", 24, [past, update, ints(4, 2)], by_standard=True, mode="circular")
    case("tensor-scatter-start", "TensorScatter", 24, [past, values("pv", (2, 2, 5, 2))], by_standard=True, axis=1)
    case("center-crop-pad", "CenterCropPad", 18, [values("pc", (5, 4, 3))], [ints(2, 7)], by_standard=True, axes=[-3, 2])
    case("col2im", "Col2Im", 18, [values("c2", (2, 12, 9))], [ints(4, 5), ints(2, 3)], dilations=[2, 1], pads=[0, 2, 1, 1], strides=[1, 2])
    case("col2im-1d", "Col2Im", 18, [values("c1", (1, 6, 4))], [ints(8), ints(2)], strides=[2])
    where = np.array([[[[1, 3], [8, 15]], [[16, 19], [29, 31]]]], np.int64)
    case("max-unpool", "MaxUnpool", 11, [values("mu", (1, 2, 2, 2)), where], kernel_shape=[2, 2], strides=[2, 2])
    case("max-unpool-output-shape", "MaxUnpool", 11, [values("mu", (1, 2, 2, 2)), where], [ints(1, 2, 5, 6)], kernel_shape=[2, 2], strides=[2, 2], by_standard=True)
    case("max-pool-storage-order", "MaxPool", 12, [values("ms", (2, 2, 5, 4))], outputs=["y", "i"], kernel_shape=[2, 2], strides=[2, 1], storage_order=1)
    bytes_ = np.array([[3, 200, 7], [255, 0, 130]], np.uint8)
    case("scatter-elements-max-unsigned", "ScatterElements", 18, [bytes_, np.array([[1, 0, 2]]), np.array([[100, 140, 7]], np.uint8)], axis=1, reduction="max")
    case("scatter-nd-min-unsigned", "ScatterND", 18, [bytes_, np.array([[1]]), np.array([[200, 1, 129]], np.uint8)], reduction="min")
    case("reduce-max-unsigned", "ReduceMax", 18, [bytes_], [ints(1)])
    case("reduce-mean-unsigned", "ReduceMean", 18, [bytes_.astype(np.uint32)], [ints(1)], by_standard=True)
    case("arg-max-unsigned", "ArgMax", 13, [bytes_], axis=1)
    case("max-pool-unsigned", "MaxPool", 12, [np.array([[[3, 200, 7, 255, 0]]], np.uint8)], outputs=["y", "i"], kernel_shape=[2], by_standard=True)
    case("det-3", "Det", 11, [values("d3", (2, 3, 3))])
    case("det-singular", "Det", 11, [np.array([[1, 2, 0], [0, 0, 0], [3, 1, 1]], np.float32)])
    case("cum-prod-exclusive-reverse", "CumProd", 26, [values("cp", (3, 5))], [np.int64(1)], by_standard=True, exclusive=1, reverse=1)
    case("einsum-trace", "Einsum", 12, [values("et", (2, 3, 3))], equation="bii->b")
    case("einsum-diagonals", "Einsum", 12, [values("ed", (3, 2, 3)), values("ee", (2, 2))], equation="iji,jj->ij")
    case("bit-shift-signed", "BitShift", 11, [np.array([-8, 7, -1, 64], np.int32), np.array([1, 40, 32, 3], np.int32)], by_standard=True, direction="RIGHT")
    case("pow-integer-by-float", "Pow", 15, [np.array([2, 3, 5, -2], np.int32), np.array([5, 4, 3, 3], np.float32)])
    case("conv-transpose-output-shape-larger", "ConvTranspose", 11, [values("ct", (1, 2, 3, 3))], [values("cw", (2, 2, 3, 3))], strides=[3, 2], output_shape=[10, 8])


def recurrent():
    x, state = values("rx", (5, 2, 4)), values("rh", (2, 2, 3))
    w, r, p = values("rw", (2, 12, 4), -1, 1), values("rr", (2, 12, 3), -1, 1), values("rp", (2, 9), -1, 1)
    b, lengths = values("rb", (2, 24), -1, 1), np.array([5, 3], np.int32)
    case("rnn-reverse-relu", "RNN", 14, [x], [w[:1, :3], r[:1, :3], b[:1, :6]], outputs=["y", "h"], hidden_size=3, direction="reverse", activations=["Relu"])
    case("rnn-lengths", "RNN", 7, [x], [w[:1, :3], r[:1, :3], b[:1, :6], lengths], outputs=["y", "h"], hidden_size=3)
    case("gru-both-ways", "GRU", 14, [x], [w[:, :9], r[:, :9], b[:, :18], lengths, state], outputs=["y", "h"], hidden_size=3, direction="bidirectional")
    case("gru-linear-before-reset", "GRU", 14, [x], [w[:1, :9], r[:1, :9], b[:1, :18]], outputs=["", "h"], hidden_size=3, linear_before_reset=1)
    case("lstm-everything", "LSTM", 14, [x], [w, r, b, lengths, state, state[::-1].copy(), p], outputs=["y", "h", "c"], hidden_size=3,
         direction="bidirectional", clip=1.5, activations=["HardSigmoid", "Softsign", "Tanh", "Sigmoid", "LeakyRelu", "Tanh"],
         activation_alpha=[0.25, 0.05], activation_beta=[0.4])
    case("lstm-no-bias", "LSTM", 7, [x], [w[:1], r[:1]], outputs=["y", "h", "c"], hidden_size=3)


def loops():
    """Bodies with a carried sum, slices, stacked results and values of the graph around."""
    def info(name, kind=onnx.TensorProto.FLOAT, shape=(3,)):
        return helper.make_tensor_value_info(name, kind, shape)
    body = helper.make_graph(
        [helper.make_node("Mul", ["a", "slice"], ["product"]), helper.make_node("Add", ["product", "x1"], ["next"]),
         helper.make_node("Neg", ["next"], ["item"])],
        "body", [info("a"), info("slice")], [info("next"), info("item")])
    start, rows, outer = values("ls", (3,)), values("lr", (4, 3)), values("lo", (3,))
    case("scan-captures", "Scan", 11, [start, outer, rows], inputs=["x0", "x2"], outputs=["last", "all"], num_scan_inputs=1, body=body)
    case("scan-backward", "Scan", 16, [start, outer, rows.T.copy()], inputs=["x0", "x2"], outputs=["last", "all"], num_scan_inputs=1, body=body,
         scan_input_directions=[1], scan_input_axes=[1], scan_output_axes=[-1])
    counted = helper.make_graph(
        [helper.make_node("Cast", ["i"], ["number"], to=1), helper.make_node("Mul", ["a", "number"], ["product"]),
         helper.make_node("Add", ["product", "x1"], ["next"]), helper.make_node("Identity", ["on"], ["still"])],
        "body", [info("i", onnx.TensorProto.INT64, ()), info("on", onnx.TensorProto.BOOL, ()), info("a")],
        [info("still", onnx.TensorProto.BOOL, ()), info("next"), info("product")])
    case("loop-counted", "Loop", 13, [start, outer], [np.int64(4)], inputs=["c0", "", "x0"], outputs=["last", "all"], body=counted)
    ended = helper.make_graph(
        [helper.make_node("Add", ["a", "x1"], ["next"]), helper.make_node("Less", ["i", "c0"], ["still"])],
        "body", [info("i", onnx.TensorProto.INT64, ()), info("on", onnx.TensorProto.BOOL, ()), info("a")],
        [info("still", onnx.TensorProto.BOOL, ()), info("next")])
    case("loop-ends-itself", "Loop", 13, [start, outer], [np.int64(2), np.array(True)], inputs=["", "c1", "x0"], outputs=["last"], body=ended)
    growing = helper.make_graph(
        [helper.make_node("Concat", ["a", "x1"], ["next"], axis=0), helper.make_node("Identity", ["on"], ["still"])],
        "body", [info("i", onnx.TensorProto.INT64, ()), info("on", onnx.TensorProto.BOOL, ()), info("a", shape=(None,))],
        [info("still", onnx.TensorProto.BOOL, ()), info("next", shape=(None,))])
    case("loop-grows", "Loop", 13, [start, outer], [np.int64(3)], inputs=["c0", "", "x0"], outputs=["last"], body=growing)


def narrow():
    """Narrow types are storage: sums and functions are computed in float32."""
    x, w = values("hx", (3, 4)).astype(np.float16), values("hw", (4, 5)).astype(np.float16)
    case("matmul-float16", "MatMul", 13, [x], [w])
    case("softmax-float16", "Softmax", 13, [x])
    case("transpose-float16", "Transpose", 13, [x])
    case("cast-float16", "Cast", 13, [np.array([1.0001, 65519, 65520, 1e-8, -3], np.float32)], to=10)


def losses():
    scores, labels = values("lx", (4, 5)), ints(0, 4, 2, 1)
    case("cross-entropy-weights", "SoftmaxCrossEntropyLoss", 13, [scores, labels], [np.array([1, 2, 0.5, 1, 3], np.float32)])
    case("cross-entropy-ignored", "SoftmaxCrossEntropyLoss", 13, [scores, labels], ignore_index=2, outputs=["y", "logs"])
    case("nll-none", "NegativeLogLikelihoodLoss", 13, [values("ln", (2, 3, 4)), np.array([[0, 1, 2, 0], [2, 2, 1, 0]], np.int64)], reduction="none")


def quantization():
    x, scale = values("qx", (3, 8)), np.array([0.03125, 0.0625, 0.125], np.float32)
    bytes_ = np.array([[0, 128, 255], [1, 127, 254]], np.uint8)
    case("quantize-halves", "QuantizeLinear", 13, [np.array([0.5, 1.5, -0.5, 300, -300, 126.5], np.float32)], [np.float32(1), np.int8(1)])
    case("quantize-axis-no-zero-point", "QuantizeLinear", 13, [x], [scale], axis=0)
    case("quantize-blocked-int16", "QuantizeLinear", 21, [x], [np.abs(values("qs", (3, 3))) + np.float32(0.01), values("qz", (3, 3), -9, 9).astype(np.int16)], axis=1, block_size=3)
    case("quantize-uint4", "QuantizeLinear", 21, [x], [np.float32(0.25), np.uint8(7).astype(onnx.helper.tensor_dtype_to_np_dtype(21))], by_standard=True)
    case("quantize-output-dtype", "QuantizeLinear", 21, [x], [np.float32(0.001)], output_dtype=5)
    case("dequantize-axis", "DequantizeLinear", 13, [bytes_], [scale, np.array([3, 128, 255], np.uint8)], axis=1)
    case("dequantize-blocked-int8", "DequantizeLinear", 21, [values("dq", (4, 5), -128, 127).astype(np.int8)],
         [np.abs(values("ds", (2, 5))), np.ones((2, 5), np.int8)], axis=0, block_size=2)
    case("dequantize-int2", "DequantizeLinear", 25, [], [np.array([-2, -1, 0, 1]).astype(onnx.helper.tensor_dtype_to_np_dtype(26)), np.float32(0.5)], by_standard=True)
    case("dynamic-quantize", "DynamicQuantizeLinear", 11, [x], outputs=["y", "s", "z"])
    case("matmul-integer", "MatMulInteger", 10, [bytes_, values("mi", (3, 4), -128, 127).astype(np.int8)], [np.uint8(7), np.array([1, -2, 3, 4], np.int8)])
    case("conv-integer", "ConvInteger", 10, [values("ci", (1, 2, 5, 5), 0, 255).astype(np.uint8)], [values("cw", (3, 2, 3, 3), -128, 127).astype(np.uint8), np.uint8(9)],
         pads=[1, 1, 1, 1])
    case("qlinear-matmul", "QLinearMatMul", 10, [bytes_], [np.float32(0.05), np.uint8(12), values("qb", (3, 4), 0, 255).astype(np.uint8), np.float32(0.02), np.uint8(99),
         np.float32(0.3), np.uint8(100)])
    case("qlinear-conv", "QLinearConv", 10, [values("qc", (1, 2, 5, 5), 0, 255).astype(np.uint8)], [np.float32(0.05), np.uint8(9),
         values("qw", (3, 2, 3, 3), -127, 127).astype(np.int8), scale, np.zeros(3, np.int8), np.float32(0.5), np.uint8(120), np.array([40, -70, 0], np.int32)], strides=[2, 1])
    case("cast-to-int4", "Cast", 21, [np.array([-8, 7.5, -0.5, 3], np.float32)], to=22, by_standard=True)
    case("bit-cast", "BitCast", 26, [np.array([1.5, -0.0, 3e38], np.float32)], to=6)


def signals():
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        case(op.lower(), op, 17, [], [np.int64(9)], periodic=0)
    case("mel-weight-matrix", "MelWeightMatrix", 17, [], [np.int64(8), np.int64(16), np.int64(8192), np.float32(0), np.float32(4096)])
    case("dft-17-shorter", "DFT", 17, [values("df", (2, 10, 1))], [np.int64(8)], axis=1, onesided=1)
    case("dft-20-inverse", "DFT", 20, [values("di", (2, 5, 3, 2))], [np.int64(-3)], inputs=["x0", "", "c0"], inverse=1)
    case("dft-20-real-inverse", "DFT", 20, [values("dr", (2, 5, 2))], inverse=1, onesided=1, by_standard=True)
    case("stft", "STFT", 17, [values("st", (2, 20, 1))], [np.int64(4), values("sw", (8,))], inputs=["x0", "c0", "c1"], onesided=1)
    case("causal-conv-silu", "CausalConvWithState", 27, [values("cc", (2, 3, 5)), values("cs", (2, 3, 3))], [values("cv", (3, 1, 4)), values("cb", (3,))],
         inputs=["x0", "c0", "c1", "x1"], outputs=["y", "state"], activation="silu")


def contrib():
    """What optimised files hold."""
    ms = "com.microsoft"
    x, g, c = values("cx", (2, 3, 8)), values("cg", (8,)), values("cc", (8,))
    case("swiglu", "SwiGLU", 28, [x, values("cy", (2, 3, 8))], alpha=1.5)
    case("ms-fast-gelu", "FastGelu", 17, [x], [c], domain=ms)
    case("ms-quick-gelu", "QuickGelu", 17, [x], domain=ms)
    case("ms-fused-matmul-trans", "FusedMatMul", 17, [values("fa", (2, 4, 3)), values("fb", (2, 5, 4))], domain=ms, transA=1, transB=1, alpha=0.5)
    case("ms-fused-conv-leaky", "FusedConv", 17, [values("fx", (1, 2, 5, 5))], [values("fw", (3, 2, 3, 3)), values("fc", (3,))], domain=ms, activation="LeakyRelu",
         activation_params=[0.25])
    case("ms-fused-gemm-relu", "FusedGemm", 17, [values("ga", (3, 4))], [values("gb", (4, 5)), values("gc", (5,))], domain=ms, activation="Relu")
    case("ms-skip-layer-norm", "SkipLayerNormalization", 17, [x, values("ck", (2, 3, 8))], [g, c, values("cz", (8,))], outputs=["y", "", "", "sum"], domain=ms, epsilon=1e-3)
    case("ms-skip-simplified", "SkipSimplifiedLayerNormalization", 17, [x, values("ck", (2, 3, 8))], [g], outputs=["y", "", "", "sum"], domain=ms, epsilon=1e-3)
    case("ms-embed-layer-norm", "EmbedLayerNormalization", 17, [np.array([[1, 4, 0], [2, 2, 3]], np.int32), np.array([[0, 1, 1], [0, 0, 1]], np.int32)],
         [values("we", (5, 8)), values("pe", (4, 8)), values("se", (2, 8)), g, c, np.array([[1, 1, 0], [1, 1, 1]], np.int32)], outputs=["y", "mask"], domain=ms, epsilon=1e-3)
    packed = np.random.default_rng(1).integers(0, 256, (5, 3, 8)).astype(np.uint8)
    case("ms-matmul-nbits", "MatMulNBits", 17, [values("mn", (2, 40))], [packed, np.abs(values("ns", (15,))), np.random.default_rng(2).integers(0, 256, 10).astype(np.uint8)],
         domain=ms, K=40, N=5, bits=4, block_size=16)
    case("ms-matmul-nbits-2", "MatMulNBits", 17, [values("mn", (2, 40))], [packed[:, :, :4].copy(), np.abs(values("ns", (15,)))], domain=ms, K=40, N=5, bits=2, block_size=16)
    case("ms-fused-matmul-batch", "FusedMatMul", 17, [values("fa", (4, 2, 3)), values("fb", (2, 3, 5))], domain=ms, transBatchA=1)
    case("ms-rotary-offset", "RotaryEmbedding", 17, [x], [ints(2), values("rc", (7, 4)), values("rs", (7, 4))], domain=ms, interleaved=1)
    case("ms-multi-head-attention", "MultiHeadAttention", 17, [values("mq", (2, 3, 8)), values("mk", (2, 5, 8)), values("mv", (2, 5, 8))],
         [values("mb", (24,)), np.array([[1, 1, 0, 1, 1], [1, 0, 0, 1, 1]], np.int32), values("ma", (1, 2, 3, 5))], domain=ms, num_heads=2, mask_filter_value=-2.0)
    case("ms-multi-head-attention-lengths", "MultiHeadAttention", 17, [values("mq", (2, 3, 8)), values("mk", (2, 5, 8)), values("mv", (2, 5, 12))],
         [np.array([3, 5], np.int32)], inputs=["x0", "x1", "x2", "", "c0"], domain=ms, num_heads=2)
    case("ms-group-query-attention-past", "GroupQueryAttention", 17, [values("gp", (2, 1, 64)), values("pk", (2, 1, 4, 16)), values("pv", (2, 1, 4, 16))],
         [np.array([4, 4], np.int32), np.array([5], np.int32)], inputs=["x0", "", "", "x1", "x2", "c0", "c1"], outputs=["y", "k", "v"], domain=ms, num_heads=2, kv_num_heads=1)
    case("ms-group-query-attention", "GroupQueryAttention", 17, [values("gq", (2, 3, 64)), values("gk", (2, 3, 32)), values("gv", (2, 3, 32))],
         [np.array([2, 2], np.int32), np.array([3], np.int32), values("gc", (4, 8)), values("gs", (4, 8))], inputs=["x0", "x1", "x2", "", "", "c0", "c1", "c2", "c3"],
         outputs=["y", "k", "v"], domain=ms, num_heads=4, kv_num_heads=2, do_rotary=1, local_window_size=2)
    weights = [values("aw", (8, 24)), values("ab", (24,))]
    case("ms-attention", "Attention", 17, [values("ax", (2, 3, 8))], [*weights, np.array([[1, 1, 0], [1, 0, 1]], np.int32), values("ma", (2, 2, 3, 3))],
         inputs=["x0", "c0", "c1", "c2", "", "c3"], outputs=["y", "present"], domain=ms, num_heads=2, mask_filter_value=-2.0)
    case("ms-attention-causal", "Attention", 17, [values("ax", (2, 3, 8))], [values("av", (8, 20)), values("ac", (20,)), np.array([2, 3], np.int32)],
         domain=ms, num_heads=2, unidirectional=1, qkv_hidden_sizes=[8, 8, 4], scale=0.5)
    case("ms-attention-pairs", "Attention", 17, [values("ax", (2, 3, 8))], [*weights, np.tril(np.ones((2, 3, 3), np.int32))], domain=ms, num_heads=4)
    case("layer-norm-early", "LayerNormalization", 13, [x], [g, c], epsilon=1e-3)  # ONNX Runtime's own, in the default domain


def machine_learning():
    ml = "ai.onnx.ml"
    case("ml-scaler", "Scaler", 17, [values("ms", (4, 3))], domain=ml, offset=[0.5, -1.0, 0.25], scale=[2.0, 0.5, -1.0])
    case("ml-scaler-integers", "Scaler", 17, [np.arange(-5, 7, dtype=np.int64).reshape(4, 3)], domain=ml, offset=[1.5], scale=[0.25])
    case("ml-binarizer", "Binarizer", 17, [values("mb", (4, 3))], domain=ml, threshold=0.25)
    case("ml-array-feature-extractor", "ArrayFeatureExtractor", 17, [values("mf", (4, 3))], [np.array([2, 0, 2, 1], np.int64)], domain=ml)
    case("ml-array-feature-extractor-flat", "ArrayFeatureExtractor", 17, [values("mg", (5,))], [np.array([[4], [1]], np.int64)], domain=ml)
    for norm in ("MAX", "L1", "L2"):
        case(f"ml-normalizer-{norm.lower()}", "Normalizer", 17, [np.abs(values("mn", (4, 3)))], domain=ml, norm=norm)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    for family in (elementwise, activations, shapes, movement, linear, spatial, resizes, norms, reductions, indexing, selection, sampling, placement, recurrent, loops,
                   narrow, losses, random, quantization, signals, contrib, machine_learning):
        family()
    print(len(list(FOLDER.glob("*.onnx"))), "cases")
