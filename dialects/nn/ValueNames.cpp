// Which value of the model a tensor is.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/nn/ValueNames.h"

#include "dialects/nn/NnDialect.h"

using namespace mlir;

namespace ortc::nn {

/// Keys of the dictionary that is a mark: the name of the value, or of the one whose gradient it is.
static constexpr llvm::StringLiteral kValue = "value", kGradientOf = "gradient_of";

static DictionaryAttr findMark(Location location) {
  while (auto call = dyn_cast<CallSiteLoc>(location))
    location = call.getCallee();
  auto fused = dyn_cast<FusedLoc>(location);
  return fused ? dyn_cast_or_null<DictionaryAttr>(fused.getMetadata()) : DictionaryAttr();
}

static Location mark(Location location, StringRef key, StringRef name) {
  MLIRContext *context = location.getContext();
  auto entry = NamedAttribute(StringAttr::get(context, key), StringAttr::get(context, name));
  return FusedLoc::get({location}, DictionaryAttr::get(context, entry), context);
}

/// What `value` holds the same elements as, moved about at most; null when nothing.
static Value findMoved(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<TransposeOp, ReshapeOp>(op) ? op->getOperand(0) : Value();
}

/// Marks what makes `result`, and what is only moved about on the way, as long as it is at `location`.
static void markOps(Value result, StringRef key, StringRef name, Location location) {
  for (; result; result = findMoved(result)) {
    Operation *op = result.getDefiningOp();
    if (!op || op->getLoc() != location)
      return;
    op->setLoc(mark(location, key, name));
  }
}

void nameValue(Value result, StringRef name, Location location) { markOps(result, kValue, name, location); }

void nameArgument(BlockArgument argument, StringRef name) {
  argument.setLoc(mark(argument.getLoc(), kValue, name));
}

/// The model's name of a value, "" when it has none.
static StringRef findName(Value value) {
  for (; value; value = findMoved(value))
    if (DictionaryAttr found = findMark(value.getLoc()))
      if (auto name = found.getAs<StringAttr>(kValue))
        return name.getValue();
  return "";
}

void nameGradient(Value gradient, Value value, Location location) {
  if (StringRef name = findName(value); !name.empty())
    markOps(gradient, kGradientOf, name, location);
}

/// As findValueName; `isGradient`: inside the mark of a gradient, where names are those of what was differentiated.
static std::string find(Location location, bool isGradient) {
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return find(call.getCallee(), isGradient);
  if (auto name = dyn_cast<NameLoc>(location))
    return (isGradient ? "part of the gradient of " : "part of ") + name.getName().str();
  auto fused = dyn_cast<FusedLoc>(location);
  if (!fused)
    return "";
  if (DictionaryAttr found = findMark(location); found && !isGradient) {
    if (auto name = found.getAs<StringAttr>(kValue))
      return name.str();
    if (auto name = found.getAs<StringAttr>(kGradientOf))
      return "gradient of " + name.str();
  }
  auto gradient = dyn_cast_or_null<StringAttr>(fused.getMetadata());
  isGradient |= gradient && gradient == kGradientLocation;
  for (Location part : fused.getLocations())
    if (std::string name = find(part, isGradient); !name.empty())
      return name;
  return "";
}

std::string findValueName(Location location) { return find(location, false); }

Location nameResults(Location location, ArrayRef<std::string> names) {
  MLIRContext *context = location.getContext();
  SmallVector<Attribute> list;
  for (const std::string &name : names)
    list.push_back(StringAttr::get(context, name));
  return FusedLoc::get({location}, ArrayAttr::get(context, list), context);
}

std::string findResultName(Location location, unsigned result) {
  auto fused = dyn_cast<FusedLoc>(location);
  auto names = fused ? dyn_cast_or_null<ArrayAttr>(fused.getMetadata()) : ArrayAttr();
  return names && result < names.size() ? cast<StringAttr>(names[result]).str() : "";
}

} // namespace ortc::nn
