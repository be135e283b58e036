"""AdamW and Lion in the type of their parameters, whose averages are bytes of bitsandbytes where a tensor has 4,096 values or more.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

bitsandbytes' own optimizers round to float32, and on a CPU shares of the largest to a grid; of float64 tensors its quantize_blockwise
gives the nearest code.
"""
import bitsandbytes.functional as bnb
import torch

MAPS = {is_signed: bnb.create_dynamic_map(is_signed) for is_signed in (True, False)}


class Average:
    def __init__(self, value, is_signed):
        self.value, self.map = torch.zeros_like(value), MAPS[is_signed]
        self.is_whole = value.numel() < 4096
        self.codes, self.largest = torch.zeros(value.numel(), dtype=torch.uint8), torch.zeros(-(-value.numel() // 256))

    def load(self):
        if self.is_whole:
            return self.value
        wide = torch.ops.bitsandbytes.dequantize_blockwise(self.codes, self.largest, self.map, 256, torch.float32)
        return wide.reshape(self.value.shape).to(self.value.dtype)

    def store(self, value):
        if self.is_whole:
            self.value = value
        else:
            self.codes, self.largest = torch.ops.bitsandbytes.quantize_blockwise(value.float().double().flatten(), self.map, 256)


class ByteOptimizer(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for value in group["params"]:
                state = self.state[value]
                if not state:
                    state.update({"t": 0, **{key: Average(value, is_signed) for key, is_signed in self.AVERAGES.items()}})
                state["t"] += 1
                value.mul_(1 - group["lr"] * group["weight_decay"])
                self.move(value, value.grad, state, **group)


class AdamW8bit(ByteOptimizer):
    AVERAGES = {"m": True, "v": False}

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    def move(self, value, grad, state, lr, betas, eps, **_):
        m = state["m"].load().lerp(grad, 1 - betas[0])
        v = state["v"].load() * betas[1] + grad * grad * (1 - betas[1])
        state["m"].store(m)
        state["v"].store(v)
        corrections = [1 - beta ** state["t"] for beta in betas]
        value.addcdiv_(m, v.sqrt() / corrections[1] ** 0.5 + eps, value=-lr / corrections[0])


class Lion8bit(ByteOptimizer):
    AVERAGES = {"m": True}

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    def move(self, value, grad, state, lr, betas, **_):
        m = state["m"].load()
        state["m"].store(m * betas[1] + grad * (1 - betas[1]))
        value.add_((m * betas[0] + grad * (1 - betas[0])).sign(), alpha=-lr)
