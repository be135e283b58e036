"""Cases of ctc: torch.nn.CTCLoss.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch


def cases(draw):
    lengths = lambda *values: torch.tensor(values)
    x = draw(7, 4, 5).log_softmax(2)
    label = torch.tensor([[1, 2, 3], [2, 2, 1], [4, 0, 0], [0, -7, 99]])  # repeated; elements after a length may be anything
    inputs = {"input_lengths": lengths(7, 5, 3, 6), "target_lengths": lengths(3, 3, 1, 0)}  # one without labels
    loss = torch.nn.CTCLoss
    yield "ctc", "ctc:labels=3", x, label, loss(), inputs
    yield "ctc_sum", "ctc:labels=3,reduction=sum", x, label, loss(reduction="sum"), inputs
    short = {"input_lengths": lengths(7, 3, 1, 2), "target_lengths": lengths(3, 3, 1, 3)}  # 2, 2, 1 needs four frames; more labels than frames
    label = torch.tensor([[1, 2, 3], [2, 2, 1], [4, 0, 0], [1, 2, 3]])
    yield "ctc_zero_infinity", "ctc:labels=3,zero_infinity=1", x, label, loss(zero_infinity=True), short
    full = torch.tensor([[0, 1, 3], [1, 1, 0], [3, 0, 1], [0, 0, 0]])
    for blank, label in (4, full), (2, torch.where(full == 1, 4, full)):  # the last class, and one between
        yield (f"ctc_blank_{blank}", f"ctc:blank={blank},labels=3,input_lengths=0,target_lengths=0", x, label,
               lambda x, y, blank=blank: loss(blank)(x, y, torch.full((4,), 7), torch.full((4,), 3)))
    certain = x.clone()
    certain[0, 0], certain[:, 1] = torch.tensor([-700.0, 0.0, -700.0, -800.0, -700.0]), -40.0  # one class, and unlikely all over
    inputs = {"input_lengths": lengths(7, 7, 7, 7), "target_lengths": lengths(3, 3, 3, 3)}
    yield "ctc_certain", "ctc:labels=3", certain, torch.tensor([[1, 2, 3], [2, 2, 1], [4, 1, 4], [3, 3, 3]]), loss(), inputs
    weight = {**inputs, "sample_weight": torch.tensor([1.0, 0.5, 0.0, 2.0], dtype=torch.float64)}
    yield ("ctc_weights", "ctc:labels=3,sample_weight=1", x, torch.tensor([[1, 2, 3], [2, 2, 1], [4, 1, 4], [3, 3, 3]]),
           lambda x, y, n, m, w: (loss(reduction="none")(x, y, n, m) / m * w).sum() / w.sum(), weight)
    one = {"input_lengths": lengths(1), "target_lengths": lengths(1)}
    yield "ctc_one_frame", "ctc", draw(1, 1, 2).log_softmax(2), torch.tensor([[1]]), loss(), one
