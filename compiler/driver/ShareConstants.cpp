// One table of constants for the programs of several families.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/ShareConstants.h"

#include "dialects/train/TrainDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace ortc::driver {

llvm::StringSet<> listTensors(ModuleOp module) {
  llvm::StringSet<> names;
  for (auto tensor : module.getOps<train::TensorOp>())
    names.insert(tensor.getSymName());
  return names;
}

static SmallVector<train::TensorOp> findNew(ModuleOp module, const llvm::StringSet<> &known) {
  SmallVector<train::TensorOp> found;
  for (auto tensor : module.getOps<train::TensorOp>())
    if (!known.contains(tensor.getSymName()))
      found.push_back(tensor);
  return found;
}

/// Gives tensors of `module` the names of equal values in `names`; values that are not there get a name of their own.
static void rename(ModuleOp module, const llvm::StringSet<> &known,
                   llvm::DenseMap<Attribute, StringAttr> &names, llvm::StringSet<> &taken) {
  llvm::DenseMap<Attribute, Attribute> renamed; // references
  for (train::TensorOp tensor : findNew(module, known)) {
    StringAttr &name = names[tensor.getInitialAttr()];
    for (size_t number = 0; !name; ++number)
      if (std::string next = "constant_" + std::to_string(number); taken.insert(next).second)
        name = StringAttr::get(module.getContext(), next);
    renamed[FlatSymbolRefAttr::get(tensor.getSymNameAttr())] = FlatSymbolRefAttr::get(name);
    tensor.setSymNameAttr(name);
    tensor.setNameAttr(name);
  }
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](FlatSymbolRefAttr reference) -> std::optional<Attribute> {
    if (Attribute now = renamed.lookup(reference))
      return now;
    return std::nullopt;
  });
  replacer.recursivelyReplaceElementsIn(module);
}

/// Initial values that were computed for each module, such as rounded weights, are resources of their own: where two
/// have the same bytes, `module` takes that of `first`.
static void shareInitials(ModuleOp first, ModuleOp module) {
  SymbolTable symbols(module);
  for (auto tensor : first.getOps<train::TensorOp>()) {
    auto other = symbols.lookup<train::TensorOp>(tensor.getSymName());
    auto one = dyn_cast_or_null<DenseResourceElementsAttr>(tensor.getInitialAttr());
    auto two = other ? dyn_cast_or_null<DenseResourceElementsAttr>(other.getInitialAttr()) : nullptr;
    if (!one || !two || one == two || one.getType() != two.getType())
      continue;
    AsmResourceBlob *bytes = one.getRawHandle().getBlob(), *otherBytes = two.getRawHandle().getBlob();
    if (bytes && otherBytes && bytes->getData() == otherBytes->getData())
      other.setInitialAttr(one);
  }
}

/// Copies the tensors of `from` that are not in `to`, behind the last one there.
static void copyMissing(ModuleOp from, ModuleOp to) {
  SymbolTable symbols(to);
  Operation *last = nullptr;
  for (auto tensor : to.getOps<train::TensorOp>())
    last = tensor;
  for (auto tensor : from.getOps<train::TensorOp>()) {
    if (symbols.lookup(tensor.getSymName()))
      continue;
    Operation *copy = tensor->clone();
    Block *body = to.getBody();
    body->getOperations().insert(last ? std::next(last->getIterator()) : body->begin(), copy);
    last = copy;
  }
}

/// Puts the tensors of `module` into the order that they have in `first`.
static void sortLike(ModuleOp first, ModuleOp module) {
  SymbolTable symbols(module);
  Operation *last = nullptr;
  for (auto tensor : first.getOps<train::TensorOp>()) {
    Operation *here = symbols.lookup(tensor.getSymName());
    if (!here)
      continue; // which checkFamily() tells of
    if (last)
      here->moveAfter(last);
    else
      here->moveBefore(module.getBody(), module.getBody()->begin());
    last = here;
  }
}

void shareConstants(ArrayRef<ModuleOp> modules, const llvm::StringSet<> &known) {
  ModuleOp first = modules.front();
  llvm::DenseMap<Attribute, StringAttr> names;
  for (train::TensorOp tensor : findNew(first, known))
    names[tensor.getInitialAttr()] = tensor.getSymNameAttr();
  llvm::StringSet<> taken = listTensors(first);
  for (ModuleOp module : modules.drop_front()) {
    rename(module, known, names, taken);
    copyMissing(module, first);
  }
  for (ModuleOp module : modules.drop_front()) {
    shareInitials(first, module);
    copyMissing(first, module);
    sortLike(first, module);
  }
}

} // namespace ortc::driver
