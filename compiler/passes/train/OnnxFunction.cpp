// ONNX functions as formulas of losses and optimizers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file is imported and legalised as models are, with the shapes of a use, and what comes of it is cloned to where
// it is used: every operator that a model may have is one of a formula, too.
#include "compiler/passes/train/OnnxFunction.h"

#include "compiler/frontend/Importer.h"
#include "compiler/legalize/Legalize.h"
#include "compiler/passes/import/Passes.h"
#include "compiler/passes/train/Losses.h"
#include "dialects/train/ElementTypes.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ortc::train {

using frontend::FunctionFile;
using frontend::FunctionValue;
using nn::TensorBuilder;

Status openFunction(std::string_view text, std::shared_ptr<const FunctionFile> &file,
                    std::string_view &keys) {
  std::string_view path;
  splitPattern(text, path, keys);
  if (path.empty())
    return Status::refusal("'onnx:' needs a file: onnx:FILE.onnx[:key=value,...]");
  return FunctionFile::load(std::string(path), file);
}

std::string functionName(const FunctionFile &file) {
  return "onnx:" + file.getPath().substr(file.getPath().rfind('/') + 1);
}

Key functionKey(const FunctionValue &value, const char *name) {
  if (value.type == kInt64 || value.type == kInt32)
    return {name, value.initial ? static_cast<int64_t>(*value.initial) : std::numeric_limits<int64_t>::min(),
            kWhole, "an input"};
  return {name, value.initial.value_or(std::nan("")), kNumber, "an input"};
}

Key functionKey(const frontend::FunctionInteger &value, const char *name) {
  return {name, value.initial.value_or(std::numeric_limits<int64_t>::min()), kWhole, "an attribute"};
}

Status checkRequired(const std::vector<Key> &keys, const Settings &settings, const std::string &what) {
  for (const Key &key : keys) {
    const KeyValue &value = settings.get(key.name);
    const auto *number = std::get_if<double>(&value);
    const auto *integer = std::get_if<int64_t>(&value);
    if ((number && std::isnan(*number)) || (integer && *integer == std::numeric_limits<int64_t>::min()))
      return Status::refusal(what + " has no value for '" + key.name + "': give " + key.name +
                             "=NUMBER, or the file a default (a scalar initializer of that "
                             "name, or of an attribute its value)");
  }
  return Status();
}

/// What does not fit an input.
static std::string tellTypes(const FunctionValue &value, RankedTensorType given) {
  return "input '" + value.name + "' is " + value.describeType() + ", and what it is given is " +
         describeType(given);
}

std::string matchShape(const FunctionValue &value, RankedTensorType given, DimSizes &sizes) {
  if (!value.dims)
    return "";
  ArrayRef<int64_t> shape = given.getShape();
  const std::string wrong = tellTypes(value, given);
  if (value.dims->size() != shape.size())
    return wrong;
  for (auto [dim, size] : llvm::zip_equal(*value.dims, shape)) {
    if (dim.size >= 0 && dim.size != size)
      return wrong;
    if (dim.name.empty())
      continue;
    auto [known, isNew] = sizes.try_emplace(dim.name, size);
    if (known->second != size)
      return wrong + ", while '" + dim.name + "' is " + std::to_string(known->second) + " elsewhere";
  }
  return "";
}

namespace {

/// One use of a file.
class Use {
public:
  Use(TensorBuilder &b, const FunctionFile &file, const Settings &settings,
      const llvm::StringMap<Value> &operands, bool isWide)
      : b(b), file(file), settings(settings), given(operands), isWide(isWide) {}

  FailureOr<SmallVector<Value>> run();

private:
  InFlightDiagnostic refuse(const Twine &reason) {
    return emitError(b.getLoc()) << "'" << file.getPath() << "': " << reason;
  }
  LogicalResult takeOperands();
  OwningOpRef<ModuleOp> legalize();

  TensorBuilder &b;
  const FunctionFile &file;
  const Settings &settings;
  const llvm::StringMap<Value> &given;
  bool isWide;
  SmallVector<Value> operands; ///< as the file has its inputs
  std::vector<frontend::OperandType> types;
};

} // namespace

/// Operands in the types that the file declares; keys are constants.
LogicalResult Use::takeOperands() {
  DimSizes sizes;
  for (const FunctionValue &input : file.getInputs()) {
    Value operand = given.lookup(input.name);
    if (!operand) {
      double value = 0; // a scalar that was left out
      if (settings.has(input.name)) {
        const KeyValue &key = settings.get(input.name);
        value = std::holds_alternative<int64_t>(key) ? static_cast<double>(std::get<int64_t>(key))
                                                     : std::get<double>(key);
      }
      operand = b.scalar(b.getF64Type(), value);
    }
    if (std::string wrong = matchShape(input, TensorBuilder::typeOf(operand), sizes); !wrong.empty())
      return refuse(wrong);
    Type element = TensorBuilder::elementOf(operand);
    bool isScalar = !given.count(input.name) || TensorBuilder::rankOf(operand) == 0;
    bool isFloat = isa<FloatType>(element);
    int32_t type = input.type;
    if (!type)
      type = isFloat ? (isWide ? kDouble : kFloat)
                     : onnxElementType(element, false, element.getIntOrFloatBitWidth());
    bool wantsFloat = type == kFloat || type == kDouble, wantsInteger = type == kInt32 || type == kInt64;
    bool isSame = type == onnxElementType(element, false, element.getIntOrFloatBitWidth());
    if (!isSame && !(wantsFloat && isFloat) && !(wantsInteger && (!isFloat || isScalar)))
      return refuse(tellTypes(input, TensorBuilder::typeOf(operand)));
    Type wanted = wantsFloat     ? (isWide || type == kDouble ? Type(b.getF64Type()) : Type(b.getF32Type()))
                  : wantsInteger ? Type(b.getIntegerType(type == kInt32 ? 32 : 64))
                                 : element;
    operands.push_back(b.cast(operand, wanted));
    ArrayRef<int64_t> shape = TensorBuilder::shapeOf(operand);
    types.push_back({type, {shape.begin(), shape.end()}});
  }
  return success();
}

/// The file for these operands as a module with one function.
OwningOpRef<ModuleOp> Use::legalize() {
  std::map<std::string, int64_t> integers;
  for (const frontend::FunctionInteger &each : file.getIntegers())
    integers[each.name] = settings.getInteger(each.name);
  std::shared_ptr<const frontend::Model> model;
  Status status = file.instantiate(types, integers, model);
  if (!status.isOk()) {
    emitError(b.getLoc()) << status.getMessage();
    return {};
  }
  auto source = frontend::importModel(model, *b.getContext(), status);
  if (failed(source)) {
    emitError(b.getLoc()) << status.getMessage();
    return {};
  }
  PassManager passes(b.getContext());
  passes.addPass(import::createInlineFunctionsPass());
  if (failed(passes.run(**source)))
    return {};
  OwningOpRef<ModuleOp> target = ModuleOp::create(b.getLoc());
  legalize::LegalizeOptions options;
  options.mode = legalize::Mode::eval;
  options.trains = false;
  options.float64 = isWide;
  legalize::LegalizeReport report;
  if (failed(legalize::legalize(**source, *target, options, report))) {
    std::string parts = report.message(); // one line of this message
    for (size_t at; (at = parts.find("\n ")) != std::string::npos;)
      parts.replace(at, 2, parts[at - 1] == ':' ? "" : ";");
    refuse(parts);
    return {};
  }
  return target;
}

FailureOr<SmallVector<Value>> Use::run() {
  if (failed(takeOperands()))
    return failure();
  OwningOpRef<ModuleOp> module = legalize();
  if (!module)
    return failure();
  auto function = *module->getOps<func::FuncOp>().begin();
  IRMapping mapping;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (i < operands.size()) {
      mapping.map(function.getArgument(i), operands[i]);
      continue;
    }
    auto tensor =
        module->lookupSymbol<TensorOp>(function.getArgAttrOfType<FlatSymbolRefAttr>(i, kTensor).getAttr());
    if (tensor.getRole() != Role::constant)
      return refuse("it draws random numbers, which formulas do not");
    mapping.map(function.getArgument(i), arith::ConstantOp::create(b, b.getLoc(), *tensor.getInitial()));
  }
  for (Operation &op : function.front().without_terminator())
    b.clone(op, mapping);
  SmallVector<Value> results;
  for (Value result : function.front().getTerminator()->getOperands())
    results.push_back(mapping.lookup(result));
  return results;
}

FailureOr<SmallVector<Value>> computeFunction(TensorBuilder &b, const FunctionFile &file,
                                              const Settings &settings,
                                              const llvm::StringMap<Value> &operands, bool isWide) {
  return Use(b, file, settings, operands, isWide).run();
}

} // namespace ortc::train
