// From a module of kernels to code of a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/object/DeviceCode.h"

#include "compiler/backends/KernelCache.h"
#include "compiler/backends/emit/Linker.h"
#include "compiler/backends/emit/LlvmModule.h"
#include "compiler/backends/emit/Lowering.h"
#include "compiler/backends/gpu/KernelBuilder.h"
#include "compiler/backends/gpu/object/KernelArguments.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;

namespace ortc::gpu {

static Expected<std::unique_ptr<llvm::TargetMachine>> createMachine(const Processor &processor) {
  llvm::Triple triple(processor.triple);
  std::string message;
  const llvm::Target *found = findLlvmTarget(triple, message);
  if (!found)
    return Status::failure("no code generator for target '" + processor.name.str() + "': " + message);
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(triple, processor.name, processor.features, makeTargetOptions(),
                                 llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return Status::failure("LLVM refuses target '" + processor.name.str() + "'");
  return machine;
}

/// Bits of an index: 32 where neither buffers nor launches have more elements or threads than that counts, which halves
/// the registers for addresses. Not where there are vectors, whose lowering knows 64 bits only.
static unsigned chooseIndexBits(ModuleOp module) {
  constexpr int64_t kMostElements = int64_t(1)
                                    << 30; // positions of a grid's last block and of padding fit, too
  for (auto function : module.getOps<func::FuncOp>())
    if (auto blocks = function->getAttrOfType<IntegerAttr>(kBlocksAttribute);
        blocks &&
        blocks.getInt() > kMostElements / function->getAttrOfType<IntegerAttr>(kThreadsAttribute).getInt())
      return 64;
  WalkResult found = module->walk([&](Operation *op) {
    bool isWide = isa<vector::VectorDialect>(op->getDialect());
    for (Type type : op->getOperandTypes())
      if (auto buffer = dyn_cast<MemRefType>(type))
        isWide |= buffer.getNumElements() > kMostElements;
    return isWide ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted() ? 64 : 32;
}

/// Marks what is launched for its vendor; all else is inlined.
static void markKernels(ModuleOp module, const Processor &processor, Numerics numerics) {
  Builder builder(module.getContext());
  auto pair = [&](StringRef key, const std::string &value) {
    return builder.getArrayAttr({builder.getStringAttr(key), builder.getStringAttr(value)});
  };
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    const char *denormals = denormalsAreZero(numerics) ? "preserve-sign,preserve-sign" : "ieee,ieee";
    SmallVector<Attribute> attributes{pair("denormal-fp-math-f32", denormals),
                                      builder.getStringAttr("nounwind"),
                                      builder.getStringAttr("no-builtins")};
    auto threads = function->getAttrOfType<IntegerAttr>(kThreadsAttribute);
    if (!threads && !function.isExternal()) {
      function.setLinkage(LLVM::Linkage::Internal);
      attributes.push_back(builder.getStringAttr("alwaysinline"));
    }
    if (threads) {
      auto blocks = function->getAttrOfType<IntegerAttr>(kBlocksAttribute),
           resident = function->getAttrOfType<IntegerAttr>(kResidentAttribute);
      // Where there is one block, no others want registers: ptxas need not spill to leave them some.
      if (blocks && blocks.getInt() == 1)
        resident = blocks;
      if (processor.isNvidia() && resident)
        attributes.push_back(pair("nvvm.minctasm", std::to_string(resident.getInt())));
      function->removeAttr(kThreadsAttribute);
      function->removeAttr(kBlocksAttribute);
      function->removeAttr(kResidentAttribute);
      std::string count = std::to_string(threads.getInt());
      function.setCConv(processor.isNvidia() ? LLVM::CConv::PTX_Kernel : LLVM::CConv::AMDGPU_KERNEL);
      attributes.push_back(processor.isNvidia() ? pair("nvvm.maxntid", count)
                                                : pair("amdgpu-flat-work-group-size", count + "," + count));
    }
    function.setPassthroughAttr(builder.getArrayAttr(attributes));
  }
}

static bool isBarrier(const llvm::Instruction &instruction) {
  auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  return call && (call->getIntrinsicID() == llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all ||
                  call->getIntrinsicID() == llvm::Intrinsic::amdgcn_s_barrier);
}

/// Loops with barriers are not unrolled. Else LLVM sinks the sums behind the last barrier, to the threads that store
/// them, and every number that they add is kept in a register until then.
static void keepLoopsWithBarriers(llvm::Function &function) {
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  for (llvm::Loop *loop : loops.getLoopsInPreorder())
    if (llvm::any_of(loop->blocks(), [](llvm::BasicBlock *block) { return llvm::any_of(*block, isBarrier); }))
      loop->setLoopAlreadyUnrolled();
}

/// Assembly is for tensor cores, and all lanes execute it together.
static void markConvergent(llvm::Function &function) {
  for (llvm::Instruction &instruction : llvm::instructions(function))
    if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction); call && call->isInlineAsm())
      call->setConvergent();
}

/// Without `.version`, `.target` and `.address_size`, which an image has once.
static std::string withoutHead(StringRef text) {
  size_t head = text.find(".address_size");
  return head == StringRef::npos ? text.str() : text.substr(text.find('\n', head) + 1).str();
}

static Expected<std::string> generate(llvm::Module &code, llvm::TargetMachine &machine,
                                      llvm::CodeGenFileType kind) {
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, kind, /*DisableVerify=*/true))
    return Status::failure("LLVM cannot emit code for target '" + machine.getTargetCPU().str() + "'");
  passes.run(code);
  return std::string(buffer.begin(), buffer.end());
}

/// The code that `make` makes of a module, or made before. `stage`: which of its codes, as a kernel has two.
static Expected<std::string> findOrMake(llvm::Module &code, const Processor &processor,
                                        backends::KernelCache *cache, StringRef stage,
                                        llvm::function_ref<Expected<std::string>()> make) {
  if (!cache)
    return make();
  std::string key = backends::KernelCache::makeKey(
      code, (stage + " " + processor.triple + " " + processor.name + " " + processor.features).str());
  if (std::optional<std::string> kept = cache->find(key))
    return std::move(*kept);
  Expected<std::string> made = make();
  if (made)
    cache->keep(key, *made);
  return made;
}

/// Optimises the module, and makes PTX or bitcode.
static Expected<std::string> compile(llvm::Module &code, llvm::TargetMachine &machine,
                                     const Processor &processor) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  optimize(code, machine, llvm::OptimizationLevel::O2, tuning);
  for (llvm::Function &function : code)
    if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty())
      return Status::failure("device function '" + function.getName().str() + "' is not defined");
  if (processor.isNvidia()) {
    Expected<std::string> text = generate(code, machine, llvm::CodeGenFileType::AssemblyFile);
    return text ? Expected<std::string>(withoutHead(*text)) : text;
  }
  std::string bitcode;
  llvm::raw_string_ostream stream(bitcode);
  llvm::WriteBitcodeToFile(code, stream);
  return bitcode;
}

Expected<std::string> emitDeviceCode(ModuleOp module, const Processor &processor, Numerics numerics,
                                     backends::KernelCache *cache) {
  Expected<std::unique_ptr<llvm::TargetMachine>> machine = createMachine(processor);
  if (!machine)
    return machine.getStatus();
  if (failed(convertToLLVM(module, {chooseIndexBits(module)})))
    return Status::failure("lowering failed");
  markKernels(module, processor, numerics);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateToLLVMIR(module, context, **machine);
  if (!code)
    return Status::failure("translation to LLVM IR failed");
  for (llvm::Function &function : *code)
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", processor.name);
      markConvergent(function);
      keepLoopsWithBarriers(function);
    }
  // LLVM's default is version 6, which HIP 6 knew late (CLR of October 2024 refuses it) and nothing here needs.
  if (!processor.isNvidia())
    code->addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", 500);
  return findOrMake(*code, processor, cache, "kernel", [&] { return compile(*code, **machine, processor); });
}

/// AMD's loader reads one description of all kernels of an object: they are one module.
static Expected<std::string> generateTogether(const std::vector<std::string> &pieces,
                                              const Processor &processor, backends::KernelCache *cache) {
  Expected<std::unique_ptr<llvm::TargetMachine>> machine = createMachine(processor);
  if (!machine)
    return machine.getStatus();
  llvm::LLVMContext context;
  llvm::Module whole("ortc", context);
  whole.setTargetTriple(llvm::Triple(processor.triple));
  whole.setDataLayout((*machine)->createDataLayout());
  llvm::Linker linker(whole);
  for (const std::string &piece : pieces) {
    auto module = llvm::parseBitcodeFile(llvm::MemoryBufferRef(piece, "kernel"), context);
    if (!module)
      return Status::failure("a kernel's code cannot be read back: " + llvm::toString(module.takeError()));
    if (linker.linkInModule(std::move(*module)))
      return Status::failure("kernels cannot be put together");
  }
  loadArgumentsWhereUsed(whole);
  return findOrMake(whole, processor, cache, "image",
                    [&] { return generate(whole, **machine, llvm::CodeGenFileType::ObjectFile); });
}

Expected<std::vector<uint8_t>> linkDeviceCode(const std::vector<std::string> &pieces,
                                              const Processor &processor, backends::KernelCache *cache) {
  if (!processor.isNvidia()) {
    Expected<std::string> object = generateTogether(pieces, processor, cache);
    if (!object)
      return object.getStatus();
    auto linked = runLinker(LinkerFlavour::Elf, {"-shared", "--no-undefined"}, {StringRef(*object)});
    if (!linked)
      return Status::failure("linking the GPU's code failed: " + linked.getStatus().getMessage());
    return linked;
  }
  // "+ptx70" is version 7.0.
  StringRef version = processor.features.drop_front(StringRef("+ptx").size());
  std::string text = "//\n// ortc\n//\n.version " + version.drop_back().str() + "." +
                     version.take_back().str() + "\n.target " + processor.name.str() + "\n.address_size 64\n";
  for (const std::string &piece : pieces)
    text += piece;
  std::vector<uint8_t> bytes(text.begin(), text.end());
  bytes.push_back(0);
  return bytes;
}

} // namespace ortc::gpu
