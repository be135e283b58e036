// From the onnx dialect to nn, arith and math on static shapes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which initializers are trained depends on where gradients arrive, and what is constant decides what folds:
// the walk is repeated, with one more initializer constant each time, until nothing changes. Two or three
// walks are the rule.
#include "compiler/legalize/Legalize.h"

#include "compiler/frontend/FakeQuantizers.h"
#include "compiler/frontend/GeneratedNames.h"
#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/InferenceForm.h"
#include "compiler/legalize/Bindings.h"
#include "compiler/legalize/Legalizer.h"
#include "compiler/legalize/NormStatistics.h"
#include "dialects/train/ElementTypes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"
#include "support/Lists.h"
#include "support/Plural.h"
#include "support/Printable.h"
#include "llvm/ADT/StringSet.h"

#include <map>

using namespace mlir;

namespace ortc::legalize {

std::string forwardName(Mode mode, unsigned binding) {
  return std::string("forward_") + (mode == Mode::train ? "train_" : "eval_") + std::to_string(binding);
}

std::string LegalizeReport::message() const {
  if (!error.empty())
    return error;
  std::string text = formatCount(int64_t(unsupported.size()), "part") + " of the model cannot be compiled:";
  for (const Unsupported &part : unsupported)
    text +=
        "\n  " +
        makePrintable(part.op + (part.version ? " (since opset " + std::to_string(part.version) + ")" : "") +
                      " " + part.place() + ": " + part.reason);
  return text;
}

/// Takes the roles of tensors that `target` declares already.
static bool takeRoles(ModuleOp target, std::vector<Initializer> &initializers) {
  llvm::StringMap<train::TensorOp> declared;
  for (auto tensor : target.getOps<train::TensorOp>())
    declared[tensor.getName()] = tensor;
  if (declared.empty())
    return false;
  for (Initializer &entry : initializers) {
    train::TensorOp tensor = declared.lookup(entry.name);
    bool wasTrained = entry.trained;
    entry.trained = tensor && tensor.getRole() == train::Role::parameter;
    if (wasTrained && !entry.trained)
      entry.reason =
          tensor && tensor.getReason() ? tensor.getReason()->str() : "no gradient of the loss can reach it";
  }
  return true;
}

/// Declares the tensors the function takes, and names them in the attributes of its arguments and results.
static void declareTensors(ModuleOp target, func::FuncOp function, ArrayRef<Argument> arguments) {
  MLIRContext *context = target.getContext();
  SymbolTable symbols(target);
  llvm::StringMap<FlatSymbolRefAttr> references;
  Operation *last = nullptr;
  for (auto tensor : target.getOps<train::TensorOp>()) {
    references[tensor.getName()] = FlatSymbolRefAttr::get(tensor.getSymNameAttr());
    last = tensor;
  }
  OpBuilder builder = OpBuilder::atBlockBegin(target.getBody());
  if (last)
    builder.setInsertionPointAfter(last);
  SmallVector<const Argument *> ordered;
  for (const Argument &argument : arguments)
    ordered.push_back(&argument);
  llvm::sort(ordered, [&](const Argument *a, const Argument *b) {
    return std::tie(a->order, a->name) < std::tie(b->order, b->name);
  });
  for (const Argument *argument : ordered) {
    if (references.contains(argument->name))
      continue;
    std::string symbol = argument->name;
    while (symbols.lookup(symbol))
      symbol += "_";
    auto tensor = train::TensorOp::create(
        builder, function.getLoc(), StringRef(symbol), argument->role, StringRef(argument->name),
        cast<RankedTensorType>(argument->initial.getShapedType()), DenseI64ArrayAttr(), argument->initial,
        FlatSymbolRefAttr(),
        argument->reason.empty() ? StringAttr() : StringAttr::get(context, argument->reason));
    if (argument->dtype)
      tensor->setAttr(train::kDtype, argument->dtype);
    references[argument->name] = FlatSymbolRefAttr::get(symbols.insert(tensor, builder.getInsertionPoint()));
  }
  unsigned first = function.getNumArguments() - arguments.size();
  // All at once: an attribute that is set alone costs as much as those of all arguments.
  auto with = [&](DictionaryAttr attributes, StringRef key, Attribute value) {
    NamedAttrList list(attributes);
    list.set(key, value);
    return list.getDictionary(context);
  };
  SmallVector<DictionaryAttr> ofArguments, ofResults;
  function.getAllArgAttrs(ofArguments);
  function.getAllResultAttrs(ofResults);
  for (auto [i, argument] : llvm::enumerate(arguments))
    ofArguments[first + i] = with(ofArguments[first + i], train::kTensor, references[argument.name]);
  for (DictionaryAttr &attributes : ofResults)
    if (auto name = attributes ? attributes.getAs<StringAttr>(train::kUpdate) : StringAttr())
      attributes = with(attributes, train::kUpdate, references[name.getValue()]);
  function.setAllArgAttrs(ofArguments);
  function.setAllResultAttrs(ofResults);
}

/// Why a state is not trained.
static std::string stateReason(const Initializer &entry) {
  onnx::InitializerOp op = entry.op;
  StringRef what = describeState(op.getOutput());
  return (what.empty() ? StringRef(kNormStatistic) : what).str();
}

/// Fills the list of initializers and the warnings.
static void reportInitializers(ArrayRef<Initializer> initializers, ArrayRef<Argument> arguments,
                               LegalizeReport &report) {
  std::vector<std::string> generated, tables;
  std::map<std::string, std::vector<std::string>> formulas, ignored; // by reason
  llvm::StringSet<> states, names;
  for (const Argument &argument : arguments)
    if (argument.role == train::Role::state)
      states.insert(argument.name);
  for (const Initializer &entry : initializers) {
    bool isState = states.contains(entry.name);
    names.insert(entry.name);
    if (!entry.isFloat)
      continue;
    report.initializers.push_back({entry.name, entry.elements,
                                   isState         ? "state"
                                   : entry.trained ? "parameter"
                                                   : "constant",
                                   isState         ? stateReason(entry)
                                   : entry.trained ? ""
                                                   : entry.reason});
    // What a node takes as its weight is one, whatever its name.
    onnx::InitializerOp op = entry.op;
    if (entry.trained && entry.elements > 1 && entry.requestedBy.empty() && entry.origin.empty() &&
        !isTakenAsWeight(op.getOutput())) {
      std::string text = "'" + entry.name + "' (" + formatCount(entry.elements, "element") + ")";
      if (looksLikeTable(entry))
        tables.push_back(text);
      else if (frontend::isGeneratedName(entry.name))
        generated.push_back(text);
    }
    if (!entry.trained && entry.isFormula)
      formulas[entry.reason].push_back("'" + entry.name + "'");
    if (!entry.trained && !entry.requestedBy.empty() && !isState)
      ignored[(" named by " + entry.requestedBy) + "\n" + entry.reason].push_back("'" + entry.name + "'");
  }
  for (const auto &[what, names] : ignored) {
    auto [by, reason] = StringRef(what).split('\n');
    bool isOne = names.size() == 1;
    report.warnings.push_back(joinSome(names, 4) + (isOne ? " is" : " are") + by.str() +
                              (isOne ? " but stays constant: " : " but stay constant: ") + reason.str());
  }
  for (const auto &[reason, names] : formulas)
    report.notes.push_back(joinSome(names, 4) + (names.size() == 1 ? " is" : " are") + " not trained, as " +
                           reason + "; --train decides otherwise");
  if (!tables.empty())
    report.warnings.push_back("trained although it looks like a mask or a table: " + joinSome(tables, 4) +
                              "; --freeze what is no weight");
  if (!generated.empty())
    report.warnings.push_back("trained although the exporter made up the name: " + joinSome(generated, 4) +
                              "; --freeze what is a table and no weight");
  for (const Argument &argument : arguments) {
    if (argument.role == train::Role::state && !names.contains(argument.name) &&
        isa<FloatType>(argument.initial.getElementType()))
      report.initializers.push_back(
          {argument.name, argument.initial.getNumElements(), "state", kNormStatistic.str()});
  }
}

/// Whether the weights of a convolution bear the mark of a batch normalisation that was folded into it: a name that an
/// exporter made up, or a bias named after them.
static bool isFoldedConvolution(onnx::NodeOp op) {
  if ((op.getOpType() != "Conv" && op.getOpType() != "ConvTranspose") || op.getInputs().size() < 3 ||
      !op.getInput(1) || !op.getInput(2))
    return false;
  auto weight = op.getInput(1).getDefiningOp<onnx::InitializerOp>(),
       bias = op.getInput(2).getDefiningOp<onnx::InitializerOp>();
  if (!weight || !bias)
    return false;
  StringRef name = weight.getName();
  return name.starts_with("onnx::Conv") || name.contains("BatchNorm") || name.starts_with("ConvBnFusion") ||
         bias.getName() == (name + "_bias").str();
}

static bool trainsStatistics(onnx::NodeOp norm, BatchNormMode mode) {
  return mode == BatchNormMode::Train || (mode == BatchNormMode::AsExported && normalizesByBatch(norm));
}

/// Says when batch normalisations will not learn statistics although the caller may expect it.
static void reportBatchNorms(onnx::GraphOp graph, const LegalizeOptions &options, LegalizeReport &report) {
  if (options.mode != Mode::train)
    return;
  bool isAny = false;
  std::vector<std::string> folded;
  bool isAnyRunning = false;
  graph.walk([&](onnx::NodeOp op) {
    if (op.getOpType() == "BatchNormalization") {
      isAny = true;
      isAnyRunning |= statisticsOf(op) == NormStatistics::running;
    }
    if (isFoldedConvolution(op))
      folded.push_back("'" + op.getInput(1).getDefiningOp<onnx::InitializerOp>().getName().str() + "'");
  });
  const char *const how =
      "; export without folding (PyTorch: training=TrainingMode.PRESERVE, or dynamo=True with "
      "optimize=False) to train it";
  if (options.batchNorm.mode == BatchNormMode::Train && !isAny)
    report.warnings.push_back(
        std::string("--batch-norm train does nothing: the model has no BatchNormalization; exporters "
                    "fold it into convolutions") +
        how);
  else if (options.batchNorm.mode != BatchNormMode::AsExported && isAny && !isAnyRunning)
    report.warnings.push_back(
        std::string("--batch-norm ") + (options.batchNorm.mode == BatchNormMode::Train ? "train" : "frozen") +
        " does nothing: no BatchNormalization of the model has running statistics, so each stays as it is");
  else if (!folded.empty())
    report.notes.push_back("batch normalisation seems to be folded into " + joinSome(folded, 4) +
                           ", which are trained as they are" + how);
  std::vector<std::string> forgetful;
  for (auto op : graph.getBlock().getOps<onnx::NodeOp>())
    if (op.getOpType() == "BatchNormalization" && op.getFloat("momentum", 0.9f) == 0 &&
        statisticsOf(op) == NormStatistics::running && trainsStatistics(op, options.batchNorm.mode))
      forgetful.push_back(op.describe());
  if (!forgetful.empty())
    report.warnings.push_back(
        "momentum 0 in the batch normalisation " + joinSome(forgetful, 4) +
        ": running statistics are those of the last batch, whatever came before; PyTorch's TorchScript "
        "exporter "
        "writes momentum=None (an average over all steps) so: give the module a momentum, or train with "
        "ortc.torch.compile_, where such modules stay in PyTorch");
  if (options.batchNorm.mode != BatchNormMode::AsExported)
    return;
  unsigned frozen = 0;
  for (auto op : graph.getBlock().getOps<onnx::NodeOp>())
    frozen += op.getOpType() == "BatchNormalization" && statisticsOf(op) == NormStatistics::running &&
              !normalizesByBatch(op);
  if (frozen)
    report.warnings.push_back(
        std::to_string(frozen) +
        (frozen == 1
             ? " batch normalisation was exported for inference and keeps its running statistics; "
             : " batch normalisations were exported for inference and keep their running statistics; ") +
        "--batch-norm train trains " + (frozen == 1 ? "it" : "them") +
        ", --batch-norm frozen says that this is meant");
}

/// Exporters in evaluation mode often leave dropout out altogether: nothing is left that could be trained.
/// Some of them keep the nodes, with a ratio of 0.
static void reportDropouts(onnx::GraphOp graph, const LegalizeOptions &options, bool drops,
                           LegalizeReport &report) {
  if (options.mode != Mode::train || options.dropout.mode != DropoutMode::Train || drops)
    return;
  auto has = [&](StringRef type, StringRef domain) {
    return graph
        .walk([&](onnx::NodeOp op) {
          return op.getOpType() == type && op.getDomainName() == domain ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
        })
        .wasInterrupted();
  };
  if (has(frontend::kByMode, frontend::kOwnDomain)) // masks that the graph draws itself
    return;
  report.warnings.push_back(std::string("--dropout train does nothing: ") +
                            (has("Dropout", "")
                                 ? "no Dropout node that outputs need has a ratio above 0"
                                 : "the model has no Dropout node (exporters in evaluation mode leave "
                                   "them out)") +
                            "; export it in training mode");
}

LogicalResult legalize(ModuleOp source, ModuleOp target, const LegalizeOptions &options,
                       LegalizeReport &report) {
  auto fail = [&](const std::string &message) {
    report.error = message;
    return failure();
  };
  report = LegalizeReport();
  auto graphs = llvm::to_vector(source.getOps<onnx::GraphOp>());
  if (graphs.size() != 1)
    return fail("the module holds " + std::to_string(graphs.size()) + " graphs, not one");
  onnx::GraphOp graph = graphs.front();
  MLIRContext *context = target.getContext();
  context->loadDialect<nn::NnDialect, arith::ArithDialect, math::MathDialect, func::FuncDialect,
                       train::TrainDialect>();
  auto outputs = llvm::map_to_vector(graph.getOutputNames(),
                                     [](Attribute name) { return cast<StringAttr>(name).getValue(); });
  for (const std::string &name : options.lossOutputs)
    if (!llvm::is_contained(outputs, name))
      return fail("the model has no output '" + name +
                  "' for the loss, and no node that gives a value of that name; its outputs are '" +
                  llvm::join(outputs, "', '") + "'");
  auto inputs = bindInputs(graph, options.shapes);
  if (!inputs)
    return fail(inputs.getStatus().getMessage());

  std::vector<Initializer> initializers = classifyInitializers(graph, options);
  bool rolesAreFixed = takeRoles(target, initializers);
  for (;;) {
    OpBuilder builder = OpBuilder::atBlockEnd(target.getBody());
    auto function = func::FuncOp::create(builder, target.getLoc(), forwardName(options.mode, options.binding),
                                         builder.getFunctionType({}, {}));
    Legalizer legalizer(graph, options, initializers, rolesAreFixed, report);
    Outcome outcome = legalizer.run(function, *inputs);
    if (outcome != Outcome::done)
      function.erase();
    if (outcome == Outcome::failed)
      return failure();
    if (outcome == Outcome::again) {
      report.unsupported.clear();
      report.error.clear();
      continue;
    }
    function->setAttr(train::kBinding, builder.getI64IntegerAttr(options.binding));
    declareTensors(target, function, legalizer.arguments);
    reportInitializers(initializers, legalizer.arguments, report);
    reportBatchNorms(graph, options, report);
    reportDropouts(graph, options, legalizer.drawsFor("Dropout"), report);
    for (const DroppedOutput &output : report.dropped)
      report.notes.push_back("output '" + output.name +
                             "' is left out, as the loss does not need it: " + output.reason);
    report.function = function;
    if (succeeded(verify(function)))
      return success();
    function.erase();
    report.function = {};
    return fail("legalisation gave operations that do not verify; this is a bug of the compiler");
  }
}

} // namespace ortc::legalize
