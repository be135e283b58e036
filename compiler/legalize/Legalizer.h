// One walk over the graph.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/legalize/Initializers.h"
#include "compiler/legalize/Node.h"
#include "compiler/legalize/Table.h"
#include "dialects/train/TrainDialect.h"
#include "support/Status.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace ortc::legalize {

/// Bytes that the elements of a tensor take.
int64_t bytesOf(mlir::Type type);

/// A train.tensor that the function takes as an argument.
struct Argument {
  std::string name;
  train::Role role;
  mlir::ElementsAttr initial;
  std::string reason;
  size_t order; ///< place among the tensors that are declared
  Value value;
  Value update;               ///< new value; null when it does not change
  mlir::Attribute dtype = {}; ///< its `train.dtype`, if it has one
};

/// What one walk over the graph came to.
enum class Outcome {
  done,
  failed,
  again, ///< an initializer has turned out to be a constant: walk once more
};

/// Watches every operation that is built for a result that no program can hold.
class SizeGuard : public mlir::OpBuilder::Listener {
public:
  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint previous) override;
  /// What is wrong, or nothing; forgets it.
  std::string take() { return std::exchange(reason, ""); }

private:
  std::string reason;
};

class Legalizer : public Walk {
public:
  Legalizer(onnx::GraphOp graph, const LegalizeOptions &options, std::vector<Initializer> &initializers,
            bool rolesAreFixed, LegalizeReport &report);
  ~Legalizer() override;

  /// Fills `function`, which has no body yet, and its arguments' and results' attributes (symbols are left to
  /// the caller: `arguments` lists the tensors in the order of the function's last arguments).
  Outcome run(mlir::func::FuncOp function, llvm::ArrayRef<SmallVector<int64_t>> inputs);

  std::vector<Argument> arguments;

  /// Whether a node of that type has drawn random numbers.
  bool drawsFor(llvm::StringRef type) const;

  const LegalizeOptions &options() const override { return settings; }
  Budget &budget() override { return spending; }
  const HostTensor *constantValue(Value value) override { return readConstant(value, spending.listed); }
  int64_t constantSize(Value value) override;
  bool keepConstant(Value value, llvm::StringRef why) override;
  Value stateOf(Value onnxValue, onnx::NodeOp user) override;
  void updateState(Value onnxValue, onnx::NodeOp user, Value newValue) override;
  Value stepsBefore() override;
  Value randomStep() override;
  uint32_t randomKey(onnx::NodeOp user, std::optional<uint64_t> seed, unsigned part) override;
  void noteWideMask(onnx::NodeOp node) override;
  LogicalResult inlineGraph(Node &node, onnx::GraphOp graph, llvm::ArrayRef<Bound> arguments,
                            SmallVector<Bound> &outputs) override;
  LogicalResult attempt(llvm::function_ref<LogicalResult()> build) override;
  void discard(mlir::Operation *op) override;

private:
  void legalizeNodes(onnx::GraphOp graph);
  /// A number of 64 bits that begins as 0.
  Value addCounter(std::string name, train::Role role);
  /// Whether something is to be computed for output `i` of the graph.
  bool isKept(unsigned i) { return !droppedBefore.contains(graph.getOutputName(i)); }
  /// The output that feeds the loss when nothing names it, as far as the file tells.
  unsigned findLossOutput();
  /// Leaves out outputs without a value when the loss does not need them. False when there is none, or when it does.
  bool dropOutputs();
  void legalizeNode(onnx::NodeOp op);
  void refuse(onnx::NodeOp op, const llvm::Twine &reason);
  /// The legalised value; null when its producer was refused.
  Bound lookup(Value onnxValue);
  /// What is wrong when a node was legalised without giving this result; otherwise nothing.
  std::string missingOutput(Value onnxValue) const;
  Bound materialize(onnx::InitializerOp op);
  /// The numbers that the integers of a packed initializer stand for.
  Value materializePacked(std::shared_ptr<const frontend::PackedWeight> packed, size_t order);
  Value addArgument(Argument argument);
  /// Whether every use of the initializer is as a state that forward parts move.
  bool isOnlyState(onnx::InitializerOp op);
  /// Whether a state cannot have the name. Constants have no say where `besidesConstants`.
  bool isTaken(llvm::StringRef name, bool besidesConstants) const;
  /// For each node of the graph with a refused node in it or in what it needs: the place of the last one, from 1 on.
  llvm::DenseMap<mlir::Operation *, size_t> findLastRefusals() const;
  Value constantOf(mlir::ElementsAttr value);
  /// The attribute of a constant, or null.
  mlir::ElementsAttr constantAttribute(Value value) const;
  /// The value of a constant, whose elements are taken from `allowance` the first time; null when it has no such.
  const HostTensor *readConstant(Value value, Allowance &allowance);
  /// Whether folding may compute the operation; takes what that is.
  bool mayFold(mlir::Operation *op);
  /// Evaluates what has been built since `from` where operands are constants.
  Status foldSince(mlir::Operation *from);
  Status foldOne(mlir::Operation *op);
  Value resolve(Value value) const;
  /// The same for what a node gives. Sequences are shared by all that hold them, unless folding has replaced
  /// an item: then they are copied, which the node is refused for where the budget does not allow it.
  LogicalResult resolve(Node &node, Bound &bound);
  Outcome finish(mlir::func::FuncOp function);
  bool dropUnreachable(mlir::Block &block, llvm::ArrayRef<Value> losses);
  /// Whether it stays trained where no gradient reaches it.
  bool isMaterialized(const Initializer &entry) const;

  onnx::GraphOp graph;
  const LegalizeOptions &settings;
  std::vector<Initializer> &initializers;
  bool rolesAreFixed;
  LegalizeReport &report;
  llvm::DenseMap<mlir::Operation *, size_t> initializerIndex;
  llvm::StringMap<size_t> initializersByName;
  llvm::StringSet<> droppedBefore;                    ///< outputs that earlier walks left out
  SmallVector<mlir::Operation *> refused;             ///< the nodes of report.unsupported
  llvm::StringMap<bool> argumentNames;                ///< whether one is no constant
  llvm::DenseMap<mlir::Operation *, bool> onlyStates; ///< answers of isOnlyState
  bool again = false;
  SizeGuard sizes;
  TensorBuilder *b = nullptr;
  mlir::Block *block = nullptr; ///< of the function; the builder may stand in the body of a loop in it
  SmallVector<mlir::Operation *> discarded;
  llvm::DenseMap<Value, Bound> environment;
  llvm::DenseSet<mlir::Operation *>
      legalized; ///< nodes; those of their results without a value are not supported
  llvm::DenseMap<Value, Value> replaced;
  llvm::DenseMap<Value, std::unique_ptr<HostTensor>> constants;
  llvm::DenseMap<Value, mlir::ElementsAttr> argumentData;
  llvm::DenseMap<Value, size_t> parameters;                           ///< argument -> initializer
  llvm::DenseMap<std::pair<Value, mlir::Operation *>, size_t> states; ///< statistic and its user -> argument
  llvm::DenseMap<mlir::Operation *, int64_t> nodesIn;                 ///< a subgraph, all levels
  Budget spending;
  std::optional<size_t> stepArgument;                                     ///< stepsBefore
  Value drawnBy;                                                          ///< randomStep
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, unsigned> draws; ///< keys given to a node's part
};

} // namespace ortc::legalize
