// Verifiers and accessors of the onnx dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/onnx/NodeDefinition.h"

#include "dialects/onnx/OnnxOperators.h"
#include "mlir/IR/BuiltinOps.h"
#include "support/Plural.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace ortc::onnx {

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static StringRef nameAt(ArrayAttr names, unsigned i) { return cast<StringAttr>(names[i]).getValue(); }

/// "/layer1/Conv_output_0" as an SSA name: "layer1.Conv_output_0".
static std::string readableName(StringRef name) {
  std::string out = name.ltrim('/').str();
  std::replace(out.begin(), out.end(), '/', '.');
  return out;
}

/// Names the values in printed IR after the names in the file; empty ones stay numbered.
template <typename Range> static void setNames(Range values, ArrayAttr names, OpAsmSetValueNameFn setName) {
  for (auto [value, name] : llvm::zip(values, names.getAsRange<StringAttr>()))
    if (!name.empty())
      setName(value, readableName(name.getValue()));
}

void NodeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setNames(getResults(), getOutputNames(), setName);
}
void InitializerOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), readableName(getName()));
}
void NoneOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), "none"); }
void GraphOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (!region.empty())
    setNames(region.getArguments(), getInputNames(), setName);
}
void FunctionOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (!region.empty())
    setNames(region.getArguments(), getInputNames(), setName);
}

/// Reports the first name that occurs twice.
static LogicalResult verifyDistinct(Operation *op, ArrayAttr names, StringRef what) {
  llvm::StringSet<> seen;
  for (StringAttr name : names.getAsRange<StringAttr>())
    if (!seen.insert(name.getValue()).second)
      return op->emitOpError() << "has two " << what << " named '" << name.getValue() << "'";
  return success();
}

//===----------------------------------------------------------------------===//
// GraphOp, InitializerOp
//===----------------------------------------------------------------------===//

StringRef GraphOp::getInputName(unsigned i) { return nameAt(getInputNames(), i); }
StringRef GraphOp::getOutputName(unsigned i) { return nameAt(getOutputNames(), i); }
Value GraphOp::getOutput(unsigned i) { return getBlock().getTerminator()->getOperand(i); }

/// Checks the names of the dimensions of one input or output.
static LogicalResult verifyDims(GraphOp op, Attribute dims, Type type, StringRef what, unsigned i) {
  auto names = dyn_cast<ArrayAttr>(dims);
  bool strings = names && llvm::all_of(names, [](Attribute a) { return isa<StringAttr>(a); });
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!strings || (!names.empty() && (!tensor || tensor.getRank() != static_cast<int64_t>(names.size()))))
    return op.emitOpError() << what << " " << i << " of type " << type << " has dimension names " << dims
                            << "; one string for each dimension is needed";
  return success();
}

LogicalResult GraphOp::verify() {
  if (getBody().empty() || getBlock().empty() || !isa<ReturnOp>(getBlock().back()))
    return emitOpError("has no onnx.return at its end");
  unsigned inputs = getBlock().getNumArguments(), outputs = getBlock().back().getNumOperands();
  if (getInputNames().size() != inputs || getInputDims().size() != inputs) // graph C1
    return emitOpError() << "has " << inputs << " arguments but " << getInputNames().size()
                         << " input names and " << getInputDims().size() << " lists of dimension names";
  if (failed(verifyDistinct(*this, getInputNames(), "inputs"))) // graph C1
    return failure();
  if (getOutputNames().size() != outputs || getOutputTypes().size() != outputs ||
      getOutputDims().size() != outputs) // graph C2
    return emitOpError() << "returns " << formatCount(outputs, "value") << " but has "
                         << getOutputNames().size() << " output names, " << getOutputTypes().size()
                         << " output types and " << getOutputDims().size() << " lists of dimension names";
  for (unsigned i = 0; i < inputs; ++i) // graph C3
    if (failed(verifyDims(*this, getInputDims()[i], getBlock().getArgument(i).getType(), "input", i)))
      return failure();
  for (unsigned i = 0; i < outputs; ++i) // graph C3
    if (failed(verifyDims(*this, getOutputDims()[i], cast<TypeAttr>(getOutputTypes()[i]).getValue(), "output",
                          i)))
      return failure();
  llvm::StringSet<> names;
  for (StringAttr name : getInputNames().getAsRange<StringAttr>())
    names.insert(name.getValue());
  for (auto initializer : getBlock().getOps<InitializerOp>())
    if (!names.insert(initializer.getName()).second) // initializer C1
      return initializer.emitOpError()
             << "'" << initializer.getName() << "' is also an input or another initializer of the graph";
  return success();
}

LogicalResult InitializerOp::verify() {
  if (getName().empty()) // initializer C1
    return emitOpError("has an empty name");
  return success();
}

//===----------------------------------------------------------------------===//
// NodeOp
//===----------------------------------------------------------------------===//

Value NodeOp::getInput(unsigned i) {
  if (i >= getInputs().size() || isa<NoneType>(getInputs()[i].getType()))
    return {};
  return getInputs()[i];
}

StringRef NodeOp::getOutputName(unsigned i) { return nameAt(getOutputNames(), i); }

std::string NodeOp::describe() {
  StringRef name = getNodeName();
  if (name.empty() && !getOutputNames().empty())
    name = getOutputName(0);
  return ("'" + name + "' (" + getOpType() + ")").str();
}

int64_t NodeOp::getInt(StringRef name, int64_t orElse) {
  auto value = dyn_cast_or_null<IntegerAttr>(getOnnxAttr(name));
  return value ? value.getInt() : orElse;
}

float NodeOp::getFloat(StringRef name, float orElse) {
  auto value = dyn_cast_or_null<FloatAttr>(getOnnxAttr(name));
  return value ? value.getValue().convertToFloat() : orElse;
}

StringRef NodeOp::getString(StringRef name, StringRef orElse) {
  auto value = dyn_cast_or_null<StringAttr>(getOnnxAttr(name));
  return value ? value.getValue() : orElse;
}

ArrayRef<int64_t> NodeOp::getInts(StringRef name) {
  auto value = dyn_cast_or_null<DenseI64ArrayAttr>(getOnnxAttr(name));
  return value ? value.asArrayRef() : ArrayRef<int64_t>();
}

ArrayRef<float> NodeOp::getFloats(StringRef name) {
  auto value = dyn_cast_or_null<DenseF32ArrayAttr>(getOnnxAttr(name));
  return value ? value.asArrayRef() : ArrayRef<float>();
}

ElementsAttr NodeOp::getTensor(StringRef name) { return dyn_cast_or_null<ElementsAttr>(getOnnxAttr(name)); }

GraphOp NodeOp::getGraph(StringRef name) {
  if (ArrayAttr names = getGraphNamesAttr())
    for (auto [i, candidate] : llvm::enumerate(names.getAsRange<StringAttr>()))
      if (candidate.getValue() == name)
        return cast<GraphOp>(getGraphs()[i].front().front());
  return {};
}

/// The kind letter (OnnxOperators.h) of an attribute; 0 for one that mirrors no ONNX attribute.
static char kindOf(Attribute attribute) {
  if (auto reference = dyn_cast<ReferenceAttr>(attribute))
    return onnx::attributeKindByName(reference.getKind());
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getType().isSignlessInteger(64) ? 'i' : 0;
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getType().isF32() ? 'f' : 0;
  if (isa<StringAttr>(attribute))
    return 's';
  if (isa<DenseI64ArrayAttr>(attribute))
    return 'I';
  if (isa<DenseF32ArrayAttr>(attribute))
    return 'F';
  if (isa<ElementsAttr>(attribute))
    return 't';
  if (isa<TypeAttr>(attribute))
    return 'y';
  if (auto list = dyn_cast<ArrayAttr>(attribute)) {
    if (list.empty())
      return 'S';
    char first = kindOf(list[0]);
    bool uniform = llvm::all_of(list, [&](Attribute a) { return kindOf(a) == first; });
    return !uniform ? 0 : first == 's' ? 'S' : first == 't' ? 'T' : first == 'y' ? 'Y' : 0;
  }
  return 0;
}

/// A sparse tensor is stored dense, and an empty list does not show what it is a list of.
static bool fitsKind(Attribute attribute, char kind, char wanted) {
  auto list = dyn_cast<ArrayAttr>(attribute);
  return kind == wanted || (kind == 't' && wanted == 'p') || (kind == 'T' && wanted == 'P') ||
         (list && list.empty() && (wanted == 'T' || wanted == 'Y' || wanted == 'P'));
}

/// The kind that the definition wants for `name`, or 0.
static char wantedKind(const onnx::OperatorDefinition &definition, StringRef name) {
  SmallVector<StringRef> items;
  StringRef(definition.attributes).split(items, ' ', -1, false);
  for (StringRef item : items)
    if (item.split(':').first == name)
      return item.split(':').second[0];
  return 0;
}

std::string checkDefinition(NodeOp op, const onnx::OperatorDefinition &definition) {
  std::vector<bool> present;
  for (Value input : op.getInputs())
    present.push_back(!isa<NoneType>(input.getType()));
  while (!present.empty() && !present.back()) // a call may leave out what its function hands on
    present.pop_back();
  size_t outputs = op.getNumResults();
  while (outputs > 0 && op.getOutputName(static_cast<unsigned>(outputs - 1)).empty())
    --outputs;
  std::string wrong = onnx::checkArity(definition, present, outputs); // node C1
  if (!wrong.empty())
    return wrong;
  std::vector<std::pair<std::string_view, char>> attributes;
  for (NamedAttribute attribute : op.getOnnxAttributes()) {
    char kind = kindOf(attribute.getValue()), wanted = wantedKind(definition, attribute.getName());
    attributes.push_back(
        {attribute.getName().getValue(), fitsKind(attribute.getValue(), kind, wanted) ? wanted : kind});
  }
  if (ArrayAttr names = op.getGraphNamesAttr())
    for (StringAttr name : names.getAsRange<StringAttr>())
      attributes.push_back({name.getValue(), wantedKind(definition, name) == 'G' ? 'G' : 'g'});
  return onnx::checkAttributes(definition, attributes); // node C2
}

LogicalResult NodeOp::verify() {
  if (getNumResults() == 0) // node C7
    return emitOpError("has no results");
  if (getOutputNames().size() != getNumResults()) // node C3
    return emitOpError() << "has " << getNumResults() << " results but " << getOutputNames().size()
                         << " output names";
  unsigned graphs = getGraphNamesAttr() ? getGraphNamesAttr().size() : 0;
  if (graphs != getGraphs().size()) // node C4
    return emitOpError() << "has " << getGraphs().size() << " regions but " << graphs << " graph names";
  for (Region &region : getGraphs()) // node C4
    if (!region.hasOneBlock() || region.front().getNumArguments() ||
        !llvm::hasSingleElement(region.front()) || !isa<GraphOp>(region.front().front()))
      return emitOpError("has a region that is not exactly one onnx.graph");
  for (NamedAttribute attribute : getOnnxAttributes()) {
    if (!kindOf(attribute.getValue())) // node C2
      return emitOpError() << "attribute '" << attribute.getName().getValue()
                           << "' = " << attribute.getValue() << " is not one that mirrors an ONNX attribute";
    if (isa<ReferenceAttr>(attribute.getValue()) && !(*this)->getParentOfType<FunctionOp>()) // node C6
      return emitOpError() << "attribute '" << attribute.getName().getValue()
                           << "' refers to an attribute of a function, but there is no onnx.function around";
  }
  if (getSinceVersion() == 0)
    return success();
  const onnx::OperatorDefinition *definition =
      onnx::findDefinition(getDomainName(), getOpType(), static_cast<int64_t>(getSinceVersion()));
  if (!definition) // node C5
    return emitOpError() << "there is no version " << getSinceVersion() << " of '" << getOpType() << "'";
  if (std::string wrong = checkDefinition(*this, *definition); !wrong.empty()) // node C1, C2
    return emitError() << describe() << ": " << wrong;
  return success();
}

//===----------------------------------------------------------------------===//
// FunctionOp
//===----------------------------------------------------------------------===//

LogicalResult FunctionOp::verify() {
  if (getBody().empty() || getBody().front().empty() || !isa<ReturnOp>(getBody().front().back()))
    return emitOpError("has no onnx.return at its end");
  Block &block = getBody().front();
  if (getInputNames().size() != block.getNumArguments()) // function C1
    return emitOpError() << "has " << block.getNumArguments() << " arguments but " << getInputNames().size()
                         << " input names";
  if (failed(verifyDistinct(*this, getInputNames(), "inputs"))) // function C1
    return failure();
  for (BlockArgument argument : block.getArguments())
    if (!isa<AnyType>(argument.getType())) // function C1
      return emitOpError() << "argument " << argument.getArgNumber() << " is of type " << argument.getType()
                           << ", not !onnx.any";
  if (getOutputNames().size() != block.back().getNumOperands()) // function C2
    return emitOpError() << "returns " << formatCount(block.back().getNumOperands(), "value") << " but has "
                         << getOutputNames().size() << " output names";
  if (failed(verifyDistinct(*this, getParameters(), "attributes"))) // function C3
    return failure();
  for (StringAttr name : getParameters().getAsRange<StringAttr>())
    if (getDefaults().contains(name.getValue())) // function C3
      return emitOpError() << "has two attributes named '" << name.getValue() << "'";
  return success();
}

} // namespace ortc::onnx

#define GET_OP_CLASSES
#include "dialects/onnx/OnnxOps.cpp.inc"
