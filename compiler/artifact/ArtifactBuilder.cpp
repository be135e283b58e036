// A placed program as an artifact's tables.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/ArtifactBuilder.h"

#include "compiler/artifact/ArtifactReader.h"
#include "compiler/artifact/TensorImage.h"
#include "compiler/passes/memory/Passes.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/TrainDialect.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace ortc::artifact {

namespace {

class Builder {
public:
  Builder(ModuleOp module, Artifact &artifact) : module(module), symbols(module), artifact(artifact) {}

  Status addTensors(const std::set<std::string> &initializers) {
    auto bytes = [&](StringRef name) { return module->getAttrOfType<IntegerAttr>(name).getInt(); };
    artifact.constants.setSize(bytes(memory::kConstantBytes));
    artifact.persistentBytes = bytes(memory::kPersistentBytes);
    artifact.persistent.setSize(bytes(memory::kStoredBytes));
    SmallVector<train::TensorOp> all;
    for (auto tensor : module.getOps<train::TensorOp>()) {
      tensors[tensor.getSymName()] = artifact.tensors.size();
      all.push_back(tensor);
      artifact.tensors.emplace_back();
    }
    for (train::TensorOp tensor : all) {
      auto type = cast<RankedTensorType>(tensor.getType());
      Tensor &row = artifact.tensors[tensors[tensor.getSymName()]];
      row.name = tensor.getName().str();
      row.role = static_cast<ortc_tensor_role>(tensor.getRole());
      if (tensor->hasAttr(train::kBound)) {
        row.role = ORTC_ROLE_INPUT;
        row.flags |=
            ORTC_TENSOR_BOUND | (tensor.getRole() == train::Role::parameter ? ORTC_TENSOR_TRAINED : 0);
      }
      taken.insert(row.name);
      row.dtype = onnxDataType(tensor, type.getElementType());
      row.dims.assign(type.getShape().begin(), type.getShape().end());
      if (auto owner = tensor.getOwner())
        row.owner = tensors.lookup(*owner);
      if (initializers.count(row.name))
        row.flags |= ORTC_TENSOR_IN_MODEL;
      if (tensor->hasAttr(train::kBound))
        continue;
      row.strides = storedStrides(tensor);
      row.offset = tensor->getAttrOfType<IntegerAttr>(memory::kOffset).getInt();
      bool constant = tensor.getRole() == train::Role::constant;
      Image &image = constant ? artifact.constants : artifact.persistent;
      if (row.offset < image.size() && !addInitial(tensor, row.offset, image))
        return Status::refusal("the initial value of '" + row.name + "' cannot be read");
    }
    return Status();
  }

  /// All inputs come before all outputs: they keep a name that both have.
  void addInputs(plan::ProgramOp program) {
    program.walk([&](plan::BufferOp buffer) {
      if (buffer.getUsage() == "input")
        ioTensor(buffer, ORTC_ROLE_INPUT, ORTC_NONE);
    });
  }

  /// `target`: number of the code that it is for, or ORTC_NONE.
  void addEntry(plan::ProgramOp program, StringRef binding, StringRef suffix, uint32_t target) {
    Entry entry;
    entry.name = (program.getRole() + "/" + binding + suffix).str();
    entry.target = target;
    entry.role = static_cast<ortc_entry_role>(findEntryRole(program.getRole()));
    entry.binding = program.getBinding();
    entry.fixedBytes = program.getBytes();
    std::map<int64_t, Value> externals;
    std::set<std::string> seen;
    program.walk([&](plan::BufferOp buffer) {
      StringRef usage = buffer.getUsage().value_or("");
      if (usage.empty() || !seen.insert((usage + ":" + buffer.getName()).str()).second)
        return;
      auto type = cast<MemRefType>(buffer.getType());
      Value value;
      value.dims.assign(type.getShape().begin(), type.getShape().end());
      if (usage == "bound") {
        value.tensor = tensors.lookup(buffer.getName());
        value.dims = artifact.tensors[value.tensor].dims;
        value.strides = storedStrides(symbols.lookup<train::TensorOp>(buffer.getName()));
        externals[buffer.getOffset()] = value;
        return;
      }
      if (buffer.getRegion() == plan::Region::external) {
        if (auto layout = buffer->getAttrOfType<FlatSymbolRefAttr>(train::kLayout)) {
          auto tensor = symbols.lookup<train::TensorOp>(layout.getAttr());
          value.dims = artifact.tensors[tensors.lookup(layout.getValue())].dims;
          value.strides = storedStrides(tensor, type.getElementType());
        }
        value.tensor = ioTensor(buffer, usage == "input" ? ORTC_ROLE_INPUT : ORTC_ROLE_OUTPUT, ORTC_NONE);
        externals[buffer.getOffset()] = value;
        return;
      }
      // New state that crosses from a gradients entry to its update entry is nobody's gradient.
      if (usage == "gradient" &&
          symbols.lookup<train::TensorOp>(buffer.getName()).getRole() != train::Role::parameter)
        return;
      value.region = ORTC_REGION_TRANSIENT;
      value.offset = buffer.getOffset();
      if (usage == "loss") {
        value.tensor = ioTensor(buffer, ORTC_ROLE_LOSS, ORTC_NONE);
        value.dims.clear();
        lossIndex = entry.internal.size();
      } else {
        addGradient(buffer, value);
      }
      entry.internal.push_back(value);
    });
    for (auto &[index, value] : externals)
      entry.external.push_back(value);
    if (lossIndex) {
      entry.loss = entry.external.size() + *lossIndex;
      lossIndex.reset();
    }
    artifact.entries.push_back(std::move(entry));
  }

private:
  /// Whether a tensor or an input has the name, which a graph's output may have as well: then it gives back
  /// their value.
  bool isTaken(const std::string &name) const { return taken.contains(name); }

  /// The row of an input, output, gradient or loss; one per role and name.
  uint32_t ioTensor(plan::BufferOp buffer, ortc_tensor_role role, uint32_t owner) {
    std::string name = buffer.getName().str();
    auto [found, isNew] = others.try_emplace({role, name}, artifact.tensors.size());
    if (isNew) {
      auto type = cast<MemRefType>(buffer.getType());
      Tensor row;
      row.name = owner == ORTC_NONE ? name : artifact.tensors[owner].name;
      if (role == ORTC_ROLE_OUTPUT && isTaken(name))
        row.name = "output:" + name; // hosts find values by name
      row.role = role;
      row.dtype = onnxDataType(buffer, type.getElementType());
      auto layout = buffer->getAttrOfType<FlatSymbolRefAttr>(train::kLayout);
      if (layout)
        row.owner = owner = tensors.lookup(layout.getValue());
      if (role == ORTC_ROLE_GRADIENT || layout)
        row.dims = artifact.tensors[owner].dims;
      else if (role != ORTC_ROLE_LOSS)
        row.dims.assign(type.getShape().begin(), type.getShape().end());
      row.owner = owner;
      if (role == ORTC_ROLE_INPUT)
        taken.insert(row.name);
      artifact.tensors.push_back(row);
    }
    return found->second;
  }

  /// A gradient lies in the layout of its parameter; its elements may be wider.
  void addGradient(plan::BufferOp buffer, Value &value) {
    uint32_t owner = tensors.lookup(buffer.getName());
    auto tensor = symbols.lookup<train::TensorOp>(buffer.getName());
    value.tensor = ioTensor(buffer, ORTC_ROLE_GRADIENT, owner);
    value.dims = artifact.tensors[owner].dims;
    value.strides = storedStrides(tensor, cast<MemRefType>(buffer.getType()).getElementType());
  }

  ModuleOp module;
  SymbolTable symbols;
  Artifact &artifact;
  llvm::StringMap<uint32_t> tensors;
  std::map<std::pair<uint32_t, std::string>, uint32_t> others;
  llvm::StringSet<> taken; ///< names of tensors and inputs
  std::optional<size_t> lossIndex;
};

} // namespace

Expected<Artifact> buildArtifact(const std::vector<PlacedProgram> &programs, const CompileOptions &options,
                                 const std::set<std::string> &initializers) {
  ModuleOp first = programs.front().ir;
  Artifact artifact;
  Builder builder(first, artifact);
  ORTC_TRY(builder.addTensors(initializers));
  for (const BindingSpec &binding : options.bindings)
    artifact.bindings.push_back(binding.name);
  for (auto program : first.getOps<plan::ProgramOp>())
    builder.addInputs(program);
  auto addEntries = [&](const PlacedProgram &from, uint32_t target) {
    for (auto program : ModuleOp(from.ir).getOps<plan::ProgramOp>())
      builder.addEntry(program, options.bindings[program.getBinding()].name, from.entrySuffix, target);
  };
  for (const PlacedProgram &program : programs) {
    if (programs.size() == 1)
      addEntries(program, ORTC_NONE);
    for (const Code &code : program.codes) {
      if (programs.size() > 1)
        addEntries(program, artifact.codes.size());
      artifact.codes.push_back(code);
    }
    llvm::append_range(artifact.kernelNames, program.kernels.names);
  }
  artifact.maxWorkers = options.maxWorkers;
  artifact.checkNames = programs.back().kernels.checkNames;
  return artifact;
}

} // namespace ortc::artifact
