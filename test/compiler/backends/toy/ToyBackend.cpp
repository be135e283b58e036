// A family of one target that makes no code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/toy/ToyBackend.h"

#include "compiler/artifact/ArtifactReader.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "ortc/call.h"

#include <cstring>

using namespace mlir;

namespace ortc::test {

namespace {

class ToyTarget : public backends::Target {
public:
  const std::string &getName() const override { return name; }
  std::string describe(Numerics) const override { return name; }
  bool canRunHere() const override { return false; }

  Status survey(ModuleOp module, const backends::CodeOptions &, bool) override {
    Builder builder(module.getContext());
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(plan::kKind)) {
        function->setAttr(plan::kTime, builder.getI64IntegerAttr(1));
        function->setAttr(plan::kScratch, builder.getI64IntegerAttr(0));
      }
    return Status();
  }

  Expected<std::unique_ptr<backends::TargetCode>>
  link(ModuleOp module, const kernels::ProgramKernels &kernels, const backends::CodeOptions &) override {
    auto code = std::make_unique<backends::TargetCode>();
    for (const std::string &kernel : kernels.names)
      code->kernels.emplace_back().name = kernel;
    code->section = {name, ORTC_ARCH_NONE, 0, makeHead(module)};
    return std::unique_ptr<backends::TargetCode>(std::move(code));
  }

  backends::KernelEstimates estimate(const std::vector<kernels::KernelWork> &works, bool) const override {
    backends::KernelEstimates estimates;
    estimates.seconds.assign(works.size(), 1);
    return estimates;
  }

  Expected<std::vector<double>> measure(ModuleOp, const kernels::ProgramKernels &,
                                        const backends::TargetCode &) const override {
    return Status::failure("toys do not run");
  }
  Expected<std::unique_ptr<backends::TargetCode>>
  compileVariants(ModuleOp, const std::vector<backends::KernelVariant> &,
                  const backends::CodeOptions &) const override {
    return Status::failure("toys do not run");
  }
  Expected<std::vector<double>> timeInTurns(plan::StepOp, const backends::TargetCode &,
                                            const std::vector<size_t> &) const override {
    return Status::failure("toys do not run");
  }

private:
  /// Names a step for each program, all of them at the one byte behind the head.
  static artifact::Bytes makeHead(ModuleOp module) {
    std::vector<ortc_blob_entry> entries;
    for (auto program : module.getOps<plan::ProgramOp>())
      entries.push_back({static_cast<uint32_t>(artifact::findEntryRole(program.getRole())),
                         static_cast<uint32_t>(program.getBinding()), 0, 0});
    const size_t headBytes = sizeof(ortc_blob) + entries.size() * sizeof(ortc_blob_entry);
    for (ortc_blob_entry &entry : entries)
      entry.offset = static_cast<uint32_t>(headBytes);
    const ortc_blob head{ORTC_BLOB_MAGIC, ORTC_CALL_ABI, static_cast<uint32_t>(entries.size()),
                         sizeof(ortc_blob_entry)};
    artifact::Bytes bytes(headBytes + 1);
    std::memcpy(bytes.data(), &head, sizeof head);
    std::memcpy(bytes.data() + sizeof head, entries.data(), headBytes - sizeof head);
    return bytes;
  }

  const std::string name = "toy";
};

} // namespace

llvm::ArrayRef<llvm::StringRef> ToyBackend::targetNames() const {
  static constexpr llvm::StringRef names[] = {"toy"};
  return names;
}

std::unique_ptr<backends::Target> ToyBackend::findTarget(llvm::StringRef name,
                                                         const backends::TargetOptions &) const {
  return name == "toy" ? std::make_unique<ToyTarget>() : nullptr;
}

kernels::FusionLimits ToyBackend::fusionLimits(Numerics) const {
  kernels::FusionLimits limits;
  limits.operations = 1;
  limits.epilogueOperations = 1;
  return limits;
}

} // namespace ortc::test
