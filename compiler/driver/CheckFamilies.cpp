// What all families of targets must have in common.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/CheckFamilies.h"

#include "compiler/passes/memory/Passes.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/TrainDialect.h"

#include <map>
#include <vector>

using namespace mlir;

namespace ortc::driver {

namespace {

/// A thing that must be the same, and what it is. Both modules have one context, where equal attributes are one.
struct Fact {
  std::string name;
  Attribute value;
};

} // namespace

/// What the host sees of an entry: inputs and outputs with their places and shapes, and which of loss and gradients
/// there are. Kernels may see the same memory in other shapes, in any order.
static Attribute describeEntry(plan::ProgramOp program) {
  Builder builder(program.getContext());
  std::map<std::string, Attribute> values;
  program.walk([&](plan::BufferOp buffer) {
    StringRef usage = buffer.getUsage().value_or("");
    if (usage.empty())
      return;
    Attribute value = builder.getUnitAttr();
    if (buffer.getRegion() == plan::Region::external) // the first buffer of a name has the host's shape
      value = builder.getArrayAttr(
          {builder.getI64IntegerAttr(buffer.getOffset()), TypeAttr::get(buffer.getType())});
    values.try_emplace((usage + " " + buffer.getName()).str(), value);
  });
  SmallVector<Attribute> all{program.getRoleAttr(), builder.getI64IntegerAttr(program.getBinding())};
  for (auto &[name, value] : values)
    all.append({builder.getStringAttr(name), value});
  return builder.getArrayAttr(all);
}

/// The regions' sizes, the rows of the tensor table, and the entries.
static std::vector<Fact> listFacts(ModuleOp module) {
  std::vector<Fact> facts;
  for (StringRef size : {memory::kConstantBytes, memory::kPersistentBytes, memory::kStoredBytes})
    facts.push_back({size.str(), module->getAttr(size)});
  for (auto tensor : module.getOps<train::TensorOp>())
    facts.push_back({"tensor '" + tensor.getName().str() + "'", tensor->getAttrDictionary()});
  for (auto program : module.getOps<plan::ProgramOp>())
    facts.push_back({"entry '" + program.getSymName().str() + "'", describeEntry(program)});
  return facts;
}

Status checkFamily(ModuleOp first, ModuleOp other, const std::string &name) {
  std::vector<Fact> wanted = listFacts(first), given = listFacts(other);
  for (size_t i = 0; i < std::max(wanted.size(), given.size()); ++i) {
    const bool isThere = i < wanted.size() && i < given.size() && wanted[i].name == given[i].name;
    if (!isThere || wanted[i].value != given[i].value)
      return Status::failure("the program for " + name + " has another " +
                             (i < wanted.size() ? wanted[i] : given[i]).name +
                             " than that for the first family of targets; please report this with the model");
  }
  return Status();
}

} // namespace ortc::driver
