"""Cases of the keys class_weight, pos_weight and sample_weight. PyTorch has no weights of samples: they are factors here, and a mean divides by what
the samples weigh, as PyTorch's does for weights of classes.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import torch

FILES = {"classes": torch.tensor([0.5, 2.0, 0.0, 1.25, 3.0], dtype=torch.float64), "float": torch.tensor([0.5, 2.0, 0.25, 1.25, 3.0]),
         "row": torch.tensor([[2.0], [0.5], [0.0]], dtype=torch.float64)}


def weighted(each, weight, reduction="mean", counts=None):
    """Terms with samples in front."""
    factors = weight.reshape(-1, *[1] * (each.ndim - 1)).expand(each.shape)
    total = (factors * each).sum()
    return total if reduction == "sum" else total / (factors if counts is None else factors * counts).sum()


def cases(draw):
    classes, row = FILES["classes"], FILES["row"]
    x, label, p = draw(4, 5), torch.tensor([1, -100, 4, 2]), draw(4, 5).softmax(1)
    entropy = torch.nn.CrossEntropyLoss
    yield "classes_cross_entropy", "cross_entropy:class_weight=@classes.npy", x, label, entropy(classes)
    yield "classes_float", "cross_entropy:class_weight=@float.npy", x, label, entropy(FILES["float"].double())
    yield ("classes_smoothed", "cross_entropy:label_smoothing=0.2,class_weight=@classes.npy", x, label, entropy(classes, label_smoothing=0.2))
    yield "classes_sum", "cross_entropy:class_weight=@classes.npy,reduction=sum", x, label, entropy(classes, reduction="sum")
    yield ("classes_probabilities", "cross_entropy:class_weight=@classes.npy,probabilities=1,label_smoothing=0.1", x, p,
           entropy(classes, label_smoothing=0.1))
    images, places = draw(2, 5, 3), torch.tensor([[0, 1, 2], [4, -100, 3]])
    yield "classes_places", "cross_entropy:class_weight=@classes.npy", images, places, entropy(classes)
    yield "classes_nll", "nll:class_weight=@classes.npy", x.log_softmax(1), label, torch.nn.NLLLoss(classes)
    logits, y = draw(2, 3, 5), (draw(2, 3, 5) > 0).double()
    logits[0, 0] = torch.tensor([0.0, 40.0, -40.0, 700.0, -700.0])
    for name, factors in ("classes", classes), ("row", row):
        yield f"positives_{name}", f"bce_with_logits:pos_weight=@{name}.npy", logits, y, torch.nn.BCEWithLogitsLoss(pos_weight=factors)
    yield ("positives_sum", "bce_with_logits:pos_weight=@classes.npy,reduction=sum", logits, y,
           torch.nn.BCEWithLogitsLoss(pos_weight=classes, reduction="sum"))

    weight = {"sample_weight": torch.tensor([1.5, 2.0, 0.0, 0.25], dtype=torch.float64)}
    target = draw(4, 5)
    for reduction in ("mean", "sum"):
        yield (f"samples_mse_{reduction}", f"mse:sample_weight=1,reduction={reduction}", x, target,
               lambda x, y, w, r=reduction: weighted((x - y) ** 2, w, r), weight)
    none = lambda **keys: torch.nn.CrossEntropyLoss(reduction="none", **keys)
    yield ("samples_cross_entropy", "cross_entropy:sample_weight=1", x, label,
           lambda x, y, w: weighted(none()(x, y), w, counts=y != -100), weight)
    yield ("samples_classes", "cross_entropy:sample_weight=1,class_weight=@classes.npy", x, label,
           lambda x, y, w: weighted(none(weight=classes)(x, y), w, counts=torch.where(y != -100, classes[y.clamp(0)], 0)), weight)
    yield ("samples_places", "cross_entropy:sample_weight=1", images, places,
           lambda x, y, w: weighted(none()(x, y), w, counts=y != -100), {"sample_weight": weight["sample_weight"][:2]})
    yield ("samples_probabilities", "cross_entropy:sample_weight=1,probabilities=1", x, p, lambda x, y, w: weighted(none()(x, y), w), weight)
    yield ("samples_kl_div", "kl_div:sample_weight=1", x.log_softmax(1), p,
           lambda x, y, w: (torch.nn.functional.kl_div(x, y, reduction="none").sum(1) * w).sum() / w.sum(), weight)
    same = {"sample_weight": torch.full((4,), 3.0, dtype=torch.float64)}
    yield "samples_equal", "huber:sample_weight=1", x, target, lambda x, y, w: torch.nn.HuberLoss()(x, y), same

    margin = torch.nn.MultiMarginLoss
    y = torch.tensor([1, 3, 4, 2])
    yield "classes_multi_margin", "multi_margin:class_weight=@classes.npy", x, y, margin(weight=classes)
    yield "classes_multi_margin_squares", "multi_margin:p=2,class_weight=@classes.npy,reduction=sum", x, y, margin(p=2, weight=classes, reduction="sum")
    yield "classes_multilabel", "multilabel_soft_margin:class_weight=@classes.npy", x, (p > 0.2).double(), torch.nn.MultiLabelSoftMarginLoss(classes)

    pair, sign = (draw(4, 5), draw(4, 5)), torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    near, far = torch.nn.CosineEmbeddingLoss(reduction="none"), torch.nn.TripletMarginLoss(reduction="none")
    yield "samples_cosine_embedding", "cosine_embedding:sample_weight=1", pair, sign, lambda x, y, s, w: weighted(near(x, y, s), w), weight
    ranking = torch.nn.MarginRankingLoss(margin=0.2, reduction="none")
    yield ("samples_margin_ranking", "margin_ranking:margin=0.2,sample_weight=1", pair, target.sign(),
           lambda x, y, s, w: weighted(ranking(x, y, s), w), weight)
    yield ("samples_triplet_margin", "triplet_margin:sample_weight=1", (*pair, draw(4, 5)), None,
           lambda x, y, z, w: weighted(far(x, y, z), w), weight)
    yield ("samples_triplet_one", "triplet_margin:sample_weight=1", (pair[0][0], pair[1][0], pair[0][1]), None,
           lambda x, y, z, w: w * far(x, y, z) / w, {"sample_weight": torch.tensor(2.5, dtype=torch.float64)})
    nll = torch.nn.functional.gaussian_nll_loss
    yield ("samples_gaussian_nll", "gaussian_nll:sample_weight=1", (pair[0], pair[1].abs() + 0.1), target,
           lambda m, v, y, w: weighted(nll(m, y, v, reduction="none"), w), weight)
    kl_div = torch.nn.KLDivLoss(reduction="none")
    yield ("samples_distillation", "distillation:sample_weight=1,temperature=2", pair, None,
           lambda s, t, w: 4 * (kl_div((s / 2).log_softmax(-1), (t.detach() / 2).softmax(-1)).sum(1) * w).sum() / w.sum(), weight)
