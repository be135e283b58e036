// Static shapes of the graph's inputs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whole-input shapes first (they give values to the symbols they meet), then symbols by name.
#include "compiler/legalize/Bindings.h"
#include "support/Plural.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace ortc::legalize {

namespace {

struct Binder {
  onnx::GraphOp graph;
  ArrayRef<ShapeSpec> shapes;
  llvm::StringMap<int64_t> symbols;

  static Status refuse(const Twine &message) { return Status::refusal(message.str()); }
  unsigned inputs() { return graph.getBlock().getNumArguments(); }
  RankedTensorType typeOf(unsigned input) {
    return dyn_cast<RankedTensorType>(graph.getBlock().getArgument(input).getType());
  }
  StringRef symbolOf(unsigned input, int64_t dim) {
    auto names = cast<ArrayAttr>(graph.getInputDims()[input]);
    return names.empty() ? StringRef() : cast<StringAttr>(names[dim]).getValue();
  }
  Status bindSymbol(StringRef symbol, int64_t value) {
    auto [known, isNew] = symbols.try_emplace(symbol, value);
    if (!isNew && known->second != value)
      return refuse("--shape: dimension '" + symbol + "' is given as " + Twine(known->second) + " and as " +
                    Twine(value));
    return Status();
  }
  Status readShapes(SmallVectorImpl<std::optional<SmallVector<int64_t>>> &whole);
  Status readInput(unsigned input, const ShapeSpec &spec);
};

Status Binder::readInput(unsigned input, const ShapeSpec &spec) {
  RankedTensorType type = typeOf(input);
  if (!type)
    return Status();
  if (type.getRank() != static_cast<int64_t>(spec.dims.size()))
    return refuse("--shape: input '" + spec.name + "' has " + formatCount(type.getRank(), "dimension") +
                  ", not " + Twine(spec.dims.size()));
  for (auto [dim, value] : llvm::enumerate(spec.dims)) {
    if (!type.isDynamicDim(dim) && type.getDimSize(dim) != value)
      return refuse("--shape: dimension " + Twine(dim) + " of input '" + spec.name + "' is " +
                    Twine(type.getDimSize(dim)) + " in the model and cannot become " + Twine(value));
    if (StringRef symbol = symbolOf(input, dim); type.isDynamicDim(dim) && !symbol.empty())
      ORTC_TRY(bindSymbol(symbol, value));
  }
  return Status();
}

Status Binder::readShapes(SmallVectorImpl<std::optional<SmallVector<int64_t>>> &whole) {
  llvm::StringMap<bool> known;
  for (unsigned i = 0; i < inputs(); ++i)
    if (RankedTensorType type = typeOf(i))
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        if (type.isDynamicDim(dim) && !symbolOf(i, dim).empty())
          known[symbolOf(i, dim)] = true;
  for (const ShapeSpec &spec : shapes) {
    std::optional<unsigned> input;
    for (unsigned i = 0; i < inputs(); ++i)
      if (graph.getInputName(i) == spec.name)
        input = i;
    bool isSymbol = spec.dims.size() == 1 && known.contains(spec.name);
    if (isSymbol) {
      ORTC_TRY(bindSymbol(spec.name, spec.dims[0]));
      continue;
    }
    if (!input) {
      std::string names;
      for (auto &entry : known)
        names += (names.empty() ? "" : ", ") + entry.first().str();
      return refuse("--shape: the model has no " +
                    Twine(spec.dims.size() == 1 ? "symbolic dimension or " : "") + "input '" + spec.name +
                    "'" + (names.empty() ? std::string() : "; its symbolic dimensions: " + names));
    }
    ORTC_TRY(readInput(*input, spec));
    whole[*input] = SmallVector<int64_t>(spec.dims.begin(), spec.dims.end());
  }
  return Status();
}

} // namespace

Expected<SmallVector<SmallVector<int64_t>>> bindInputs(onnx::GraphOp graph, ArrayRef<ShapeSpec> shapes) {
  Binder binder{graph, shapes, {}};
  SmallVector<std::optional<SmallVector<int64_t>>> whole(binder.inputs());
  ORTC_TRY(binder.readShapes(whole));

  SmallVector<SmallVector<int64_t>> inputs;
  llvm::MapVector<StringRef, std::string> unboundSymbols; // symbol -> inputs that have it
  std::string unbound, example;
  for (unsigned i = 0; i < binder.inputs(); ++i) {
    if (whole[i]) {
      inputs.push_back(*whole[i]);
      continue;
    }
    std::string name = graph.getInputName(i).str();
    RankedTensorType type = binder.typeOf(i);
    SmallVector<int64_t> shape;
    if (!type) {
      unbound += (unbound.empty() ? "" : ", ") + ("the shape of input '" + name + "'");
      example = name + "=AxB";
    }
    for (int64_t dim = 0; type && dim < type.getRank(); ++dim) {
      StringRef symbol = binder.symbolOf(i, dim);
      shape.push_back(type.getDimSize(dim));
      if (!type.isDynamicDim(dim))
        continue;
      if (auto known = binder.symbols.find(symbol); !symbol.empty() && known != binder.symbols.end()) {
        shape.back() = known->second;
      } else if (!symbol.empty()) {
        std::string &users = unboundSymbols[symbol];
        if (!StringRef(users).ends_with("'" + name + "'"))
          users += (users.empty() ? "'" : ", '") + name + "'";
      } else {
        unbound +=
            (unbound.empty() ? "" : ", ") + ("dimension " + std::to_string(dim) + " of input '" + name + "'");
        example = name + "=AxB";
      }
    }
    inputs.push_back(std::move(shape));
  }
  std::string list;
  for (auto &[symbol, users] : unboundSymbols) {
    list += (list.empty() ? "" : ", ") + ("'" + symbol + "' (of input " + users + ")").str();
    example = symbol.str() + "=N" + (example.empty() ? "" : "," + example);
  }
  if (!unbound.empty())
    list += (list.empty() ? "" : ", ") + unbound;
  if (!list.empty())
    return Binder::refuse("dimensions without a value: " + list + "; bind them with --shape " + example);
  return inputs;
}

} // namespace ortc::legalize
