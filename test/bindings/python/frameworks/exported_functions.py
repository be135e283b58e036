"""Which functions PyTorch's two exporters have no file for, and which they write as something else, as docs/exporters.md lists.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""

from __future__ import annotations


def _names(text: str) -> set[str]:
    return set(text.split("; "))


UNEXPORTED: dict[str, set[str]] = {
    "dynamo": _names(
        "amax of all; amin of all; argsort gather; cdist; cdist 1; cdist batch; copysign; corrcoef; cov; cross_entropy "
        "probabilities; ctc_loss; cummax; cummax other axis; cummin; cummin other axis; cumprod; diagonal_scatter; digamma; "
        "erfinv; fmax; fmin; gaussian_nll_loss; gaussian_nll_loss full; hypot; i0; index_reduce amax; index_reduce amin; "
        "index_reduce mean; index_reduce prod; kthvalue; kthvalue 3; lgamma; median; median of all; median other axis; mode; "
        "mode other axis; nanmedian; nanmedian of all; nanmedian other axis; pdist; polygamma; positive; rrelu eval; "
        "scatter_reduce mean; scatter_reduce mean fresh; searchsorted; sort stable; special.xlog1py"
    ),
    "torchscript": _names(
        "acosh; addcdiv; addmv; addr; argsort gather; asinh; atanh; bilinear; binary_cross_entropy; binary_cross_entropy "
        "none; binary_cross_entropy weight; block_diag; chain_matmul; channel_shuffle; combinations; copysign; corrcoef; "
        "cosh; cosine_embedding_loss; count_nonzero; cov; cross_entropy probabilities; cross_entropy smoothed; ctc_loss; "
        "cummax; cummax other axis; cummin; cummin other axis; cumprod; cumulative_trapezoid; deg2rad; diag; diag_embed; "
        "diagonal_scatter; diff; digamma; dist; dist 1; erfc; erfinv; exp2; expm1; fft; float_power; fmax; fmin; frac; "
        "gradient; heaviside; hinge_embedding_loss; huber_loss 2; huber_loss mean; huber_loss none; huber_loss sum; hypot; "
        "i0; index_reduce amax; index_reduce amin; index_reduce mean; index_reduce prod; inner; interpolate nearest-exact; "
        "kron; kthvalue; kthvalue 3; l1_loss mean; l1_loss none; l1_loss sum; ldexp; lgamma; logaddexp; logaddexp2; "
        "logcumsumexp; margin_ranking_loss; max_unpool2d; median; median of all; median other axis; mode; mode other axis; "
        "msort; multi_margin_loss; multi_margin_loss of one; multi_margin_loss squared; multilabel_margin_loss; nanmean; "
        "nanmean of all; nanmedian; nanmedian of all; nanmedian other axis; nansum; nansum of all; pdist; poisson_nll_loss; "
        "poisson_nll_loss full; poisson_nll_loss rates; polar; polygamma; positive; quantile; quantiles; rad2deg; renorm; "
        "rms_norm; rms_norm eps; rot90; scatter_reduce amax fresh; scatter_reduce amin fresh; scatter_reduce mean; "
        "scatter_reduce mean fresh; scatter_reduce prod fresh; scatter_reduce sum fresh; searchsorted; select_scatter; sgn; "
        "signbit; sinc; sinh; slice_scatter; smooth_l1_loss 0; smooth_l1_loss mean; smooth_l1_loss none; smooth_l1_loss sum; "
        "soft_margin_loss; sort stable; special.entr; special.log_ndtr; special.ndtr; special.xlog1py; take_along_dim; "
        "threshold; trace; trapezoid; triplet_margin_loss; triplet_margin_loss swap; trunc; vdot; xlogy"
    ),
}
"""Or refused by the compiler, because the file is malformed or computes something else."""

OTHERWISE: dict[str, set[str]] = {
    "dynamo": _names(
        "adaptive_max_pool2d 1; div floor; floor_divide; remainder; scatter_reduce amax fresh; scatter_reduce amin fresh; "
        "signbit; special.entr"
    ),
    "torchscript": _names(
        "attention bias; cdist 1; clamp by constants; detach; div floor; embedding padding; embedding padding from the end; "
        "floor_divide; floor_divide 2; gaussian_nll_loss; index_add; max; max keepdim; max of infinities; max other axis; max "
        "pair; min; min of infinities; min other axis; pairwise_distance; pairwise_distance 1; pairwise_distance keepdim; "
        "pairwise_distance vectors; remainder; softplus beta; straight through; triplet_margin_with_distance"
    ),
}
"""The file has other numbers or another gradient somewhere."""
