// Finding, making and inlining parts of a program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/ProgramParts.h"

#include "dialects/train/ElementTypes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace ortc::train {

std::string partName(StringRef part, int64_t binding) { return (part + "_" + Twine(binding)).str(); }

func::FuncOp findPart(ModuleOp module, StringRef part, int64_t binding) {
  return module.lookupSymbol<func::FuncOp>(partName(part, binding));
}

SmallVector<int64_t> findBindings(ModuleOp module) {
  SmallVector<int64_t> bindings;
  for (int64_t i = 0; findPart(module, "forward_train", i) || findPart(module, "forward_eval", i); ++i)
    bindings.push_back(i);
  return bindings;
}

SmallVector<TensorOp> findParameters(ModuleOp module) {
  SmallVector<TensorOp> parameters;
  for (auto tensor : module.getOps<TensorOp>())
    if (tensor.getRole() == Role::parameter && isa<FloatType>(tensor.getStoredType().getElementType()))
      parameters.push_back(tensor);
  return parameters;
}

NamedAttribute unitAttribute(MLIRContext *context, StringRef name) { return {name, UnitAttr::get(context)}; }
NamedAttribute symbolAttribute(TensorOp tensor, StringRef name) {
  return {name, FlatSymbolRefAttr::get(tensor)};
}
NamedAttribute nameAttribute(MLIRContext *context, StringRef name, StringRef value) {
  return {name, StringAttr::get(context, value)};
}

static std::pair<Attribute, Attribute> keyOf(NamedAttribute attribute) {
  return {attribute.getName(), attribute.getValue()};
}

Type findInput(func::FuncOp part, StringRef wanted) {
  for (unsigned i = 0; i < part.getNumArguments(); ++i)
    if (auto name = part.getArgAttrOfType<StringAttr>(i, kInput); name && name.getValue() == wanted)
      return part.getArgument(i).getType();
  return nullptr;
}

/// What an argument or result stands for: the first of the known attributes in its dictionary.
static std::optional<NamedAttribute> findKey(DictionaryAttr attributes) {
  for (StringRef name : {StringRef(kTensor), StringRef(kInput), StringRef(kOutput), StringRef(kLoss),
                         StringRef(kUpdate), StringRef(kGradient)})
    if (attributes)
      if (auto found = attributes.getNamed(name))
        return found;
  return std::nullopt;
}

FunctionComposer::FunctionComposer(ModuleOp module, StringRef name, Location loc)
    : builder(loc, module.getContext()) {
  builder.setInsertionPointToEnd(module.getBody());
  function = func::FuncOp::create(builder, name, builder.getFunctionType({}, {}));
  function.setPrivate();
  builder.setInsertionPointToEnd(function.addEntryBlock());
}

/// "input 'label'", "tensor '0.weight'": as messages name what an argument stands for.
static std::string describeKey(NamedAttribute attribute) {
  StringRef kind = attribute.getName().strref(), name;
  kind.consume_front("train.");
  if (auto text = dyn_cast<StringAttr>(attribute.getValue()))
    name = text;
  else if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()))
    name = symbol.getValue();
  return name.empty() ? kind.str() : (kind + " '" + name + "'").str();
}

FailureOr<Value> FunctionComposer::getArgument(NamedAttribute attribute, Type type, DictionaryAttr all) {
  if (Value known = findArgument(attribute)) {
    if (known.getType() != type)
      return emitError(builder.getLoc()) << describeKey(attribute) << " is used as "
                                         << describeType(known.getType()) << " and as " << describeType(type);
    return known;
  }
  Value argument = function.front().addArgument(type, builder.getLoc());
  argumentAttributes.push_back(all ? all : builder.getDictionaryAttr(attribute));
  for (NamedAttribute each : argumentAttributes.back())
    arguments.try_emplace(keyOf(each), argument);
  return argument;
}

Value FunctionComposer::findArgument(NamedAttribute attribute) const {
  return arguments.lookup(keyOf(attribute));
}

FailureOr<SmallVector<Port>> FunctionComposer::inlinePart(func::FuncOp part, ArrayRef<Port> given) {
  IRMapping mapping;
  ValuesByAttribute taken;
  for (const Port &port : given)
    taken.try_emplace(keyOf(port.attribute), port.value);
  for (unsigned i = 0; i < part.getNumArguments(); ++i) {
    auto key = findKey(part.getArgAttrDict(i));
    if (!key)
      return part.emitError() << "argument " << i << " bears no train attribute";
    Value value = taken.lookup(keyOf(*key));
    if (value && value.getType() != part.getArgument(i).getType())
      return part.emitError() << "argument " << i << " has type " << part.getArgument(i).getType() << " but "
                              << key->getName() << " = " << key->getValue() << " is " << value.getType();
    if (!value) {
      FailureOr<Value> argument = getArgument(*key, part.getArgument(i).getType(), part.getArgAttrDict(i));
      if (failed(argument))
        return failure();
      value = *argument;
    }
    mapping.map(part.getArgument(i), value);
  }
  for (Operation &op : part.front().without_terminator())
    builder.clone(op, mapping);
  SmallVector<Port> results;
  for (auto [i, value] : llvm::enumerate(part.front().getTerminator()->getOperands())) {
    auto key = findKey(part.getResultAttrDict(i));
    if (!key)
      return part.emitError() << "result " << i << " bears no train attribute";
    results.push_back({*key, mapping.lookup(value), part.getResultAttrDict(i)});
  }
  return results;
}

void FunctionComposer::finish(ArrayRef<Port> results, bool dropArguments) {
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> attributes;
  for (const Port &port : results) {
    values.push_back(port.value);
    attributes.push_back(port.all ? port.all : builder.getDictionaryAttr(port.attribute));
  }
  func::ReturnOp::create(builder, values);
  Block &block = function.front();
  for (Operation *op = block.getTerminator()->getPrevNode(); op;) {
    Operation *previous = op->getPrevNode();
    if (isOpTriviallyDead(op))
      op->erase();
    op = previous;
  }
  function.setType(builder.getFunctionType(block.getArgumentTypes(), TypeRange(ValueRange(values))));
  function.setAllResultAttrs(attributes);
  function.setAllArgAttrs(argumentAttributes);
  llvm::BitVector unused(function.getNumArguments());
  for (BlockArgument argument : block.getArguments())
    if (dropArguments && argument.use_empty())
      unused.set(argument.getArgNumber());
  (void)function.eraseArguments(unused);
}

} // namespace ortc::train
