// Building a training program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include "mlir/Pass/PassBase.td"

def BuildLossPass : Pass<"ortc-build-loss", "::mlir::ModuleOp"> {
  let summary = "write the losses of graph outputs and labels";
  let description = [{
    Before: `@forward_train_B` and `@forward_eval_B` for each binding B.
    After: `@loss_B` takes the output (`train.output`) and, where the loss has one, the label (`train.input`), and
    returns the scalar loss (`train.loss`). Of several losses it takes all outputs and labels, multiplies each by a
    hyper-parameter, and returns their sum and each by itself (`train.output = "loss.NAME"`). The forward functions are
    left alone; loss `none` adds nothing.

    ```mlir
    func.func private @loss_0(%x: tensor<32x10xf32> {train.output = "logits"},
                              %label: tensor<32xi64> {train.input = "label"}) -> (tensor<f32> {train.loss})
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect", "::ortc::train::TrainDialect", "::mlir::func::FuncDialect",
      "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
  let options = [
    Option<"loss", "loss", "std::string", "\"cross_entropy\"", "what --loss takes, e.g. smooth_l1:beta=0.5; "
        "several with a semicolon between">,
    Option<"lossInput", "loss-input", "std::string", "", "graph output that feeds the loss; empty: the only or "
        "first float one">
  ];
}

def DifferentiatePass : Pass<"ortc-differentiate", "::mlir::ModuleOp"> {
  let summary = "differentiate the loss for every trained parameter";
  let description = [{
    Before: `@forward_train_B` and `@loss_B`.
    After: `@backward_B`, which contains both and the gradients: it returns the loss, the updates of state that the
    forward part makes, and one `train.gradient` per parameter. A parameter that no gradient reaches in any binding
    becomes a constant, with the reason in its train.tensor. Forward and loss are left alone.
    Where a product with a matrix gives many logits, and nothing but a sum over all their rows is made of them, the
    product, the sum and its gradients are a loop over chunks of rows (compiler/passes/train/ChunkHead.h).
  }];
  let dependentDialects = ["::ortc::nn::NnDialect", "::ortc::train::TrainDialect", "::mlir::func::FuncDialect",
      "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
  let options = [
    Option<"headChunk", "head-chunk", "int64_t", "-1", "rows of logits that exist at a time; 0: all; "
        "-1: by their size">,
    Option<"mutateOperation", "mutate-operation", "std::string", "", "for tests: name of an operation whose "
        "gradient is scaled">,
    Option<"mutateOperand", "mutate-operand", "unsigned", "0", "for tests: the operand whose gradient is scaled">,
    Option<"mutateFactor", "mutate-factor", "double", "1.01", "for tests: the factor">,
    Option<"remarkSaved", "remark-saved", "bool", "false", "for tests: a remark at each operation that names the "
        "operands and results its gradient reads">
  ];
}

def NarrowParametersPass : Pass<"ortc-narrow-parameters", "::mlir::ModuleOp"> {
  let summary = "store trained parameters of f32 as bf16";
  let description = [{
    Before: functions that take parameters of f32.
    After: every parameter is a train.tensor of bf16 with its initial value rounded to the nearest. Functions take it as
    it is stored and extend it; what they compute, gradients among it, is f32 as before. A parameter of another type
    is an error. Constants and state are left alone.

    ```mlir
    func.func private @f(%w: tensor<2x3xf32> {train.tensor = @w})
    // becomes
    func.func private @f(%w: tensor<2x3xbf16> {train.tensor = @w}) {
      %wide = arith.extf %w : tensor<2x3xbf16> to tensor<2x3xf32>
    ```
  }];
  let dependentDialects = ["::ortc::train::TrainDialect", "::mlir::func::FuncDialect", "::mlir::arith::ArithDialect"];
}

def BuildUpdatePass : Pass<"ortc-build-update", "::mlir::ModuleOp"> {
  let summary = "write the optimizer's update of every parameter";
  let description = [{
    Before: parameters are those that `@backward_B` has gradients of.
    After: `@update` takes gradients (`train.gradient`), parameters, state and hyper-parameters, and returns the new
    parameters and state. State and hyper-parameters are declared as train.tensors; state has its parameter's layout.
    A momentum or weight decay of zero compiles nothing. With accumulate=N above 1, `@accumulation` adds a
    step's gradients, each divided by N, to state that it declares. Parameters of bf16 are updated in f32, with
    gradients and state of f32; their new values are rounded to the nearest, or (`rounding-seed`) at random.
    With `flush-state`, state below the smallest normal number becomes zero: averages that fade out end there.
    Where an optimizer trains at another point than the parameter (`ahead`), `@backward_B` reads that point, too.
  }];
  let dependentDialects = ["::ortc::nn::NnDialect", "::ortc::train::TrainDialect", "::mlir::func::FuncDialect",
      "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"sgd\"", "what --optimizer takes, e.g. adamw:lr=1e-3">,
    Option<"groups", "groups", "std::string", "", "what --group takes, several separated by semicolons">,
    Option<"noDecay", "no-decay", "std::string", "", "what --no-decay takes">,
    Option<"clipNorm", "clip-norm", "double", "0", "largest norm of all gradients together; 0: no limit">,
    Option<"clipValue", "clip-value", "double", "0", "largest magnitude of a gradient's element; 0: no limit">,
    Option<"accumulate", "accumulate", "unsigned", "1", "gradient steps before an update, at least 1">,
    Option<"roundingSeed", "rounding-seed", "int64_t", "-1", "bf16 parameters are rounded at random, with this seed; "
        "-1: to the nearest">,
    Option<"flushState", "flush-state", "bool", "false", "state below the smallest normal number becomes zero">,
    Option<"schedule", "schedule", "std::string", "", "what --schedule takes">,
    Option<"ema", "ema", "std::string", "", "what --ema takes">,
    Option<"swa", "swa", "std::string", "", "what --swa takes">,
    Option<"regularize", "regularize", "std::string", "", "what --regularize takes, several separated by semicolons">,
    Option<"stepOutputs", "step-outputs", "std::string", "", "what --step-outputs takes">
  ];
}

def UpdateRowsPass : Pass<"ortc-update-rows", "::mlir::ModuleOp"> {
  let summary = "update the gathered rows of sparse tables";
  let description = [{
    Before: a training entry computes new values of a parameter marked `train.sparse`, and of its state, elementwise
    from a scatter_add of gradients.
    After: the same is computed of the rows that the scatter_add's indices name, each once, and an nn.scatter writes
    them into the table. Sums of squares and largest magnitudes of the gradient are of those rows, too.
    Fails where the gradient of such a table is made by anything else.

    ```mlir
    %g = nn.scatter_add %i, %u axis = 0 : tensor<3xi32>, tensor<3x4xf32> -> tensor<9x4xf32>
    %1 = arith.subf %w, %g : tensor<9x4xf32>
    ```
    becomes, with the distinct indices `%rows`, the part of the sums `%slots` that each index belongs to, and 9 in
    place of rows that there are not,
    ```mlir
    %g = nn.scatter_add %slots, %u axis = 0 : tensor<3xi32>, tensor<3x4xf32> -> tensor<3x4xf32>
    %old = nn.gather %w, %safe axis = 0 : tensor<9x4xf32>, tensor<3xi32> -> tensor<3x4xf32>
    %new = arith.subf %old, %g : tensor<3x4xf32>
    %1 = nn.scatter %w, %rows, %new : tensor<9x4xf32>, tensor<3xi32>, tensor<3x4xf32>
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect", "::ortc::train::TrainDialect", "::mlir::func::FuncDialect",
      "::mlir::arith::ArithDialect"];
}

def ComposeEntriesPass : Pass<"ortc-compose-entries", "::mlir::ModuleOp"> {
  let summary = "inline the parts into the entries of the artifact";
  let description = [{
    Before: the parts that the passes above made.
    After: only entries, public functions with `train.entry` and `train.binding`: `train` (backward then
    update), `accumulate` where there is such a part (the same without update), `eval` (forward in eval mode,
    and loss), `predict` (the same without loss and label), and if asked for `gradients` and `update`, which
    cut `train` in two. New values of state that the forward part makes cross the cut as `train.gradient` of
    that state, so that `gradients` changes nothing. Arguments that nobody uses are dropped.
  }];
  let dependentDialects = ["::ortc::train::TrainDialect", "::mlir::func::FuncDialect"];
  let options = [Option<"gradients", "gradients", "bool", "false", "also the entries gradients and update">];
}
