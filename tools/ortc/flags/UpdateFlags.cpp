// Flags that say how parameters are updated, and what steps take and give.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/flags/Flags.h"

namespace ortc::tool {

const FlagGroup &updateFlags() {
  static const FlagGroup group = {
      "Update",
      {
          {.name = "optimizer",
           .value = "SPEC",
           .type = FlagType::Spec,
           .sentence = "Choose the optimizer; default: sgd",
           .text = R"(SPEC is `NAME[:key=value,...]` of an optimizer in the [table](#optimizers), or
`onnx:FILE[:key=value,...]` ([an ONNX function](#onnx-functions)).)"},
          {.name = "group",
           .value = "REGEX:KEY=VALUE,...",
           .type = FlagType::Pattern,
           .repeats = true,
           .sentence = "Make a parameter group with its own settings",
           .text =
               R"(Its keys are those of the optimizer, `lr_scale=X` (a factor of lr), or `optimizer=NAME` (another optimizer,
with its own defaults; also `optimizer=onnx:FILE`). Numbers are hyper-parameters `groupN.KEY`, N from 0 in the order of
flags; keys that the group does not give are those of `--optimizer`. Repeatable, the first match wins. At least one tensor
must have the rate of `--optimizer`.)"},
          {.name = "no-decay",
           .value = "biases,norms",
           .type = FlagType::Text,
           .sentence = "Exclude biases, norm scales or both from weight decay",
           .text =
               R"(A group may still give them a `weight_decay`. Tensors with at most one dimension above 1 count:
those that training adds to something are biases, those that it multiplies something with, element by element, are norms
(scales of norms, also of layers, and slopes); an operand of a product or of Gather is neither. The biases of norms are biases.)"},
          {.name = "clip-norm",
           .value = "X",
           .type = FlagType::Number,
           .sentence = "Clip the norm of all gradients together",
           .text =
               R"(All gradients are kept until the last one is there; the refusal of a `--memory-budget` says how much they
take.)"},
          {.name = "clip-value",
           .value = "X",
           .type = FlagType::Number,
           .sentence = "Clip every element of a gradient"},
          {.name = "schedule",
           .value = "lr=SPEC",
           .type = FlagType::Assignment,
           .sentence = "Compute the learning rate in the step, by a schedule",
           .text =
               R"(The step computes its rate from the number of updates done: `KIND[:key=value,...]` of the table in
[Learning rates](run.md#learning-rates), with a `total` where the kind has one. The base is the scalar `lr`, which a host
may set; a loop of your own has nothing else to do. An update of `--accumulate` counts once, and so does one that
`--loss-scale` skips. Default: the rate is `lr` ([decision 0052](../decisions/0052-what-a-step-does-beside.md)).)"},
          {.name = "accumulate",
           .value = "N[:by=tokens]",
           .type = FlagType::Count,
           .sentence = "Update once after N gradient steps, by their mean",
           .text =
               R"(`by=steps`: the mean of their gradients, as a loss divided by N gives it. `by=tokens`: the mean over all
labels of the N steps that are not ignored, as the sum of their losses divided by the number of them gives it, however
they are spread over the steps; for one loss of class indices, without `reduction`, `class_weight` or `sample_weight`. The
number of labels is the output `loss.count` of a step, and that of the steps so far the state `accumulated.count`. A step
whose labels are all ignored adds nothing, and its loss is 0. Where that is so of all N, the last one has the mean of
nothing, as in PyTorch: its loss and the gradients are NaN, and `--stop-on-nan` ends the run before the update. The sums
are state of the artifact, clipping and the optimizer see the mean, running statistics move in every step; default: 1.)",
           .syntax = "N:by=steps"},
          {.name = "ema",
           .value = "decay=D,...",
           .type = FlagType::Settings,
           .sentence = "Keep an exponential moving average of the parameters",
           .text =
               R"(It is the state `PARAMETER.ema`, which moves by `(p - ema) (1 - decay)` after every update and is the
parameter after the first one, as in `torch.optim.swa_utils.get_ema_multi_avg_fn`. `warmup=1`: the decay after `n` updates
is at most `1 - (1 + n / gamma)^-power`, as in `timm.utils.ModelEmaV3`. `ema.n_averaged` counts the updates in it, the
decay is the scalar `ema_decay`. `ortc eval`, `predict` and `export` take the averages with `--weights ema`. Running
statistics are those of the training. Averages are float32 (float64) of trained tensors, and part of the persistent memory
that `ortc plan` shows. An update that `--loss-scale` skips moves none. Not with `--sparse` or `--loss none`.)",
           .syntax = "decay=0.999,warmup=0,gamma=1,power=0.6667"},
          {.name = "swa",
           .value = "start=N,every=N",
           .type = FlagType::Settings,
           .sentence = "Keep the mean of the parameters over the updates",
           .text =
               R"(It is the state `PARAMETER.swa`, as in `torch.optim.swa_utils.AveragedModel`: the first `start` updates take
no part, of the others one in `every`, the first of them included. Statistics of batch normalisation are those of the
training: `update_bn` has no counterpart.)",
           .syntax = "start=0,every=1"},
          {.name = "regularize",
           .value = "REGEX:KEY=VALUE,...",
           .type = FlagType::Pattern,
           .repeats = true,
           .sentence = "Penalize these weights, or limit their norms",
           .text =
               R"(For parameters whose whole names match: `l1 sum abs(w) + l2 sum w^2` is added to the loss that is
differentiated, as in Keras' `L1L2` (a decay of `2 l2`), not to the loss that a step gives; with `--accumulate` once an
update. `max_norm`: after every update each slice with one index along `axis` has at most this norm, as with Keras'
`MaxNorm`: `w min(norm, max_norm) / (norm + 1e-7)`. Exporters write the weights of Linear and Conv with a unit for each
index of axis 0, those of a MatMul with one of axis 1. The numbers are scalars `regularizeN.l1`, ...; those that are 0 are
left out. Not with `--sparse`; `max_norm` not with channels. Repeatable, the first match wins.)",
           .syntax = "REGEX:l1=0,l2=0,max_norm=0,axis=0"},
          {.name = "mask",
           .value = "FILE",
           .type = FlagType::File,
           .sentence = "Keep weights at zero where this file has zeros",
           .text =
               R"(npz or safetensors with arrays of zeros and ones, of any type, by the names and of the shapes of
parameters: where a mask has 0, the weight is 0 from the beginning, has no gradient, and stays 0, and its state, too. A
checkpoint with other numbers there has zeros after the first update. A mask takes a byte of the constants for each
element. Not with `--sparse` or channels.)"},
          {.name = "loss-scale",
           .value = "dynamic|N",
           .type = FlagType::Scale,
           .words = "dynamic",
           .sentence = "Scale the loss for float16, and skip overflowing steps",
           .text =
               R"(The loss is multiplied by a scale before differentiation, and gradients are divided by it where they are
whole: float16 has no numbers below 6e-8. A step whose gradients are not all finite updates neither parameters nor the
optimizer's state. Definition and defaults of `torch.amp.GradScaler`, or a scale that stays N. The scale is the state
`loss_scale`, its counters are `loss_scale.growth_tracker` and `loss_scale.skipped`; all gradients are kept until the last
one is checked, which the plan shows; default: none.)",
           .syntax = "dynamic[:init=65536,growth=2,backoff=0.5,interval=2000]|N"},
          {.name = "teacher",
           .value = "FILE.onnx:output=NAME",
           .type = FlagType::Spec,
           .sentence = "Learn from the logits of a frozen model, too",
           .text =
               R"(The output of the loss also learns the logits NAME of the teacher: the loss is (1 - `weight`) times that
of `--loss` plus `weight` times `distillation` of both outputs. Both models become one graph: the inputs of the teacher
are those of the model by name, with the same types and shapes; its weights are constants of the artifact; its nodes
compute as in inference, whatever it was exported for. `predict` keeps nothing of it, and `ortc export` writes only the
model. `--loss LOSS@OUTPUT` chooses the output that learns; a model with one output needs no name. Metrics and evaluation
report each loss separately, as `loss.label` (or the name that it has) and `loss.teacher`. Both models need the same
opset. Functions in the teacher's file are refused.)",
           .syntax = "FILE.onnx:output=NAME,temperature=1,weight=0.5"},
          {.name = "sparse",
           .value = "REGEX[:lazy=1]",
           .type = FlagType::Pattern,
           .repeats = true,
           .sentence = "Update only the rows of these tables that a step has read",
           .text =
               R"(Only Gather along their first axis may read tables whose whole names match. A step updates the rows that it
has read, and their state, and nothing of the plan is as large as the table, unless the model computes with the whole
table before Gather does. A constant index is no Gather. These rows get what a dense update gives them; `adam` and `adamw`
are `torch.optim.SparseAdam` there, whose averages wait for a row's next gradient and which adds its epsilon before the
correction of the bias. A weight decay, the momentum of `sgd` and the averages of `rmsprop`, which would move other rows,
too, are refused, unless `lazy=1`: then they wait as well. Not with `--gradients`, `--accumulate` or
`--parameters bf16:stochastic`. Repeatable, the first match wins ([decision 0034](../decisions/0034-sparse-tables.md)).)",
           .syntax = "REGEX:lazy=0"},
      }};
  return group;
}

const FlagGroup &entryFlags() {
  static const FlagGroup group = {
      "Entries",
      {
          {.name = "step-outputs",
           .value = "NAME,...",
           .type = FlagType::Text,
           .sentence = "Add outputs to the step: grad_norm, param_norm",
           .text =
               R"(Numbers, float64 without dimensions, which `ortc run` writes into the metrics: the norm of all gradients
together before they are clipped, penalties of `--regularize` among them, and the norm of all that is trained before the
update. A step that ends without an update gives none. `param_norm` not with `--sparse`.)",
           .syntax = "grad_norm,param_norm"},
          {.name = "train-outputs",
           .value = "OUTPUT",
           .type = FlagType::Text,
           .repeats = true,
           .sentence = "Add this output of the model to those of the step",
           .text =
               R"(The training step (and those of `--accumulate` and `--gradients`) gives it as it is before the update, in
training mode. Repeatable.)"},
          {.name = "gradients",
           .sentence = "Add the entries that leave gradients readable",
           .text = "`ortc gradients` and hosts with a loop of their own need them."},
          {.name = "cotangents",
           .value = "OUTPUT",
           .type = FlagType::Text,
           .repeats = true,
           .sentence = "Take this output's gradient from the host, not from a loss",
           .text =
               R"(Adds the entries `forward` and `backward` for hosts that compute a loss, or that are a framework. `forward`
runs in train mode, writes the outputs and moves running statistics; `backward` takes the gradient of this output as the
input `OUTPUT.cotangent` and leaves gradients of the parameters. An output that is not named is a constant to `backward`:
no zeros are computed. With `--optimizer` there is an `update` entry, too. One plan is cut in two: values that `forward`
keeps lie where `backward` reads them. Not with `--loss`, `--loss-input`, `--gradients`, `--accumulate`, `--loss-scale`,
`--head-chunk`, `--sparse` or channels; `--clip-norm`, `--clip-value` and `--group` need `--optimizer` there. Repeatable
([decision 0044](../decisions/0044-forward-and-backward.md)).)"},
          {.name = "input-gradients",
           .value = "INPUT",
           .type = FlagType::Text,
           .repeats = true,
           .sentence = "Add the gradient of this input to the outputs of backward",
           .text =
               R"(It is the output `INPUT.gradient`: zeros where no gradient reaches it. Nothing else need be trained then.
Needs `--cotangents`. Repeatable.)"},
          {.name = "bind",
           .value = "parameters,gradients",
           .type = FlagType::Text,
           .sentence = "Keep parameters, gradients or both in memory of the host",
           .text =
               R"(Parameters include running statistics. The host passes their places with `ortc_bind`, aligned to their
elements, and no step copies them. They are dense; with `strided` they have the layouts that kernels read best, of
convolutions, whose strides are those of `ortc_entry_value`. Bound parameters are inputs with the flag
`ORTC_TENSOR_BOUND`, which update entries write in place; they are in no checkpoint. Gradients are outputs
`PARAMETER.gradient`, in the order in which they are final: the values of an entry in this order can be one buffer, and a
trace hook sees each (`ORTC_TRACE_READY`). Gradients need `--gradients` or `--cotangents`. `ortc run` and the commands
after it refuse artifacts with bound parameters, which they have no memory for. Not with `--emit`, nor for GPUs.)",
           .syntax = "parameters,gradients,strided"},
      }};
  return group;
}

} // namespace ortc::tool
