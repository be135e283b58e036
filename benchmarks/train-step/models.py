"""The performance set: sixteen models as torch modules, each with its inputs, its label and its loss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

    case = make("lenet")            # case.module, case.batches [(inputs, label)], case.loss(output, label), case.spec

All float32, dropout 0, batch norm in training mode. Weights and data come from fixed seeds; export.py writes them down.
Cross entropy takes logits [N, classes] and labels [N]; sequence models flatten batch and time.
"""

import math
from collections import namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F

Case = namedtuple("Case", "module batches spec loss")
BATCHES = 4  # of data a model has; every system goes through them in order, again and again
LOSSES = {
    "cross_entropy": F.cross_entropy,
    "mse": F.mse_loss,
    "bce_with_logits": F.binary_cross_entropy_with_logits,
}


def conv_bn(i, o, kernel, stride=1, padding=None, groups=1):
    padding = kernel // 2 if padding is None else padding
    return nn.Sequential(
        nn.Conv2d(i, o, kernel, stride, padding, groups=groups, bias=False), nn.BatchNorm2d(o), nn.ReLU()
    )


def mlp(*sizes):
    layers = [m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        mlp(400, 120, 84, 10),
    )


def ds_cnn():
    """MLPerf Tiny keyword spotting."""
    blocks = [m for _ in range(4) for m in (conv_bn(64, 64, 3, groups=64), conv_bn(64, 64, 1))]
    return nn.Sequential(
        conv_bn(1, 64, (10, 4), 2, (5, 1)), *blocks, nn.AvgPool2d((25, 5)), nn.Flatten(), nn.Linear(64, 12)
    )


class Residual(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.body = nn.Sequential(
            conv_bn(i, o, 3, stride), nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o)
        )
        self.skip = nn.Identity() if stride == 1 else nn.Conv2d(i, o, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def resnet8():
    """MLPerf Tiny image classification."""
    return nn.Sequential(
        conv_bn(3, 16, 3),
        Residual(16, 16, 1),
        Residual(16, 32, 2),
        Residual(32, 64, 2),
        nn.AvgPool2d(8),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def vision(name, **options):
    import torchvision

    return torchvision.models.get_model(name, weights=None, **options)


def vit_tiny():
    import timm

    return timm.create_model("vit_tiny_patch16_224", pretrained=False)


class UNet(nn.Module):
    def __init__(self, widths=(32, 64, 128, 256)):
        super().__init__()
        pairs = list(zip(widths, widths[1:]))
        double = lambda i, o: nn.Sequential(conv_bn(i, o, 3), conv_bn(o, o, 3))
        self.first = double(3, widths[0])
        self.down = nn.ModuleList(double(i, o) for i, o in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose2d(o, i, 2, 2) for i, o in reversed(pairs))
        self.merge = nn.ModuleList(double(2 * i, i) for i, _ in reversed(pairs))
        self.last = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x):
        skips = [self.first(x)]
        for down in self.down:
            skips.append(down(F.max_pool2d(skips[-1], 2)))
        x = skips.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([skips.pop(), up(x)], 1))
        return self.last(x)


class CharLSTM(nn.Module):
    def __init__(self, vocab=96, hidden=256):
        super().__init__()
        self.embed, self.lstm, self.head = (
            nn.Embedding(vocab, hidden),
            nn.LSTM(hidden, hidden, batch_first=True),
            nn.Linear(hidden, vocab),
        )

    def forward(self, tokens):
        return self.head(self.lstm(self.embed(tokens))[0]).flatten(0, 1)


class Block(nn.Module):
    """One transformer layer, BERT's (norm after) or GPT-2's (norm before, causal)."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal, eps = heads, causal, 1e-5 if causal else 1e-12
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)

    def attend(self, x, mask):
        b, t, c = x.shape
        q, k, v = (p.reshape(b, t, self.heads, c // self.heads).transpose(1, 2) for p in self.qkv(x).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, t, c))

    def mix(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh" if self.causal else "none"))

    def forward(self, x, mask=None):
        if self.causal:
            x = x + self.attend(self.norm1(x), mask)
            return x + self.mix(self.norm2(x))
        x = self.norm1(x + self.attend(x, mask))
        return self.norm2(x + self.mix(x))


class Bert(nn.Module):
    """BERT with a sentence classifier on the pooled first token."""

    def __init__(self, layers, width, seq=128, vocab=30522, classes=2):
        super().__init__()
        self.word, self.position, self.kind = (
            nn.Embedding(vocab, width),
            nn.Embedding(512, width),
            nn.Embedding(2, width),
        )
        self.norm, self.seq = nn.LayerNorm(width, 1e-12), seq
        self.layers = nn.ModuleList(Block(width, width // 64, False) for _ in range(layers))
        self.pool, self.head = nn.Linear(width, width), nn.Linear(width, classes)
        self.apply(small_init)

    def forward(self, tokens, mask):
        mask = (1 - mask)[:, None, None, :] * -1e4
        x = self.norm(self.word(tokens) + self.position.weight[: self.seq] + self.kind.weight[0])
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(torch.tanh(self.pool(x[:, 0])))


class MaskedBert(Bert):
    """BERT that tells the tokens that are masked out: a head of the whole vocabulary at every position."""

    def __init__(self, layers, width, seq=128, vocab=30522):
        super().__init__(layers, width, seq, vocab, classes=vocab)
        del self.pool

    def forward(self, tokens, mask):
        mask = (1 - mask)[:, None, None, :] * -1e4
        x = self.norm(self.word(tokens) + self.position.weight[: self.seq] + self.kind.weight[0])
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x).flatten(0, 1)


class GPT2(nn.Module):
    def __init__(self, layers=12, width=768, seq=256, vocab=50257):
        super().__init__()
        self.word, self.position = nn.Embedding(vocab, width), nn.Embedding(max(seq, 1024), width)
        self.layers, self.norm, self.seq = (
            nn.ModuleList(Block(width, width // 64, True) for _ in range(layers)),
            nn.LayerNorm(width),
            seq,
        )
        self.apply(small_init)

    def forward(self, tokens):
        x = self.word(tokens) + self.position.weight[: self.seq]
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.word.weight).flatten(0, 1)


def small_init(module):
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
        if getattr(module, "bias", None) is not None:
            nn.init.zeros_(module.bias)


class DLRM(nn.Module):
    """Criteo-Kaggle shape: 13 dense features, 26 tables, dot interaction."""

    def __init__(self, tables=26, rows=10000, width=16):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = nn.Sequential(mlp(13, 512, 256, 64, width), nn.ReLU())
        self.top = mlp(tables * (tables + 1) // 2 + width, 512, 256, 1)
        for table in self.tables:
            nn.init.uniform_(table.weight, -1 / math.sqrt(rows), 1 / math.sqrt(rows))
        n = tables + 1
        self.register_buffer("pairs", torch.tensor([i * n + j for i in range(n) for j in range(i)]), persistent=False)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        z = torch.stack([x, *(table(sparse[:, i]) for i, table in enumerate(self.tables))], 1)
        z = torch.bmm(z, z.transpose(1, 2)).flatten(1).index_select(1, self.pairs)
        return self.top(torch.cat([x, z], 1))


def autoencoder():
    down = lambda i, o: [nn.Conv2d(i, o, 3, 2, 1), nn.ReLU()]
    up = lambda i, o: [nn.ConvTranspose2d(i, o, 4, 2, 1), nn.ReLU()]
    return nn.Sequential(*down(3, 32), *down(32, 64), *down(64, 128), *up(128, 64), *up(64, 32), *up(32, 3)[:1])


def images(*shape, classes):
    return lambda: ({"input": torch.randn(shape)}, torch.randint(classes, shape[:1]))


def tokens(batch, seq, vocab):
    def batch_of():
        text = torch.randint(vocab, (batch, seq + 1))
        return {"tokens": text[:, :-1].contiguous()}, text[:, 1:].flatten()

    return batch_of


def sentences(batch, seq, vocab=30522):
    """Padded sentences: lengths from half of `seq` to `seq`."""

    def batch_of():
        mask = torch.arange(seq)[None, :] < torch.randint(seq // 2, seq + 1, (batch, 1))
        return {"tokens": torch.randint(vocab, (batch, seq)) * mask, "mask": mask.float()}, torch.randint(2, (batch,))

    return batch_of


def masked(batch, seq, share, vocab=30522):
    """Sentences of which a share of the tokens has a label, and the others -100: the loss ignores those."""

    def batch_of():
        text = torch.randint(vocab, (batch, seq))
        label = torch.where(torch.rand(batch, seq) < share, text, -100)
        return {"tokens": text, "mask": torch.ones(batch, seq)}, label.flatten()

    return batch_of


def masks(batch, size):
    return lambda: ({"input": torch.randn(batch, 3, size, size)}, (torch.rand(batch, 1, size, size) < 0.3).float())


def clicks(batch, tables=26, rows=10000):
    return lambda: (
        {"dense": torch.randn(batch, 13), "sparse": torch.randint(rows, (batch, tables))},
        (torch.rand(batch, 1) < 0.3).float(),
    )


def same(*shape):
    def batch_of():
        x = torch.randn(shape)
        return {"input": x}, x.clone()

    return batch_of


# name: (module, one batch, loss)
SET = {
    "tiny-mlp": (lambda: mlp(64, 64, 10), images(16, 64, classes=10), "cross_entropy"),
    "mlp": (lambda: mlp(784, 512, 512, 10), images(64, 784, classes=10), "cross_entropy"),
    "lenet": (lenet, images(64, 1, 28, 28, classes=10), "cross_entropy"),
    "ds-cnn": (ds_cnn, images(32, 1, 49, 10, classes=12), "cross_entropy"),
    "resnet8-cifar": (resnet8, images(32, 3, 32, 32, classes=10), "cross_entropy"),
    "dlrm-small": (DLRM, clicks(256), "bce_with_logits"),
    "lstm-chars": (CharLSTM, tokens(32, 64, 96), "cross_entropy"),
    "autoencoder-conv": (autoencoder, same(32, 3, 64, 64), "mse"),
    "bert-mini": (lambda: Bert(4, 256), sentences(16, 128), "cross_entropy"),
    "unet-small": (UNet, masks(4, 128), "bce_with_logits"),
    "vit-tiny-patch16-224": (vit_tiny, images(8, 3, 224, 224, classes=1000), "cross_entropy"),
    "mobilenetv2-224": (
        lambda: vision("mobilenet_v2", dropout=0.0),
        images(8, 3, 224, 224, classes=1000),
        "cross_entropy",
    ),
    "efficientnet-b0-224": (
        lambda: vision("efficientnet_b0", dropout=0.0, stochastic_depth_prob=0.0),
        images(4, 3, 224, 224, classes=1000),
        "cross_entropy",
    ),
    "resnet18-224": (lambda: vision("resnet18"), images(8, 3, 224, 224, classes=1000), "cross_entropy"),
    "bert-base": (lambda: Bert(12, 768), sentences(4, 128), "cross_entropy"),
    "gpt2-small": (GPT2, tokens(2, 256, 50257), "cross_entropy"),
    # For benchmarks/features.
    "gpt2-small-1024": (lambda: GPT2(seq=1024), tokens(1, 1024, 50257), "cross_entropy"),
    "gpt2-small-2048": (lambda: GPT2(seq=2048), tokens(1, 2048, 50257), "cross_entropy"),
    "bert-mini-masked": (lambda: MaskedBert(4, 256), masked(8, 128, 0.15), "cross_entropy"),
}


def build(name):
    torch.manual_seed(0)
    return SET[name][0]().train()


def make(name):
    module = build(name)
    torch.manual_seed(1)
    _, batch_of, spec = SET[name]
    return Case(module, [batch_of() for _ in range(BATCHES)], spec, LOSSES[spec])
