"""The performance set by name, smallest first, and what a run has to know of a model.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

NAMES = [
    "tiny-mlp",
    "mlp",
    "lenet",
    "ds-cnn",
    "resnet8-cifar",
    "dlrm-small",
    "lstm-chars",
    "autoencoder-conv",
    "bert-mini",
    "unet-small",
    "vit-tiny-patch16-224",
    "mobilenetv2-224",
    "efficientnet-b0-224",
    "resnet18-224",
    "bert-base",
    "gpt2-small",
]
# PyTorch runs these in both memory layouts, and the faster counts.
CONVOLUTIONAL = {
    "lenet",
    "ds-cnn",
    "resnet8-cifar",
    "autoencoder-conv",
    "unet-small",
    "mobilenetv2-224",
    "efficientnet-b0-224",
    "resnet18-224",
}
# Losses of these drift apart after the first update (table.py).
BATCH_NORM = {
    "ds-cnn",
    "resnet8-cifar",
    "unet-small",
    "mobilenetv2-224",
    "efficientnet-b0-224",
    "resnet18-224",
}
# What nobody has written for JAX is not timed there.
IN_JAX = {
    "tiny-mlp",
    "mlp",
    "lenet",
    "bert-mini",
    "vit-tiny-patch16-224",
    "resnet18-224",
    "bert-base",
    "gpt2-small",
}
