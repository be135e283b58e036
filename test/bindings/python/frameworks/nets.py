"""Small nets, one for each thing that a graph does not say by itself, or says in an unusual way.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


class Sign(torch.autograd.Function):
    """The sign of binary networks: no gradient beyond one."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.sign(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        gradient = gradient.clone()
        gradient[x.abs() > 1] = 0
        return gradient


class Reverse(torch.autograd.Function):
    """The reversed gradient of domain-adversarial training."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, rate: float) -> torch.Tensor:
        ctx.rate = rate
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return -ctx.rate * gradient, None


class Swish(torch.autograd.Function):
    """Two operands, with the context set apart."""

    @staticmethod
    def forward(x: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        return gradient * (s + beta * x * s * (1 - s)), gradient * (x * x * s * (1 - s))


class Clipped(torch.autograd.Function):
    """A Function that no graph can say: its gradient is no multiple of the one that comes."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient.clamp(-1, 1)


apply_sign = Sign.apply  # as scripts keep it


def mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for first, second in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(first, second), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class Bags(nn.Module):
    """Bags by offsets, one of them empty, without the elements of padding rows."""

    def __init__(self) -> None:
        super().__init__()
        rows = {"sum": -1, "mean": 0, "max": 2}
        self.tables = nn.ModuleList(nn.EmbeddingBag(9, 4, mode=mode, padding_idx=row) for mode, row in rows.items())

    def forward(self, tokens: torch.Tensor, offsets: torch.Tensor) -> list[torch.Tensor]:
        return [each(tokens, offsets) for each in self.tables]


class VectorQuantized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode, self.codes = mlp(6, 8, 4), mlp(4, 8, 6), nn.Embedding(5, 4)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        z = self.encode(x)
        places = torch.cdist(z, self.codes.weight).argmin(1)
        q = self.codes(places)
        lost = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        return {"loss": F.mse_loss(self.decode(z + (q - z).detach()), x) + lost, "places": places}


class SimSiam(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.predict = mlp(6, 8, 5), mlp(5, 4, 5)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        first, second = self.encode(x), self.encode(y)
        far = [-F.cosine_similarity(self.predict(a), b.detach(), 1).mean() for a, b in ((first, second), (second, first))]
        return {"loss": (far[0] + far[1]) / 2}


class Taught(nn.Module):
    """A teacher under torch.no_grad(), whose own parameters have requires_grad."""

    def __init__(self) -> None:
        super().__init__()
        self.student, self.teacher = mlp(6, 8, 3), mlp(6, 8, 3)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        with torch.no_grad():
            wanted = F.softmax(self.teacher(x), 1)
        return {"loss": F.kl_div(F.log_softmax(self.student(x), 1), wanted, reduction="batchmean")}


class Frozen(nn.Module):
    """A teacher under torch.no_grad() without a parameter that is trained: the input has no gradient through it."""

    def __init__(self) -> None:
        super().__init__()
        self.student, self.teacher = mlp(6, 8, 3), mlp(6, 8, 3).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            wanted = F.softmax(self.teacher(x), 1)
        return (self.student(x) * wanted).sum()


class Rounding(nn.Module):
    def __init__(self, how: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.how = nn.Linear(6, 8), nn.Linear(8, 3), how

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": (self.second(self.how(self.first(x) * 3)) ** 2).mean()}


class Positions(nn.Module):
    """A table of positions that is a parameter without requires_grad."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(11, 6), nn.Linear(6, 11)
        self.positions = nn.Parameter(torch.randn(7, 6), requires_grad=False)

    def forward(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        x = torch.tanh(self.tokens(tokens) + self.positions)
        return {"loss": F.cross_entropy(self.head(x[:, :-1]).transpose(1, 2), tokens[:, 1:])}


class Padded(nn.Module):
    def __init__(self, row: int = 0) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(11, 6, padding_idx=row), nn.Linear(6, 3)
        with torch.no_grad():
            self.tokens.weight[row] = torch.linspace(-1, 1, 6)

    def forward(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": (self.head(torch.tanh(self.tokens(tokens)).mean(1)) ** 2).mean()}


class Bagged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.head = nn.EmbeddingBag(5, 6, padding_idx=1), nn.Linear(6, 3)

    def forward(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": (self.head(torch.tanh(self.tokens(tokens))) ** 2).mean()}


class Function(nn.Module):
    """A function of a linear layer."""

    def __init__(self, function: Callable[..., Any], inputs: int = 6, outputs: int = 8, **parameters: torch.Tensor) -> None:
        super().__init__()
        self.layer, self.function = nn.Linear(inputs, outputs), function
        self.others = nn.ParameterDict({name: nn.Parameter(each) for name, each in parameters.items()})

    def forward(self, x: torch.Tensor, *rest: torch.Tensor) -> Any:
        return self.function(self.layer(x), *rest, **self.others)


class Domain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.head, self.domain = mlp(6, 8), nn.Linear(8, 3), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = torch.tanh(self.trunk(x))
        return self.head(h), self.domain(Reverse.apply(h, 0.5))


class Data(nn.Module):
    """.data, and a detached weight."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.scale = nn.Linear(6, 6), nn.Parameter(torch.ones(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        return F.linear(y, self.layer.weight.detach()) * self.scale + y.data * self.scale.data


class Images(nn.Module):
    def __init__(self, drop: float = 0.0) -> None:
        super().__init__()
        self.conv, self.norm, self.drop, self.head = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Dropout(drop), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(F.relu6(self.norm(self.conv(x))).amax((2, 3))))


class Holes(nn.Module):
    """Where all weights are zeros, the gradient of one pixel is NaN, which convolutions carry to its neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.conv(x)
        return y, torch.sqrt(y[:, :, 5, 5] ** 2)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], **settings: Any) -> None:
        super().__init__()
        self.cell = kind(3, 5, batch_first=True, **settings)

    def forward(self, x: torch.Tensor) -> Any:
        return self.cell(x)


class Attended(nn.Module):
    """Keywords, a dict, a number of Python, and nested results."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.out = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 4)

    def forward(self, batch: dict[str, torch.Tensor], *, scale: float = 1.0, shift: torch.Tensor | None = None) -> Any:
        x = batch["x"]
        y, _ = self.attention(x, x, x, key_padding_mask=batch["hidden"], need_weights=False)
        y = self.out(y) * scale
        return {"y": y if shift is None else y + shift, "parts": [y.mean(1), (y.sum(),)], "nothing": None}


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 6), nn.Linear(6, 9, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.embed(tokens)))


class Variational(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(6, 8), nn.Linear(4, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, log = self.encode(x).chunk(2, 1)
        return self.decode(mean + torch.exp(log / 2) * torch.randn_like(mean))


class Graph(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        sent = self.layer(nodes)[edges[0]]
        total = torch.zeros_like(nodes).index_add(0, edges[1], sent)
        return total + nodes.scatter_reduce(0, edges[1][:, None].expand(-1, 4), sent, "amax")


def composite(x: torch.Tensor) -> torch.Tensor:
    """Colours along rays."""
    opaque = 1 - torch.exp(-F.relu(x))
    return (torch.cumprod(1 - opaque + 1e-3, 1) * opaque).sum(1)


def attend(x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    weights = F.softmax(x.masked_fill(hidden, -math.inf), 1)
    return torch.where(torch.isnan(weights), 0.0, weights) @ x.t()


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def integers(below: int, *shape: int) -> torch.Tensor:
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(sum(shape)))


TRAINED: dict[str, tuple[Callable[[], nn.Module], tuple[torch.Tensor, ...]]] = {
    "vector quantized": (VectorQuantized, (draw(80, 6),)),
    "SimSiam": (SimSiam, (draw(80, 6), draw(80, 6) * 2)),
    "teacher without gradients": (Taught, (draw(80, 6),)),
    "rounding, by detach": (lambda: Rounding(lambda x: x + (x.round() - x).detach()), (draw(80, 6),)),
    "rounding, by a Function": (lambda: Rounding(Round.apply), (draw(80, 6),)),
    "sign, by a Function": (lambda: Rounding(apply_sign), (draw(80, 6),)),
    "frozen positions": (Positions, (integers(11, 80, 7),)),
    "padding row": (Padded, (integers(11, 80, 5),)),
    "padding row from the end": (lambda: Padded(-3), (integers(11, 80, 5),)),
    "padding row of bags": (Bagged, (integers(5, 80, 5),)),
}
"""Nets that give their loss, and what 20 steps of 4 samples are trained on."""

NETS: dict[str, tuple[Callable[[], nn.Module], Any, dict[str, Any]]] = {
    "reversed gradient": (Domain, (draw(4, 6),), {}),
    "data": (Data, (draw(4, 6),), {}),
    "swish": (lambda: Function(lambda x, beta: Swish.apply(x, beta.expand_as(x)), beta=torch.ones(8)), (draw(4, 6),), {}),
    "batch norm": (Images, (draw(4, 2, 6, 6),), {}),
    "batch norm in evaluation": (lambda: Images().eval(), (draw(4, 2, 6, 6),), {}),
    "dropout": (lambda: Images(0.5), (draw(4, 2, 6, 6),), {}),
    "dropout of channels": (lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.Dropout2d(0.5), nn.Conv2d(4, 2, 3)), (draw(4, 2, 6, 6),), {}),
    "alpha dropout": (lambda: nn.Sequential(nn.Linear(6, 8), nn.SELU(), nn.AlphaDropout(0.5), nn.Linear(8, 3)), (draw(4, 6),), {}),
    "random slopes": (lambda: nn.Sequential(nn.Linear(6, 8), nn.RReLU(), nn.Linear(8, 3)), (draw(4, 6),), {}),
    "holes": (Holes, (draw(2, 3, 16, 16),), {}),
    "lstm": (lambda: Recurrent(nn.LSTM), (draw(2, 4, 3),), {}),
    "gru": (lambda: Recurrent(nn.GRU, bidirectional=True, num_layers=2), (draw(2, 4, 3),), {}),
    "rnn": (lambda: Recurrent(nn.RNN, nonlinearity="relu"), (draw(2, 4, 3),), {}),
    "attention": (
        Attended,
        ({"x": draw(2, 5, 8), "hidden": torch.tensor([[False] * 5, [False, False, True, True, True]])},),
        {"scale": 0.5, "shift": draw(4)},
    ),
    "tied": (Tied, (integers(9, 3, 5),), {}),
    "bag": (lambda: nn.EmbeddingBag(9, 4, mode="sum"), (integers(9, 3, 5),), {}),
    "bags": (Bags, (integers(9, 10), torch.tensor([0, 3, 3, 7])), {}),
    "largest of bags": (lambda: nn.EmbeddingBag(9, 4, mode="max", padding_idx=0), (integers(9, 3, 5),), {}),
    "weighted bags": (lambda: nn.EmbeddingBag(9, 4, mode="sum", padding_idx=3), (integers(9, 3, 5), None, draw(3, 5)), {}),
    "frozen teacher": (Frozen, (draw(4, 6),), {}),
    "estimator of the input": (lambda: Function(lambda x, y: x * Sign.apply(y)), (draw(4, 6), draw(4, 8)), {}),
    "inputs that are changed": (lambda: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 3)), (draw(4, 6),), {}),
    "float64": (lambda: mlp(6, 8, 3).double(), (draw(4, 6).double(),), {}),
    "bfloat16": (lambda: mlp(6, 8, 3).bfloat16(), (draw(4, 6).bfloat16(),), {}),
    "scalar": (lambda: Function(lambda x, scale: x.sum() * scale), (draw(4, 6), torch.tensor(0.5)), {}),
    "learned bounds": (
        lambda: Function(lambda x, low, high: torch.clamp(x, low, high), low=torch.tensor(-0.5), high=torch.full((8,), 0.5)),
        (draw(4, 6),),
        {},
    ),
    "angles": (lambda: Function(lambda x: torch.atan2(x[:, :4], x[:, 4:])), (draw(4, 6),), {}),
    "distances": (lambda: Function(lambda x: torch.cdist(x, x) + F.pairwise_distance(x, x.flip(0))), (draw(4, 6),), {}),
    "triplets": (lambda: Function(lambda x: F.triplet_margin_loss(x, x.roll(1, 0), x.roll(2, 0), swap=True)), (draw(4, 6),), {}),
    "largest": (lambda: Function(lambda x: (x.max(1).values, x.min(0).values, x.amax(1), x.median(1).values)), (draw(4, 6),), {}),
    "orders": (lambda: Function(lambda x: (x.sort(1).values, x.topk(3, 1).values, x.cummax(1).values)), (draw(4, 6),), {}),
    "gumbel": (lambda: Function(lambda x: F.gumbel_softmax(x, hard=True)), (draw(4, 6),), {}),
    "variational": (Variational, (draw(4, 6),), {}),
    "hidden rows": (lambda: Function(attend), (draw(4, 6), torch.tensor([[True] * 8, [False] * 8, [True, False] * 4, [False] * 8])), {}),
    "quantiles": (lambda: Function(lambda x: torch.quantile(x, 0.3, dim=1)), (draw(4, 6),), {}),
    "graph": (Graph, (draw(5, 4), integers(5, 2, 9)), {}),
    "mixture": (lambda: Function(lambda x: torch.logsumexp(F.log_softmax(x, 1) - F.softplus(x) ** 2, 1)), (draw(4, 6),), {}),
    "rays": (lambda: Function(composite), (draw(4, 6),), {}),
    "grid": (lambda: Function(lambda x: F.grid_sample(x.reshape(1, 1, 4, 8), torch.tanh(x.reshape(1, 4, 4, 2)), align_corners=False)), (draw(4, 6),), {}),
    "norms": (lambda: Function(lambda x: F.normalize(x) + F.rms_norm(x, (8,)) + F.group_norm(x, 2)), (draw(4, 6),), {}),
    "upsampled": (
        lambda: nn.Sequential(nn.ConvTranspose2d(2, 8, 2, 2), nn.PReLU(8), nn.PixelShuffle(2), nn.Upsample(scale_factor=2, mode="bilinear")),
        (draw(2, 2, 3, 3),),
        {},
    ),
    "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(6, 4)), (draw(4, 6),), {}),
    "losses": (
        lambda: Function(lambda x: F.gaussian_nll_loss(x, x.detach() + 1, x * x) + F.poisson_nll_loss(x, x.detach().abs())),
        (draw(4, 6),),
        {},
    ),
    "checkpointed": (
        lambda: Function(lambda x: torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=True)),
        (draw(4, 6),),
        {},
    ),
}
"""Nets, and what they are called with."""

