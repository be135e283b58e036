// Translates to LLVM IR, optimises and emits an ELF object in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/Object.h"

#include "compiler/backends/KernelCache.h"
#include "compiler/backends/cpu/isa/Architecture.h"
#include "compiler/backends/cpu/object/LongIntegers.h"
#include "compiler/backends/cpu/object/NarrowIndices.h"
#include "compiler/backends/cpu/object/SoftDoubles.h"
#include "compiler/backends/cpu/object/StoredObject.h"
#include "compiler/backends/emit/LlvmModule.h"

#include "llvm/CodeGen/AsmPrinter.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

namespace ortc::cpu {

using namespace emit;

static llvm::Error error(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// A module of WebAssembly has memory of its own.
static llvm::Reloc::Model relocationOf(const Target &target) {
  return target.isa.architecture->isModule() ? llvm::Reloc::Static : llvm::Reloc::PIC_;
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createMachine(const Target &target) {
  llvm::Triple triple(target.isa.triple);
  std::string message;
  const llvm::Target *found = findLlvmTarget(triple, message);
  if (!found)
    return error("no code generator for target '" + target.name + "': " + message);
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(
      triple, target.isa.cpu, target.isa.features, makeTargetOptions(), relocationOf(target),
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return error("LLVM refuses target '" + target.name + "' (" + target.isa.cpu + ")");
  return machine;
}

/// What every function of a blob is: callable only from within it, not unwinding, importing nothing.
static void setFunctionAttributes(llvm::Module &module, const Target &target, bool optimizeForSize) {
  for (llvm::Function &function : module) {
    if (function.isIntrinsic())
      continue;
    if (!function.hasLocalLinkage()) {
      function.setVisibility(llvm::GlobalValue::HiddenVisibility);
      function.setDSOLocal(true);
    }
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (function.isDeclaration())
      continue;
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoRedZone);
    function.addFnAttr("frame-pointer", "none");
    // Windows makes a thread's stack larger by one page at a time: a frame of more is touched page by page.
    if (target.isa.architecture->format() == ORTC_ARCH_X86_64)
      function.addFnAttr("probe-stack", "inline-asm");
    function.addFnAttr("target-cpu", target.isa.cpu);
    if (!target.isa.features.empty())
      function.addFnAttr("target-features", target.isa.features);
    if (!target.isa.tuneCpu.empty())
      function.addFnAttr("tune-cpu", target.isa.tuneCpu);
    if (optimizeForSize)
      function.addFnAttr(llvm::Attribute::OptimizeForSize);
  }
}

namespace {

/// LLVM's own pipeline, with a look at the frames before the code is printed.
class EmissionPasses : public llvm::legacy::PassManager {
public:
  EmissionPasses(StackFrames &frames, const Architecture &architecture)
      : frames(frames), architecture(architecture) {}
  void add(llvm::Pass *pass) override {
    if (dynamic_cast<llvm::AsmPrinter *>(pass))
      PassManager::add(createStackFramePass(frames, architecture));
    PassManager::add(pass);
  }

private:
  StackFrames &frames;
  const Architecture &architecture;
};

} // namespace

/// LLVM IR as the object needs it.
static llvm::Error prepare(llvm::Module &code, const llvm::TargetMachine &machine, const Target &target,
                           bool optimizeForSize) {
  if (machine.isPositionIndependent())
    code.setPICLevel(llvm::PICLevel::SmallPIC);
  setFunctionAttributes(code, target, optimizeForSize);
  for (llvm::GlobalVariable &global : code.globals()) {
    if (!global.isConstant())
      return error("global '" + global.getName() + "' is writable, a code blob has no data");
    global.setDSOLocal(true);
  }
  return llvm::Error::success();
}

/// The name of an object, by all that compile() and LLVM know beside the module.
static std::string makeKey(const llvm::Module &code, const Target &target, bool optimizeForSize) {
  const Isa &isa = target.isa;
  std::string how;
  llvm::raw_string_ostream(how) << isa.triple << ' ' << isa.cpu << ' ' << isa.features << ' ' << isa.tuneCpu
                                << ' ' << optimizeForSize << ' ' << isa.softDoubles << ' ' << isa.expandsLong;
  return backends::KernelCache::makeKey(code, how);
}

/// Optimises the module, and makes the object.
static llvm::Expected<Object> compile(llvm::Module &code, llvm::TargetMachine &machine, const Target &target,
                                      const ObjectOptions &options) {
  if (target.isa.expandsLong)
    narrowIndices(code);
  optimize(code, machine,
           options.optimizeForSize ? llvm::OptimizationLevel::Os : llvm::OptimizationLevel::O2);
  if (target.isa.softDoubles) // conversions of i64 with less code than by f64
    expandDoubles(code);
  if (target.isa.expandsLong)
    expandLongIntegers(code);
  if (options.onOptimized)
    options.onOptimized(code);

  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  Object object;
  object.architecture = target.isa.architecture;
  EmissionPasses passes(object.frames, *object.architecture);
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile,
                                  /*DisableVerify=*/true))
    return error("LLVM cannot emit objects for target '" + target.name + "'");
  passes.run(code);
  object.bytes.assign(buffer.begin(), buffer.end());
  return object;
}

llvm::Expected<Object> emitObject(mlir::ModuleOp module, const Target &target, const ObjectOptions &options) {
  auto machine = createMachine(target);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateToLLVMIR(module, context, **machine);
  if (!code)
    return error("translation to LLVM IR failed");
  if (llvm::Error failed = prepare(*code, **machine, target, options.optimizeForSize))
    return failed;
  if (!options.cache || options.onOptimized)
    return compile(*code, **machine, target, options);
  const std::string key = makeKey(*code, target, options.optimizeForSize);
  if (std::optional<std::string> kept = options.cache->find(key))
    if (std::optional<Object> object = readObject(*kept, *target.isa.architecture))
      return std::move(*object);
  auto object = compile(*code, **machine, target, options);
  if (object)
    options.cache->keep(key, writeObject(*object));
  return object;
}

} // namespace ortc::cpu
