// From kernels to a placed program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include "mlir/Pass/PassBase.td"

def AssignRegionsPass : Pass<"ortc-assign-regions", "::mlir::ModuleOp"> {
  let summary = "give every train.tensor its region and offset";
  let description = [{
    Before: tensors are declared. After: constants have a place in the constants region, everything else in the
    persistent region: parameters, then state and scalars with an initial value, then what starts as zero (so that the
    artifact does not store it). Places are the attributes `plan.region` and `plan.offset`; the regions' sizes are
    `plan.constant_bytes` and `plan.persistent_bytes` of the module, `plan.stored_bytes` what an artifact stores of the
    latter. The order is that of the module, so that all entries and targets agree.

    ```mlir
    train.tensor @w parameter "w" : tensor<4xf32>
    // becomes
    train.tensor @w parameter "w" {plan.offset = 0 : i64, plan.region = #plan.region<persistent>} : tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::ortc::plan::PlanDialect"];
}

def OutlineKernelsPass : Pass<"ortc-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "turn kernels into functions, equal ones into one";
  let description = [{
    Before: entry functions hold plan.kernel operations. After: each is a call of a private function
    marked `plan.kind`; kernels with the same body, types and in-place pairs share one function.

    ```mlir
    %y = plan.kernel loop (%x) : (tensor<4xf32>) -> tensor<4xf32> { ... }
    // becomes
    %y = func.call @kernel_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
    func.func private @kernel_0(%a: tensor<4xf32>)
        -> tensor<4xf32> attributes {plan.kind = #plan.kernel_kind<loop>} { ... }
    ```
  }];
  let dependentDialects = ["::ortc::plan::PlanDialect", "::mlir::func::FuncDialect"];
}

def JoinUpdatesPass : Pass<"ortc-join-updates", "::mlir::ModuleOp"> {
  let summary = "join updates of tensors to kernels of many";
  let description = [{
    Before: as for ortc-place-buffers. After: calls of loops that give new values of tensors, which nothing else in the
    entry reads, are calls of kernels of kind `joined`, each with at most `buffers` buffers and at most `bytes` that
    wait for its last call, of what it reads beside parameters and state. A call stays alone if it reads more, or if its
    loop sums up more than a few elements a point; with `shares-rows`, those that sum over leading dimensions and share
    out their rows alike are kernels of their own.

    ```mlir
    %v = call @kernel_0(%w, %g) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %c = call @kernel_1(%b, %h) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    // becomes
    %v, %c = call @kernel_joined_0(%w, %g, %b, %h) : ...
    ```
  }];
  let dependentDialects = ["::ortc::plan::PlanDialect", "::mlir::func::FuncDialect"];
  let options = [
    Option<"buffers", "buffers", "size_t", "480", "most buffers of a kernel">,
    Option<"bytes", "bytes", "int64_t", "25165824", "most bytes that wait for the last call of a kernel">,
    Option<"sharesRows", "shares-rows", "bool", "false",
           "whether blocks share out rows: then updates that sum them up join, too">
  ];
}

def JoinSumsPass : Pass<"ortc-join-sums", "::mlir::ModuleOp"> {
  let summary = "join sums over rows, and kernels of few numbers, to kernels of many";
  let description = [{
    Before: as for ortc-join-updates, which comes later. After: calls of loops that sum over leading dimensions, give
    nothing else and share out their rows alike are one call of a kernel of kind `joined`, and so are calls of loops
    that give few numbers. None of those calls needs a result of another. A call joins others as long as these read at
    most `bytes`, beside what has a place of its own.

    ```mlir
    %s = call @kernel_0(%x) : (tensor<512x64xf32>) -> tensor<64xf32>
    %t = call @kernel_0(%y) : (tensor<512x64xf32>) -> tensor<64xf32>
    // becomes
    %s, %t = call @kernel_joined_0(%x, %y) : ...
    ```
  }];
  let dependentDialects = ["::ortc::plan::PlanDialect", "::mlir::func::FuncDialect"];
  let options = [
    Option<"buffers", "buffers", "size_t", "480", "most buffers of a kernel">,
    Option<"bytes", "bytes", "int64_t", "25165824", "most bytes that wait for the last call of a kernel">
  ];
}

def CutBackwardPass : Pass<"ortc-cut-backward", "::mlir::ModuleOp"> {
  let summary = "cut functions of outputs and gradients into forward and backward";
  let description = [{
    Before: entries `forward_backward` are calls of kernels and reshapes; results that follow from cotangents are marked
    `train.backward`, and no other result does. After: two entries. `forward` gives outputs, new state and what
    `backward`
    needs of it (`train.saved`), which takes cotangents and gives gradients. Inputs, parameters and outputs are read
    again by `backward` where they are; state and scalars are kept as `forward` found them.

    ```mlir
    func.func @forward_backward_0(%x {train.input = "x"}, %c {train.backward, train.input = "y.cotangent"}, %w ...)
        -> (... {train.output = "y"}, ... {train.backward, train.gradient = @w})
    // becomes
    func.func @forward_0(%x {train.input = "x"}, %w ...) -> (... {train.output = "y"}, ... {train.saved = 0 : i64})
    func.func @backward_0(%h {train.saved = 0 : i64}, %c {train.input = "y.cotangent"}) -> (... {train.gradient = @w})
    ```
  }];
  let dependentDialects = ["::ortc::plan::PlanDialect", "::mlir::func::FuncDialect"];
}

def RecomputeStepsPass : Pass<"ortc-recompute-steps", "::mlir::ModuleOp"> {
  let summary = "run steps again so that every entry keeps to a memory budget";
  let description = [{
    Before: as for ortc-place-buffers; functions of kernels say what a call takes (`plan.time`, picoseconds). After: the
    transient bytes of every entry, scratch included, are at most `budget`. Where that takes it, calls whose results are
    cheaper to make again than to keep are repeated, marked `plan.repeated`, and steps are in the order that
    was searched; no simplification may run from here on. `plan.recompute` of an entry has the figures,
    `plan.budget` the budget. Fails with the smallest budget that was found, of the entry that needs most,
    when no such schedule was.
  }];
  let dependentDialects = ["::ortc::plan::PlanDialect", "::mlir::func::FuncDialect"];
  let options = [
    Option<"budget", "budget", "uint64_t", "UINT64_MAX", "most transient bytes of an entry">,
    Option<"curve", "curve", "bool", "false", "note what smaller budgets would take (`plan.curve`)">,
    Option<"ofUpdates", "of-updates", "std::string", "", "what a refused entry with updates has to be told besides">,
    Option<"unit", "unit", "std::string", "", "that the budget was given in, and refusals answer in; default: bytes">
  ];
}

def PlaceBuffersPass : Pass<"ortc-place-buffers", "::mlir::ModuleOp"> {
  let summary = "schedule entry functions and place their buffers";
  let description = [{
    Before: entry functions are calls of kernels and reshapes; regions are assigned. Functions of kernels say how much
    scratch a call needs (`plan.scratch`), which is placed like a value that is alive in that step alone.
    After: each entry is a plan.program, and the functions are gone. New values of tensors are written over
    the old ones, after every reader of the old value and after every index check and the loss; where a kernel
    cannot do that, it writes to the transient region and a copy follows. A gradients entry and its update
    entry are planned as two segments of one plan, so that gradients stay where they are in between; so are forward,
    backward and update.
  }];
  let dependentDialects = ["::ortc::plan::PlanDialect", "::mlir::func::FuncDialect"];
  let options = [
    Option<"reorder", "reorder", "bool", "true", "search for an order with a smaller peak">
  ];
}
