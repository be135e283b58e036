// From the onnx dialect to nn, arith and math on static shapes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Walks the graph in order with static operand types and constant operand values at hand. Every node is
// rewritten by the handler that Table.h has for its operator and since-version; operations whose operands are
// constants are evaluated at once, so shape arithmetic is gone when the walk ends.
#pragma once

#include "compiler/frontend/QuantizedBase.h"
#include "compiler/options/CompileOptions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <string>
#include <vector>

namespace ortc::legalize {

enum class Mode { train, eval };

struct LegalizeOptions {
  Mode mode = Mode::train;
  unsigned binding = 0; ///< number in the function's name and in its `train.binding`
  std::vector<ShapeSpec> shapes;
  std::vector<NamePattern> train, freeze;
  std::vector<NamePattern> materialized; ///< stay trained where no gradient reaches them
  std::optional<NamePattern> trainable;  ///< what the model's metadata says; flags win
  std::vector<NamePattern> frozen;       ///< the same, and what no gradient goes to
  std::optional<NamePattern> scales;     ///< those that --qat learns, unless --freeze names them
  BatchNormSpec batchNorm;
  DropoutSpec dropout;
  /// Graph outputs that the loss is computed from; empty: all floating-point ones. An initializer is trained
  /// by default when a gradient can reach it from these.
  std::vector<std::string> lossOutputs;
  frontend::PackedWeights packed; ///< initializers that are stored as integers
  uint64_t seed = 0;              ///< of random operators without a seed of their own
  bool float64 = false;           ///< every floating-point type becomes f64
  bool trains = true;             ///< false: every initializer is a constant, running statistics too
};

/// A part of the model that cannot be compiled.
struct Unsupported {
  std::string op;      ///< with its domain unless that is the default one
  int64_t version = 0; ///< since-version; 0 when the standard has no such operator
  std::string node;    ///< its name, or that of its first output
  std::string reason;
  std::string function; ///< that the node was copied from; empty for nodes of the graph

  /// "'node' of function 'name'".
  std::string place() const {
    return "'" + node + "'" + (function.empty() ? "" : " of function '" + function + "'");
  }
};

/// What became of a floating-point initializer (or of a running statistic).
struct InitializerReport {
  std::string name;
  int64_t elements = 0;
  std::string role;   ///< "parameter", "constant", "state"
  std::string reason; ///< why it is not trained; empty for parameters
  bool trained() const { return role == "parameter"; }
};

/// A graph output that the loss does not need and that cannot be computed.
struct DroppedOutput {
  std::string name, reason;
};

struct LegalizeReport {
  std::vector<Unsupported> unsupported;
  std::vector<DroppedOutput> dropped;
  std::string error; ///< the options do not fit the model; empty when `unsupported` says it all
  std::vector<InitializerReport> initializers; ///< in the order of the file
  std::vector<std::string> warnings, notes;
  std::vector<std::string> wideMasks; ///< outputs of ByMode (InferenceForm.h) that are larger in training
  mlir::func::FuncOp function;        ///< null on failure
  /// Everything that is wrong as one message of one or more lines.
  std::string message() const;
};

/// Adds `@forward_<mode>_<binding>` to `target` and declares the `train.tensor`s it needs that are not there
/// yet. `source` holds one `onnx.graph` whose local functions have been inlined. Once `target` declares a
/// tensor, its role is taken over by later calls: legalise for training first. On failure `target` is as it
/// was.
mlir::LogicalResult legalize(mlir::ModuleOp source, mlir::ModuleOp target, const LegalizeOptions &options,
                             LegalizeReport &report);

/// "forward_train_0".
std::string forwardName(Mode mode, unsigned binding);

} // namespace ortc::legalize
