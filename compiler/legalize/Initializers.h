// Which initializers are trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule of `--train` and `--freeze`, and what it needs to know about the graph.
#pragma once

#include "compiler/legalize/FormulaConstants.h"
#include "compiler/legalize/Legalize.h"
#include "dialects/onnx/OnnxDialect.h"

namespace ortc::legalize {

struct Initializer {
  onnx::InitializerOp op;
  std::string name;
  int64_t elements = 0;
  bool isFloat = false;
  bool trained = false;
  bool isMadeUp = false;          ///< its name is a converter's
  bool isFormula = false;         ///< not trained because of what it does in a formula
  std::string requestedBy;        ///< what names it as trained: "--train", or a list of the model's metadata
  std::string reason;             ///< why it is not trained
  std::string origin;             ///< "parameter", "buffer" or "constant" where the exporter says so
  mlir::ElementsAttr master = {}; ///< the initial value of a parameter, once it has been needed
};

/// Decides from names, patterns and the nodes that use them, before anything is legalised. Whether a gradient
/// can arrive is found out later.
std::vector<Initializer> classifyInitializers(onnx::GraphOp graph, const LegalizeOptions &options);

/// Freezes those that are trained by default, and are constants of formulas as far as shapes are known.
/// Whether there are any.
bool freezeFormulaConstants(std::vector<Initializer> &initializers, const ShapeOf &shapeOf);

/// Whether some node takes `value`, or a view of it, as a weight: the filter of a convolution, the scale of a norm, ...
bool isTakenAsWeight(mlir::Value value);

/// Whether an initializer that nothing says more about looks like a mask or a table: by its name ("cos",
/// "attn_mask"), or because its elements are 0 and 1, or 0 and hugely negative.
bool looksLikeTable(const Initializer &entry);

/// What a state is whose every use is the running mean or variance of a batch normalisation, or a range of --qat; empty
/// for other values.
llvm::StringRef describeState(mlir::Value value);
/// Whether it is such a state.
inline bool isState(mlir::Value value) { return !describeState(value).empty(); }
inline constexpr llvm::StringLiteral kNormStatistic = "running statistic of a batch normalisation";

/// The arguments of `block` that a gradient of `outputs` can reach.
llvm::DenseSet<mlir::Value> reachableArguments(mlir::Block &block, llvm::ArrayRef<mlir::Value> outputs);

} // namespace ortc::legalize
