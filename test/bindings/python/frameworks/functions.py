"""Functions of PyTorch, each with operands where its formula and its gradient are special: zeros, negative zeros, ones, bounds, ties,
equal rows, the negative axis, infinities.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

INF = math.inf


@dataclass
class Case:
    name: str
    function: Callable[..., Any]
    operands: list[torch.Tensor]
    """Those of floating point are parameters, all others constants."""
    picks_along: int | None = None
    """The axis along which PyTorch picks any of equal elements."""
    has_bounds: bool = False
    """A number of the type of its operand: the largest number of float32 is not that of float64."""


CASES: list[Case] = []


def t(*values: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values[0] if len(values) == 1 else values, dtype=dtype)


POINTS = t(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, -6.0, 0.25, -1.5, 2.5, INF, -INF)
FEW = t(0.0, -0.0, 1.0, -1.0, 2.0, -0.5, INF, -INF)
ROWS = t(
    [
        [1.0, 3.0, 3.0, -2.0],
        [2.0, 2.0, 2.0, 2.0],
        [0.0, 0.0, 0.0, 0.0],
        [-1.0, 0.0, -1.0, 0.0],
        [0.0, 4.0, 0.0, 3.0],
        [-3.0, -1.0, -1.0, -2.0],
        [0.0, 2.0, 3.0, 0.0],
    ]
)
INFINITE = t([[INF, 1.0, INF, 2.0], [-INF, -INF, 0.0, 1.0], [-INF, -INF, -INF, -INF], [0.0, -INF, 1.0, 1.0]])
IMAGE = t([0.0, 1.0, 1.0, 2.0, 2.0, 2.0, -1.0, -1.0, 0.0, 0.0, 3.0, 3.0, -2.0, 0.5, 0.5, 1.0] * 2).reshape(1, 2, 4, 4)


def add(name: str, function: Callable[..., Any], *operands: torch.Tensor) -> None:
    CASES.append(Case(name, function, [each.clone() for each in operands]))


def add_any(name: str, function: Callable[..., Any], operand: torch.Tensor, axis: int = 1) -> None:
    add(name, function, operand)
    CASES[-1].picks_along = axis


def pairs(points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    grid = torch.cartesian_prod(points, points)
    return grid[:, 0].contiguous(), grid[:, 1].contiguous()


# ---- Of one number.

for _name in (
    "abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac i0 lgamma log log10 "
    "log1p log2 logit nan_to_num neg positive rad2deg reciprocal relu round rsqrt sgn sigmoid sign sin sinc sinh sqrt square tan tanh trunc"
).split():
    add(_name, getattr(torch, _name), POINTS)
for _name in (
    "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 selu silu softplus softshrink softsign "
    "tanhshrink"
).split():
    add(_name, getattr(F, _name), POINTS)
next(case for case in CASES if case.name == "nan_to_num").has_bounds = True
add("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), POINTS)
add("threshold", lambda x: F.threshold(x, 0.5, 7.0), POINTS)
add("hardtanh of bounds", lambda x: F.hardtanh(x, -0.5, 2.0), POINTS)
add("leaky_relu negative", lambda x: F.leaky_relu(x, -0.5), POINTS)
add("elu alpha", lambda x: F.elu(x, 2.0), POINTS)
add("celu alpha", lambda x: F.celu(x, 2.0), POINTS)
add("softplus beta", lambda x: F.softplus(x, 2.0, 4.0), POINTS)
add("softshrink 0.5", lambda x: F.softshrink(x, 0.5), POINTS)
add("hardshrink 0.5", lambda x: F.hardshrink(x, 0.5), POINTS)
add("rrelu eval", lambda x: F.rrelu(x, training=False), POINTS)
add("clamp", lambda x: torch.clamp(x, -1.0, 2.0), POINTS)
add("clamp min", lambda x: torch.clamp(x, min=0.5), POINTS)
add("clamp max", lambda x: x.clamp(max=0.5), POINTS)
add("clamp crossed", lambda x: x.clamp(2.0, -1.0), POINTS)
add("clamp integers", lambda x: x.clamp(0, 6), POINTS)
add("logit eps", lambda x: torch.logit(x, 0.25), POINTS)
add("nan_to_num of bounds", lambda x: torch.nan_to_num(x, 1.0, 5.0, -5.0), POINTS)
for _exponent in (0, 1, 2, 3, -1, -2, 0.5, 1.5, 2.5, 3.5, -0.5, -1.5, 2.2, 1 / 3, 4):
    add(f"pow {_exponent:g}", lambda x, e=_exponent: x**e, POINTS)
for _base in (0.0, 1.0, 2.0, 0.5):
    add(f"rpow {_base:g}", lambda x, b=_base: b**x, POINTS)
add("remainder 2", lambda x: torch.remainder(x, 2.0), POINTS)
add("remainder -2", lambda x: x % -2.0, POINTS)
add("fmod 2", lambda x: torch.fmod(x, 2.0), POINTS)
add("floor_divide 2", lambda x: x * (x.detach() // 2.0), POINTS)
add("div trunc 2", lambda x: x * torch.div(x, 2.0, rounding_mode="trunc"), POINTS)
add("rdiv", lambda x: 2.0 / x, POINTS)
add("rsub", lambda x: 2.0 - x, POINTS)
add("round decimals", lambda x: torch.round(x * 0.37, decimals=1), POINTS)
add("masked_fill", lambda x: x.masked_fill(x > 1, 3.0), POINTS)
add("where zero", lambda x: torch.where(x > 0, x, 0.0), POINTS)
add("where root", lambda x: torch.where(x > 0, x.sqrt(), x), POINTS)
add("detach", lambda x: x * x.detach(), POINTS[:15])
add("straight through", lambda x: x + (x.round() - x).detach(), POINTS[:15])
add("heaviside", lambda x: x * torch.heaviside(x.detach(), torch.full_like(x, 0.5)), POINTS[:15])
add("isfinite", lambda x: torch.where(torch.isfinite(x), x, 0.0), POINTS)
add("signbit", lambda x: torch.where(torch.signbit(x), -x, x * 2), POINTS)
add("softmin scalar", lambda x: F.softmin(x, 0), POINTS[:15])
add("polygamma", lambda x: torch.polygamma(1, x), t(1.0, 0.5, 2.0, 3.0))
add("special.entr", torch.special.entr, POINTS)
add("special.log_ndtr", torch.special.log_ndtr, POINTS[:15])
add("special.ndtr", torch.special.ndtr, POINTS)
add("special.expit", torch.special.expit, POINTS)
add("special.xlog1py", lambda x: torch.special.xlog1py(x, 2.0), POINTS)
add("multiply by itself", lambda x: x * x * x, POINTS[:15])

# ---- Of two numbers.

X, Y = pairs(FEW)
for _name in (
    "add sub mul div atan2 hypot logaddexp logaddexp2 maximum minimum fmax fmin fmod remainder pow xlogy copysign float_power ldexp"
).split():
    add(_name, getattr(torch, _name), X, Y)
add("floor_divide", lambda x, y: x * torch.floor_divide(x.detach(), y.detach()), X, Y)
add("clamp by tensors", lambda x, low, high: torch.clamp(x, low, high), t(0.0, 6.0, 3.0, -1.0, 7.0, 2.0, 1.0), t([0.0] * 6 + [2.0]), t([6.0] * 6 + [-1.0]))
add("clamp by lower tensor", lambda x, low: torch.clamp(x, min=low), X, Y)
add("clamp by upper tensor", lambda x, high: torch.clamp(x, max=high), X, Y)
add("clamp by constants", lambda x: torch.clamp(x, torch.tensor(0.0), torch.tensor(6.0)), POINTS)
add("max of two", torch.max, X, Y)
add("min of two", torch.min, X, Y)
add("lerp", torch.lerp, t(0.0, 1.0, 1.0, -1.0), t(1.0, 1.0, 3.0, 0.0), t(0.0, 0.5, 1.0, 2.0))
add("lerp scalar", lambda x, y: torch.lerp(x, y, 0.75), X, Y)
add("addcmul", lambda x, y, z: torch.addcmul(x, y, z, value=0.5), t(0.0, 1.0), t(2.0, 0.0), t(3.0, 4.0))
add("addcdiv", lambda x, y, z: torch.addcdiv(x, y, z, value=0.5), t(0.0, 1.0, 0.0), t(2.0, 0.0, 1.0), t(3.0, 4.0, 0.0))
add("where of two", lambda x, y: torch.where(x > y, x, y), X, Y)
add("where safe division", lambda x, y: torch.where(y == 0, torch.zeros_like(x), x / torch.where(y == 0, 1.0, y)), X, Y)
add("div trunc", lambda x, y: torch.div(x, y, rounding_mode="trunc"), X, Y)
add("div floor", lambda x, y: torch.div(x, y, rounding_mode="floor"), X, Y)
add("rms of two", lambda x, y: torch.sqrt(x * x + y * y), X, Y)
add("prelu", F.prelu, POINTS, t(0.25))
add("prelu channels", F.prelu, IMAGE, t(0.25, -0.5))
add("glu", lambda x: F.glu(x, -1), ROWS)
add("dist", torch.dist, t(1.0, 2.0), t(1.0, 2.0))
add("dist 1", lambda x, y: torch.dist(x, y, 1), t(1.0, 2.0, 0.0), t(1.0, 0.0, 1.0))
add("complex abs", lambda x, y: torch.linalg.vector_norm(torch.stack([x, y]), dim=0), X, Y)

# ---- Reductions.

for _name in ("amax", "amin", "sum", "mean", "prod", "var", "std", "logsumexp", "softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp"):
    add(_name, lambda x, f=getattr(torch, _name): f(x, dim=1), ROWS)
for _name in ("amax", "amin", "sum", "mean", "prod", "logsumexp", "softmax", "log_softmax", "cumsum"):
    add(f"{_name} of infinities", lambda x, f=getattr(torch, _name): f(x, dim=1), INFINITE)
for _name in ("max", "min", "median", "mode", "cummax", "cummin", "sort", "nanmedian"):
    add(_name, lambda x, f=getattr(torch, _name): f(x, dim=1)[0], ROWS)
    add(f"{_name} other axis", lambda x, f=getattr(torch, _name): f(x, dim=0)[0], ROWS)
for _name in ("max", "min", "sort"):
    add(f"{_name} of infinities", lambda x, f=getattr(torch, _name): f(x, dim=1)[0], INFINITE)
for _name in ("max", "min", "amax", "amin", "sum", "mean", "prod", "std", "var", "median", "norm", "nanmedian", "nansum", "nanmean"):
    add(f"{_name} of all", getattr(torch, _name), ROWS)
for _name in ("max", "min", "mean", "std", "sum", "prod", "norm", "var"):
    add(f"{_name} of zeros", getattr(torch, _name), torch.zeros(4))
add("amax of two axes", lambda x: torch.amax(x, (2, 3)), IMAGE)
add("amin keepdim", lambda x: torch.amin(x, 1, keepdim=True), ROWS)
add("max keepdim", lambda x: torch.max(x, 1, keepdim=True).values, ROWS)
add("aminmax", lambda x: torch.aminmax(x, dim=1), ROWS)
add_any("topk", lambda x: torch.topk(x, 2, 1).values, ROWS)
add_any("topk smallest", lambda x: torch.topk(x, 2, 1, largest=False).values, ROWS)
add_any("topk all", lambda x: torch.topk(x, 4, 1).values, ROWS)
add_any("kthvalue", lambda x: torch.kthvalue(x, 2, 1).values, ROWS)
add_any("kthvalue 3", lambda x: torch.kthvalue(x, 3, 0).values, ROWS, 0)
add("sort descending", lambda x: torch.sort(x, 1, descending=True).values, ROWS)
add("sort stable", lambda x: torch.sort(x, dim=1, stable=True).values, ROWS)
add("msort", torch.msort, ROWS)
add("argsort gather", lambda x: torch.gather(x, 1, torch.argsort(x, dim=1, stable=True)), ROWS)
add("argmax gather", lambda x: torch.gather(x, 1, x.argmax(1, keepdim=True)), ROWS)
add("argmin gather", lambda x: torch.gather(x, 1, x.argmin(1, keepdim=True)), ROWS)
add_any("quantile", lambda x: torch.quantile(x, 0.25, dim=1), ROWS)
add_any("quantiles", lambda x: torch.quantile(x, torch.tensor([0.0, 0.5, 1.0]).to(x), dim=1), ROWS)
add("std 0", lambda x: torch.std(x, 1, correction=0), ROWS)
add("std_mean", lambda x: torch.std_mean(x, 1), ROWS)
add("var_mean", lambda x: torch.var_mean(x, 1), ROWS)
add("var of all 0", lambda x: torch.var(x, unbiased=False), ROWS)
add("sum of two axes", lambda x: x.sum((1, 3)), IMAGE)
add("nansum", lambda x: torch.nansum(x, 1), ROWS)
add("nanmean", lambda x: torch.nanmean(x, 1), ROWS)
add("count_nonzero", lambda x: x.sum(1) * torch.count_nonzero(x, 1), ROWS)
for _p in (0, 0.5, 1, 1.5, 2, 3, INF, -INF, -1):
    add(f"norm {_p}", lambda x, p=_p: torch.norm(x, p, 1), ROWS)
    add(f"vector_norm {_p}", lambda x, p=_p: torch.linalg.vector_norm(x, p, 1), ROWS)
add("norm fro", lambda x: torch.norm(x, "fro", (0, 1)), torch.zeros(2, 2))
add("matrix_norm", torch.linalg.matrix_norm, t([[0.0, 0.0], [3.0, 4.0]]))
add("matrix_norm 1", lambda x: torch.linalg.matrix_norm(x, 1), t([[1.0, -3.0], [3.0, 1.0]]))
add("matrix_norm inf", lambda x: torch.linalg.matrix_norm(x, INF), t([[1.0, -3.0], [3.0, 1.0]]))
add("logsumexp of all", lambda x: torch.logsumexp(x, (0, 1)), ROWS)
add("trace", torch.trace, t([[1.0, 2.0], [3.0, 4.0]]))
add("diff", lambda x: torch.diff(x, dim=1), ROWS)
add("gradient", lambda x: torch.gradient(x, dim=1)[0], ROWS)
add("cov", torch.cov, ROWS[:, :3])
add("corrcoef", torch.corrcoef, ROWS[[0, 3, 4]])
add("max pair", lambda x: torch.max(x, 1).values - torch.max(x, 1).values.detach(), ROWS)
add("renorm", lambda x: torch.renorm(x, 2, 0, 2.0), ROWS)
add("any", lambda x: torch.where((x > 0).any(1), x.sum(1), 0.0), ROWS)

# ---- Distances and normalisations.

A, B = ROWS, torch.cat([ROWS[:3], ROWS[3:] + 1.0])
add("normalize", F.normalize, ROWS)
add("normalize 1", lambda x: F.normalize(x, 1.0), ROWS)
add("normalize inf", lambda x: F.normalize(x, INF), ROWS)
add("cosine_similarity", F.cosine_similarity, A, B)
add("pairwise_distance", F.pairwise_distance, A, B)
add("pairwise_distance 1", lambda x, y: F.pairwise_distance(x, y, 1.0), A, B)
add("pairwise_distance keepdim", lambda x, y: F.pairwise_distance(x, y, keepdim=True), A, B)
add("pairwise_distance vectors", F.pairwise_distance, A[0], A[0])
add("pdist", F.pdist, ROWS[:, :3] * t([1.0, 1.0, 0.0]))
add("cdist", torch.cdist, A, B)
add("cdist 1", lambda x, y: torch.cdist(x, y, 1.0), A, B)
add("cdist batch", lambda x, y: torch.cdist(x[None], y[None]), A, B)
add("layer_norm", lambda x: F.layer_norm(x, (4,)), ROWS)
add("layer_norm weights", lambda x, w, b: F.layer_norm(x, (4,), w, b), ROWS, t(1.0, 0.0, -1.0, 2.0), t(0.0, 0.0, 1.0, 1.0))
add("rms_norm", lambda x: F.rms_norm(x, (4,)), ROWS)
CASES[-1].has_bounds = True
add("rms_norm eps", lambda x, w: F.rms_norm(x, (4,), w, 1e-5), ROWS, t(1.0, 0.0, -1.0, 2.0))
add("group_norm", lambda x: F.group_norm(x, 2), IMAGE)
add("instance_norm", F.instance_norm, IMAGE)
add("batch_norm", lambda x: F.batch_norm(x, None, None, training=True), ROWS)
add("batch_norm eval", lambda x: F.batch_norm(x, torch.zeros(4).to(x), torch.ones(4).to(x)), ROWS)
add("local_response_norm", lambda x: F.local_response_norm(x, 2), IMAGE)
add("softmax first axis", lambda x: F.softmax(x, 0), ROWS)
add("softmin", lambda x: F.softmin(x, 1), ROWS)
add("softmax masked", lambda x: torch.where(torch.isnan(F.softmax(x, 1)), 0.0, F.softmax(x, 1)), INFINITE)
add("gumbel at zero", lambda x: F.softmax(x / 0.5, 1), ROWS)

# ---- Losses.

LOGITS, LABELS = ROWS, t(0, 1, 2, 3, 1, 0, 2, dtype=torch.int64)
IGNORED = t(0, -100, 2, -100, 1, 0, 2, dtype=torch.int64)
SIGNS = t(1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0)
SHARES = t(0.0, 1.0, 0.5, 0.0, 1.0, 0.25, 1.0)
for _name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
    for _reduction in ("mean", "sum", "none"):
        add(f"{_name} {_reduction}", lambda x, y, f=getattr(F, _name), r=_reduction: f(x, y, reduction=r), A, B)
add("smooth_l1_loss 0", lambda x, y: F.smooth_l1_loss(x, y, beta=0.0), A, B)
add("huber_loss 2", lambda x, y: F.huber_loss(x, y, delta=2.0), A, B)
add("cross_entropy", lambda x: F.cross_entropy(x, LABELS), LOGITS)
add("cross_entropy none", lambda x: F.cross_entropy(x, LABELS, reduction="none"), LOGITS)
add("cross_entropy ignored", lambda x: F.cross_entropy(x, IGNORED), LOGITS)
add("cross_entropy all ignored, sum", lambda x: F.cross_entropy(x, torch.full((7,), -100), reduction="sum"), LOGITS)
add("cross_entropy smoothed", lambda x: F.cross_entropy(x, IGNORED, label_smoothing=0.25), LOGITS)
add("cross_entropy weights", lambda x: F.cross_entropy(x, LABELS, torch.tensor([1.0, 0.0, 2.0, 0.5]).to(x)), LOGITS)
add("cross_entropy probabilities", lambda x, y: F.cross_entropy(x, y), LOGITS, torch.softmax(B, 1))
add("nll_loss", lambda x: F.nll_loss(F.log_softmax(x, 1), IGNORED), LOGITS)
add("nll_loss weights", lambda x: F.nll_loss(x, LABELS, torch.tensor([1.0, 0.0, 2.0, 0.5]).to(x)), LOGITS)
add("nll_loss none", lambda x: F.nll_loss(x, LABELS, reduction="none"), LOGITS)
add("kl_div", lambda x, y: F.kl_div(x, y, reduction="batchmean"), A, t([[0.0, 1.0, 0.0, 0.0]] * 7))
add("kl_div none", lambda x, y: F.kl_div(x, y, reduction="none"), A, t([[0.0, 1.0, 0.5, 0.0]] * 7))
add("kl_div log", lambda x, y: F.kl_div(x, y, reduction="sum", log_target=True), A, B)
add("bce_with_logits", F.binary_cross_entropy_with_logits, POINTS[:15], t([0.0, 1.0, 0.5] * 5))
add("bce_with_logits pos", lambda x: F.binary_cross_entropy_with_logits(x, t([0.0, 1.0, 0.5] * 5), pos_weight=t(2.0)), POINTS[:15])
add("binary_cross_entropy", F.binary_cross_entropy, t(0.0, 1.0, 0.0, 1.0, 0.5, 0.5), t(0.0, 1.0, 1.0, 0.0, 1.0, 0.5))
add("binary_cross_entropy none", lambda x, y: F.binary_cross_entropy(x, y, reduction="none"), t(0.0, 1.0, 0.0, 1.0, 0.5), t(0.0, 1.0, 1.0, 0.0, 1.0))
add("binary_cross_entropy weight", lambda x, y: F.binary_cross_entropy(x, y, t(1.0, 2.0)), t(0.5, 0.25), t(1.0, 0.0))
add("hinge_embedding_loss", lambda x: F.hinge_embedding_loss(x, SIGNS), t(0.0, 1.0, 2.0, 0.5, -1.0, 3.0, 1.0))
add("margin_ranking_loss", lambda x, y: F.margin_ranking_loss(x, y, SIGNS, margin=1.0), t(0.0, 1.0, 2.0, 1.0, 1.0, 0.0, 1.0), t(0.0, 0.0, 1.0, 2.0, 1.0, 1.0, 0.0))
add("cosine_embedding_loss", lambda x, y: F.cosine_embedding_loss(x, y, SIGNS, 0.5), A, B)
add("triplet_margin_loss", lambda x, y, z: F.triplet_margin_loss(x, y, z), A, B, A.flip(0))
add("triplet_margin_loss swap", lambda x, y, z: F.triplet_margin_loss(x, y, z, swap=True), A, B, A.flip(0))
add("triplet_margin_with_distance", lambda x, y, z: F.triplet_margin_with_distance_loss(x, y, z), A, B, A.flip(0))
add("multi_margin_loss", lambda x: F.multi_margin_loss(x, LABELS), LOGITS)
add("multi_margin_loss squared", lambda x: F.multi_margin_loss(x, LABELS, p=2, weight=torch.tensor([1.0, 0.0, 2.0, 0.5]).to(x), reduction="none"), LOGITS)
add("multi_margin_loss of one", lambda x: F.multi_margin_loss(x, torch.tensor(1)), LOGITS[0])
add("multilabel_margin_loss", lambda x: F.multilabel_margin_loss(x, torch.tensor([[0, 2, -1, 0]] * 7)), LOGITS)
add("multilabel_soft_margin_loss", lambda x: F.multilabel_soft_margin_loss(x, (B > 0).float()), LOGITS)
add("soft_margin_loss", lambda x: F.soft_margin_loss(x, torch.sign(B - 0.5)), LOGITS)
add("poisson_nll_loss", lambda x, y: F.poisson_nll_loss(x, y), t(0.0, 1.0, -1.0, 2.0), t(0.0, 1.0, 2.0, 0.0))
add("poisson_nll_loss rates", lambda x, y: F.poisson_nll_loss(x, y, log_input=False), t(0.0, 1.0, 0.5, 2.0), t(0.0, 1.0, 2.0, 0.0))
add("poisson_nll_loss full", lambda x: F.poisson_nll_loss(x, t(0.0, 1.0, 2.0, 3.0), full=True), t(0.0, 1.0, -1.0, 2.0))
add("gaussian_nll_loss", lambda x, y, v: F.gaussian_nll_loss(x, y, v), t(0.0, 1.0, 2.0), t(0.0, 0.0, 2.0), t(1.0, 0.0, 1e-7))
add("gaussian_nll_loss full", lambda x, y, v: F.gaussian_nll_loss(x, y, v, full=True), t(0.0, 1.0, 2.0), t(0.0, 0.0, 2.0), t(1.0, 0.5, 2.0))
add("ctc_loss", lambda x: F.ctc_loss(F.log_softmax(x, 2), torch.tensor([[1, 1], [2, 3]]), torch.tensor([7, 7]), torch.tensor([2, 2])), torch.stack([A, B], 1))

# ---- Products.

M, N = ROWS[:4], ROWS[3:].t().contiguous()
add("matmul", torch.matmul, M, N)
add("mv", torch.mv, M, t(0.0, 1.0, -1.0, 2.0))
add("dot", torch.dot, t(0.0, 1.0), t(2.0, 0.0))
add("bmm", lambda x, y: torch.bmm(x[None], y[None]), M, N)
add("outer", torch.outer, t(0.0, 1.0), t(2.0, 0.0, -1.0))
add("addmm", lambda x, y, z: torch.addmm(x, y, z, beta=0.5, alpha=2.0), t(1.0), M, N)
add("addmv", torch.addmv, t(0.0, 1.0, 2.0, 3.0), M, t(0.0, 1.0, -1.0, 2.0))
add("addr", torch.addr, torch.zeros(2, 3), t(0.0, 1.0), t(2.0, 0.0, -1.0))
add("baddbmm", lambda x, y, z: torch.baddbmm(x, y[None], z[None], beta=0.5), torch.ones(1, 4, 4), M, N)
add("einsum", lambda x, y: torch.einsum("ij,jk->ki", x, y), M, N)
add("einsum diagonal", lambda x: torch.einsum("ii->i", x), M)
add("tensordot", lambda x, y: torch.tensordot(x, y, 1), M, N)
add("kron", torch.kron, t([[0.0, 1.0]]), t([[2.0], [0.0]]))
add("cross", lambda x, y: torch.linalg.cross(x, y), t([[0.0, 1.0, 2.0]]), t([[0.0, 1.0, 2.0]]))
add("linear", F.linear, M, t([[0.0, 1.0, -1.0, 2.0]]), t(1.0))
add("bilinear", F.bilinear, M, M, torch.ones(2, 4, 4))
add("inner", torch.inner, M, M)
add("vdot", torch.vdot, t(0.0, 1.0), t(2.0, 0.0))
add("chain_matmul", lambda x, y: torch.linalg.multi_dot([x, y, x]), M, N)
add("det", torch.det, t([[2.0, 1.0], [1.0, 1.0]]))
add("attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), M[None, None], M[None, None], M[None, None])
add("attention causal", lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), M[None, None])
add("attention mask", lambda q: F.scaled_dot_product_attention(q, q, q, torch.tensor([[True, False, True, True], [False] * 4, [True] * 4, [False, True, False, False]])), M[None, None])
add("attention bias", lambda q, b: F.scaled_dot_product_attention(q, q, q, b), M[None, None], t([[0.0, -INF, 1.0, 1.0], [-INF] * 4, [0.0] * 4, [1.0, 1.0, 1.0, 0.0]]))

# ---- Convolutions, poolings, images.

KERNEL = t([0.0, 1.0, -1.0, 2.0] * 4).reshape(2, 2, 2, 2)
add("conv2d", lambda x, w: F.conv2d(x, w), IMAGE, KERNEL)
add("conv_transpose2d", lambda x, w: F.conv_transpose2d(x, w, stride=2), IMAGE, KERNEL)
add("max_pool2d", lambda x: F.max_pool2d(x, 2), IMAGE)
add("max_pool2d overlap", lambda x: F.max_pool2d(x, 3, 1, 1), IMAGE)
add("max_pool2d of negatives", lambda x: F.max_pool2d(x, 3, 2, 1), -IMAGE.abs())
add("max_pool1d", lambda x: F.max_pool1d(x, 2), ROWS[None])
add("max_pool3d", lambda x: F.max_pool3d(x, (1, 2, 2)), IMAGE[None])
add("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, 2), IMAGE)
add("adaptive_max_pool2d 1", lambda x: F.adaptive_max_pool2d(x, 1), IMAGE)
add("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, 2), IMAGE)
add("adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 2), ROWS[None])
add("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1), IMAGE)
add("avg_pool2d without pads", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), IMAGE)
add("lp_pool2d", lambda x: F.lp_pool2d(x, 2, 2), IMAGE)
add("lp_pool2d of zeros", lambda x: F.lp_pool2d(x, 2, 2), torch.zeros(1, 1, 2, 2))
add("max_unpool2d", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), IMAGE)
add("interpolate nearest", lambda x: F.interpolate(x, scale_factor=2), IMAGE)
add("interpolate bilinear", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), IMAGE)
add("interpolate corners", lambda x: F.interpolate(x, size=(7, 5), mode="bilinear", align_corners=True), IMAGE)
add("interpolate bicubic", lambda x: F.interpolate(x, size=(6, 6), mode="bicubic"), IMAGE)
add("interpolate area", lambda x: F.interpolate(x, size=(2, 2), mode="area"), IMAGE)
add("interpolate nearest-exact", lambda x: F.interpolate(x, size=(6, 3), mode="nearest-exact"), IMAGE)
add("grid_sample", lambda x, g: F.grid_sample(x, g, align_corners=False), IMAGE, t([[[[0.0, 0.0], [1.0, 1.0], [-1.0, -1.0], [1.5, 0.0]]]]))
add("grid_sample border", lambda x, g: F.grid_sample(x, g, padding_mode="border", align_corners=True), IMAGE, t([[[[0.1, 0.0], [0.9, 0.9], [-1.5, -1.0], [1.5, 0.0]]]]))
add("affine_grid", lambda x: F.affine_grid(x, [1, 1, 2, 2], align_corners=False), t([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]))
add("pixel_shuffle", lambda x: F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2), IMAGE)
add("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), IMAGE)
add("channel_shuffle", lambda x: F.channel_shuffle(x, 2), IMAGE)
add("pad reflect", lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), IMAGE)
add("pad replicate", lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"), IMAGE)
add("pad circular", lambda x: F.pad(x, (1, 1, 1, 1), mode="circular"), IMAGE)
add("pad constant", lambda x: F.pad(x, (1, -1), value=2.0), IMAGE)
add("unfold", lambda x: F.unfold(x, 2), IMAGE)
add("fold", lambda x: F.fold(F.unfold(x, 2), (4, 4), 2), IMAGE)

# ---- Places.

INDEX = t([[0, 2, 2], [1, 1, 0], [3, 0, 3]], dtype=torch.int64)
add("gather", lambda x: torch.gather(x[:3], 1, INDEX), ROWS)
add("scatter", lambda x, y: x[:3].scatter(1, INDEX[:, :2], y[:3, :2]), A, B)
add("scatter_add", lambda x, y: x[:3].scatter_add(1, INDEX, y[:3, :3]), A, B)
for _reduce in ("sum", "prod", "mean", "amax", "amin"):
    add(f"scatter_reduce {_reduce}", lambda x, y, r=_reduce: x[:3].scatter_reduce(1, INDEX, y[:3, :3], r), A, B)
    add(f"scatter_reduce {_reduce} fresh", lambda x, y, r=_reduce: x[:3].scatter_reduce(1, INDEX, y[:3, :3], r, include_self=False), A, B)
for _reduce in ("prod", "mean", "amax", "amin"):
    add(f"index_reduce {_reduce}", lambda x, y, r=_reduce: x.index_reduce(0, t(0, 1, 1, dtype=torch.int64), y[:3], r), A, B)
add("index_add", lambda x, y: x.index_add(0, t(0, 1, 1, dtype=torch.int64), y[:3]), A, B)
add("index_copy", lambda x, y: x.index_copy(0, t(0, 2, dtype=torch.int64), y[:2]), A, B)
add("index_fill", lambda x: x.index_fill(0, t(0, 2, dtype=torch.int64), 5.0), A)
add("index_select", lambda x: x.index_select(0, t(0, 2, 2, dtype=torch.int64)), A)
add("index", lambda x: x[t(0, 2, 2, dtype=torch.int64), t(1, 1, 1, dtype=torch.int64)], A)
add("index_put", lambda x, y: x.index_put((t(0, 2, dtype=torch.int64),), y[:2]), A, B)
add("masked_scatter", lambda x, y: x.masked_scatter(torch.eye(7, 4).bool(), y), A, B)
add("take", lambda x: torch.take(x, INDEX), A)
add("take_along_dim", lambda x: torch.take_along_dim(x[:3], INDEX, 1), A)
add("embedding", lambda x: F.embedding(INDEX, x), A)
add("embedding padding", lambda x: F.embedding(INDEX, x, padding_idx=2), A)
add("embedding padding from the end", lambda x: F.embedding(INDEX, x, padding_idx=-7), A)
add("embedding_bag", lambda x: F.embedding_bag(INDEX, x, mode="mean"), A)
add("embedding_bag max", lambda x: F.embedding_bag(INDEX, x, mode="max"), A)
add("tril", torch.tril, M)
add("triu", lambda x: torch.triu(x, 1), M)
add("diag", torch.diag, M)
add("diag_embed", torch.diag_embed, M)
add("diagonal", torch.diagonal, M)
add("roll", lambda x: torch.roll(x, 1, 1), M)
add("flip", lambda x: torch.flip(x, (0, 1)), M)
add("rot90", torch.rot90, M)
add("repeat_interleave", lambda x: torch.repeat_interleave(x, 2, 1), M)
add("tile", lambda x: torch.tile(x, (2, 1)), M)
add("expand", lambda x: x[:, None].expand(-1, 3, -1), M)
add("unfold tensor", lambda x: x.unfold(1, 2, 1), M)
add("as_strided", lambda x: torch.as_strided(x, (2, 2), (4, 1)), M)
add("select_scatter", lambda x, y: torch.select_scatter(x, y[0], 0, 1), A, B)
add("slice_scatter", lambda x, y: torch.slice_scatter(x, y[:2], 0, 1, 3), A, B)
add("diagonal_scatter", lambda x, y: torch.diagonal_scatter(x[:4], y[0]), A, B)
add("bucketize", lambda x: x * torch.bucketize(x.detach(), torch.tensor([0.0, 1.0, 2.0])), M)
add("searchsorted", lambda x: x * torch.searchsorted(torch.tensor([0.0, 1.0, 2.0]), x.detach(), right=True), M)
add("one_hot", lambda x: x[:3, None] * F.one_hot(INDEX, 4).float(), M)
add("block_diag", lambda x, y: torch.block_diag(x, y), M, N)
add("combinations", lambda x: torch.cartesian_prod(x, x), t(0.0, 1.0, 2.0))
add("meshgrid", lambda x, y: torch.meshgrid(x, y, indexing="ij"), t(0.0, 1.0), t(2.0, 3.0))
add("hstack", lambda x, y: torch.hstack([x, y]), A, B)
add("unbind", lambda x: torch.unbind(x, 1), M)
add("tensor_split", lambda x: torch.tensor_split(x, 3, 1), M)
add("movedim", lambda x: torch.movedim(x, 0, -1), IMAGE)
add("cumsum reversed", lambda x: x.flip(1).cumsum(1).flip(1), M)
add("cumulative_trapezoid", torch.cumulative_trapezoid, M)
add("trapezoid", torch.trapezoid, M)
add("polar", lambda x: torch.view_as_real(torch.polar(x.abs(), x)), t(0.0, 1.0, 2.0))
add("fft", lambda x: torch.fft.rfft(x).abs(), t(1.0, 2.0, 3.0, 4.0))

_NO_RULE = "digamma erfc erfinv i0 lgamma polygamma nextafter mode nanmedian polar special.log_ndtr fft"
_OTHER_AXES = ("mode other axis", "nanmedian other axis", "nanmedian of all")
REFUSED = {
    **{name: "has no rule" for name in (*_NO_RULE.split(), *_OTHER_AXES)},
    **{name: "tracing tensor" for name in ("cov", "corrcoef")},
    **{name: f"{name} is not compiled" for name in ("ctc_loss", "multilabel_margin_loss")},
}
"""Functions that are not exported, with words of the reason."""
