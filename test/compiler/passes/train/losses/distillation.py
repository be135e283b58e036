"""Cases of distillation: torch.nn.functional.kl_div of softened probabilities, times the square of the temperature.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch
import torch.nn.functional as F


def cases(draw):
    def make(temperature=1.0, dim=-1):
        def loss(student, teacher):
            target = F.softmax(teacher.detach() / temperature, dim)
            return F.kl_div(F.log_softmax(student / temperature, dim), target, reduction="batchmean") * temperature**2

        return loss

    student, teacher = draw(4, 5), draw(4, 5)
    yield "distillation", "distillation", (student, teacher), None, make()
    yield "distillation_soft", "distillation:temperature=3", (student, teacher), None, make(3.0)
    certain = teacher.clone()
    certain[1] = torch.tensor([900.0, 0.0, 0.0, 0.0, -900.0])  # probabilities of zero
    yield "distillation_certain", "distillation:temperature=0.5", (student, certain), None, make(0.5)
    yield "distillation_images", "distillation:temperature=2,dim=1", (draw(2, 3, 4), draw(2, 3, 4)), None, make(2.0, 1)
