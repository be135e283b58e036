"""The networks of `test/zoo` as plain torch modules: what a user of PyTorch would write for the same ONNX file.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

Parameters have the ONNX file's names; where an entry came from a library with a deep tree of modules, RENAMES says how
its names become ours. Attention is `scaled_dot_product_attention`, also where the file spells it out. No module has
dropout; batch norm is in training mode.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 12, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(300, 32),
        nn.Tanh(),
        nn.Linear(32, 24),
        nn.Tanh(),
        nn.Linear(24, 10),
        nn.LogSoftmax(1),
    )


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.conv2, self.bn2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.downsample(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.layer1, self.layer2, self.layer3 = (
            nn.Sequential(BasicBlock(*shape)) for shape in ((64, 8, 1), (8, 12, 2), (12, 16, 2))
        )
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


class Separable(nn.Module):
    """Depthwise, then pointwise."""

    def __init__(self, width):
        super().__init__()
        self.conv_dw, self.bn1 = nn.Conv2d(width, width, 3, 1, 1, groups=width, bias=False), nn.BatchNorm2d(width)
        self.conv_pw, self.bn2 = nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        return x + self.bn2(self.conv_pw(F.relu6(self.bn1(self.conv_dw(x)))))


class InvertedResidual(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        wide, self.adds = 3 * i, stride == 1 and i == o
        self.conv_pw, self.bn1 = nn.Conv2d(i, wide, 1, bias=False), nn.BatchNorm2d(wide)
        self.conv_dw, self.bn2 = nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide)
        self.conv_pwl, self.bn3 = nn.Conv2d(wide, o, 1, bias=False), nn.BatchNorm2d(o)

    def forward(self, x):
        y = F.relu6(self.bn2(self.conv_dw(F.relu6(self.bn1(self.conv_pw(x))))))
        y = self.bn3(self.conv_pwl(y))
        return x + y if self.adds else y


class MobileNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_stem, self.bn1 = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)
        self.blocks = nn.Sequential(
            nn.Sequential(Separable(8)),
            nn.Sequential(InvertedResidual(8, 16, 2), InvertedResidual(16, 16, 1)),
            nn.Sequential(InvertedResidual(16, 16, 2), InvertedResidual(16, 16, 1)),
        )
        self.conv_head, self.bn2 = nn.Conv2d(16, 32, 1, bias=False), nn.BatchNorm2d(32)
        self.classifier = nn.Linear(32, 10)

    def forward(self, x):
        x = self.blocks(F.relu6(self.bn1(self.conv_stem(x))))
        return self.classifier(F.relu6(self.bn2(self.conv_head(x))).mean((2, 3)))


class UNet(nn.Module):
    def __init__(self, channels=3, classes=4, widths=(6, 12, 20)):
        super().__init__()
        block = lambda i, o: nn.Sequential(
            *(
                part
                for c in (i, o)
                for part in (nn.Conv2d(c, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
            )
        )
        self.down = nn.ModuleList(block(i, o) for i, o in zip((channels, *widths), widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(o, i, 2, 2) for i, o in zip(widths, widths[1:]))
        self.merge = nn.ModuleList(block(2 * i, i) for i in widths[:-1])
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        skips = []
        for block in self.down:
            x = block(F.max_pool2d(x, 2) if skips else x)
            skips.append(x)
        for up, merge, skip in reversed(list(zip(self.up, self.merge, skips))):
            x = merge(torch.cat([skip, up(x)], 1))
        return self.head(x)


def autoencoder():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(16, 12, 7),
        nn.ELU(),
        nn.ConvTranspose2d(12, 16, 7),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 8, 3, 2, 1, output_padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(8, 1, 3, 2, 1, output_padding=1),
        nn.Sigmoid(),
    )


def attend(q, k, v, heads, mask=None, causal=False):
    """Attention of projections [batch, time, width]."""
    split = lambda x: x.unflatten(-1, (heads, -1)).transpose(1, 2)
    return (
        F.scaled_dot_product_attention(split(q), split(k), split(v), attn_mask=mask, is_causal=causal)
        .transpose(1, 2)
        .flatten(2)
    )


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class VitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2, self.mlp, self.heads = (
            nn.LayerNorm(width, 1e-6),
            nn.LayerNorm(width, 1e-6),
            Mlp(width, 2 * width),
            heads,
        )
        self.attn = nn.ModuleDict({"qkv": nn.Linear(width, 3 * width), "proj": nn.Linear(width, width)})

    def forward(self, x):
        x = x + self.attn["proj"](attend(*self.attn["qkv"](self.norm1(x)).chunk(3, -1), self.heads))
        return x + self.mlp(self.norm2(x))


class Patches(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Conv2d(3, width, 8, 8)

    def forward(self, image):
        return self.proj(image).flatten(2).transpose(1, 2)


class VisionTransformer(nn.Module):
    def __init__(self, width=24, patches=16):
        super().__init__()
        self.cls_token, self.pos_embed = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(
            torch.zeros(1, patches + 1, width)
        )
        self.patch_embed, self.blocks = Patches(width), nn.Sequential(VitBlock(width, 3), VitBlock(width, 3))
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, 10)

    def forward(self, image):
        x = self.patch_embed(image)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


class MixerBlock(nn.Module):
    def __init__(self, width, patches):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-6), nn.LayerNorm(width, 1e-6)
        self.mlp_tokens, self.mlp_channels = Mlp(patches, width // 2), Mlp(width, 2 * width)

    def forward(self, x):
        x = x + self.mlp_tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp_channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, width=24, patches=16):
        super().__init__()
        self.stem, self.blocks = Patches(width), nn.Sequential(MixerBlock(width, patches), MixerBlock(width, patches))
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, 10)

    def forward(self, image):
        return self.head(self.norm(self.blocks(self.stem(image))).mean(1))


class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2, self.mlp, self.heads = (
            nn.LayerNorm(width, 1e-12),
            nn.LayerNorm(width, 1e-12),
            Mlp(width, 2 * width),
            heads,
        )

    def forward(self, x, mask):
        x = self.norm1(x + self.out(attend(self.query(x), self.key(x), self.value(x), self.heads, mask)))
        return self.norm2(x + self.mlp(x))


class Bert(nn.Module):
    def __init__(self, width=24, vocabulary=96, positions=24):
        super().__init__()
        self.word, self.position, self.kind = (
            nn.Embedding(vocabulary, width),
            nn.Embedding(positions, width),
            nn.Embedding(2, width),
        )
        self.norm, self.layer = nn.LayerNorm(width, 1e-12), nn.ModuleList(BertLayer(width, 2) for _ in range(2))
        self.pool, self.head = nn.Linear(width, width), nn.Linear(width, 3)

    def forward(self, tokens, mask):
        mask = mask.bool()[:, None, None, :]
        x = self.norm(self.word(tokens) + self.kind.weight[0] + self.position.weight[: tokens.shape[1]])
        for layer in self.layer:
            x = layer(x, mask)
        return self.head(torch.tanh(self.pool(x[:, 0])))


class Conv1D(nn.Module):
    """GPT-2's dense layer: the weight is stored [in, out]."""

    def __init__(self, i, o):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(i, o)), nn.Parameter(torch.zeros(o))

    def forward(self, x):
        return torch.addmm(self.bias, x.flatten(0, 1), self.weight).unflatten(0, x.shape[:2])


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.attn = nn.ModuleDict({"c_attn": Conv1D(width, 3 * width), "c_proj": Conv1D(width, width)})
        self.mlp = nn.ModuleDict({"c_fc": Conv1D(width, 4 * width), "c_proj": Conv1D(4 * width, width)})

    def forward(self, x):
        x = x + self.attn["c_proj"](attend(*self.attn["c_attn"](self.ln_1(x)).chunk(3, -1), self.heads, causal=True))
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, width=24, vocabulary=96, positions=24):
        super().__init__()
        self.wte, self.wpe, self.ln_f = (
            nn.Embedding(vocabulary, width),
            nn.Embedding(positions, width),
            nn.LayerNorm(width),
        )
        self.h = nn.Sequential(GptBlock(width, 2), GptBlock(width, 2))

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        return F.linear(self.ln_f(self.h(x)), self.wte.weight)


class Dlrm(nn.Module):
    def __init__(self, dense=8, tables=(50, 30, 20, 40), width=8):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(dense, 16), nn.ReLU(), nn.Linear(16, width), nn.ReLU())
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for rows in tables)
        n = len(tables) + 1
        self.register_buffer("pairs", torch.tensor([i * n + j for i in range(n) for j in range(i)]), persistent=False)
        self.top = nn.Sequential(nn.Linear(width + len(self.pairs), 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        features = torch.stack([x, *(table(sparse[:, i]) for i, table in enumerate(self.tables))], 1)
        pairs = torch.bmm(features, features.transpose(1, 2)).flatten(1).index_select(1, self.pairs)
        return self.top(torch.cat([x, pairs], 1)).squeeze(1)


class Siren(nn.Module):
    def __init__(self, hidden=32, frequency=6.0):
        super().__init__()
        self.frequency, self.head = frequency, nn.Linear(hidden, 1)
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in ((2, hidden), (hidden, hidden), (hidden, hidden)))

    def forward(self, point):
        for layer in self.layers:
            point = torch.sin(self.frequency * layer(point))
        return self.head(point)


# How to build the network of each entry.
NETWORKS = {
    "mlp-digits": lambda: nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)),
    "lenet": lenet,
    "resnet-tiny": ResNet,
    "mobilenetv2-tiny": MobileNetV2,
    "vit-tiny-slim": VisionTransformer,
    "mlp-mixer-tiny": Mixer,
    "unet": UNet,
    "autoencoder-conv": autoencoder,
    "bert-tiny": Bert,
    "gpt2-tiny": Gpt2,
    "dlrm-tiny": Dlrm,
    "siren": Siren,
}

# Applied in order to the names of the ONNX file.
RENAMES = {
    "bert-tiny": [
        ("model.bert.", ""),
        ("model.", ""),
        ("embeddings.word_embeddings", "word"),
        ("embeddings.position_embeddings", "position"),
        ("embeddings.token_type_embeddings", "kind"),
        ("embeddings.LayerNorm", "norm"),
        ("encoder.layer", "layer"),
        ("attention.self.", ""),
        ("attention.output.dense", "out"),
        ("attention.output.LayerNorm", "norm1"),
        ("intermediate.dense", "mlp.fc1"),
        ("output.dense", "mlp.fc2"),
        ("output.LayerNorm", "norm2"),
        ("pooler.dense", "pool"),
        ("classifier", "head"),
    ],
    "gpt2-tiny": [("model.transformer.", "")],
}


def loss_function(spec):
    """`spec` as in `ortc train --loss`; a function of output and label."""
    name, _, options = spec.partition(":")
    if name == "cross_entropy" and options == "axis=-1":
        return lambda output, label: F.cross_entropy(output.flatten(0, -2), label.flatten())
    plain = {
        "cross_entropy": F.cross_entropy,
        "nll": F.nll_loss,
        "mse": F.mse_loss,
        "bce_with_logits": F.binary_cross_entropy_with_logits,
    }
    if options or name not in plain:
        raise ValueError(f"no loss '{spec}' here")
    return plain[name]
