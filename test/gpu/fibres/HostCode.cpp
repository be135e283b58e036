// Bitcode that was made for an AMD GPU as functions of this process.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/fibres/HostCode.h"

#include "compiler/backends/emit/LlvmModule.h"
#include "test/gpu/fibres/Fibres.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"

#include <cstring>

using namespace llvm;

namespace ortc::fibres {
namespace {

constexpr unsigned kSharedSpace = 3; // of AMD's address spaces

/// A function that stands for an intrinsic of the GPU.
struct Stand {
  StringRef intrinsic, name; ///< intrinsic: as far as its name does not depend on types
  void *address;
  bool takesPlace; ///< as a further argument
};
const Stand kStands[] = {
    {"llvm.amdgcn.workitem.id.x", "fibre_thread", reinterpret_cast<void *>(thread), false},
    {"llvm.amdgcn.workgroup.id.x", "fibre_block", reinterpret_cast<void *>(block), false},
    {"llvm.amdgcn.mbcnt.lo", "fibre_count_lower", reinterpret_cast<void *>(countLower), false},
    {"llvm.amdgcn.mbcnt.hi", "fibre_count_upper", reinterpret_cast<void *>(countUpper), false},
    {"llvm.amdgcn.s.barrier", "fibre_meet_in_block", reinterpret_cast<void *>(meetInBlock), true},
    {"llvm.amdgcn.wave.barrier", "fibre_meet_in_wavefront", reinterpret_cast<void *>(meetInWavefront), true},
    {"llvm.amdgcn.ds.bpermute", "fibre_permute", reinterpret_cast<void *>(permute), true},
};

/// For a product of matrices, whose operands are too wide for arguments.
void multiplyMatrices(const MatrixUnit *unit, const void *first, const void *second, const float *sums,
                      float *result, uint32_t place) {
  multiplyInWavefront(*unit, {first, second, sums, result}, place);
}
constexpr StringRef kMultiply = "fibre_multiply";

/// What a block may share at most, and room for places that a fault moves beyond it.
constexpr uint64_t kMostShared = (64 << 10) + 4096;

/// Makes code of the host from a module, in place.
class Rewriter {
public:
  explicit Rewriter(Module &module) : module(module) {}
  Status run();
  std::vector<std::pair<std::string, size_t>> shared;
  bool hasProducts = false;

private:
  Status remove(CallInst &assembly);
  Status replace(CallInst &call);
  Status replaceProduct(CallInst &call);
  void giveSpace(GlobalVariable &variable);
  void addEntry(Function &kernel);

  Module &module;
  uint32_t places = 0;
  std::string processor;
};

Status Rewriter::run() {
  std::vector<Function *> kernels;
  std::vector<CallInst *> calls, assemblies;
  std::vector<Instruction *> fences;
  for (Function &function : module) {
    if (function.getCallingConv() == CallingConv::AMDGPU_KERNEL)
      kernels.push_back(&function);
    if (function.hasFnAttribute("target-cpu"))
      processor = function.getFnAttribute("target-cpu").getValueAsString().str();
    function.setCallingConv(CallingConv::C);
    if (!function.isDeclaration())
      function.setAttributes({}); // among them the processor
    for (Instruction &instruction : instructions(function)) {
      if (auto *call = dyn_cast<CallInst>(&instruction);
          call && call->getCalledFunction() &&
          call->getCalledFunction()->getName().starts_with("llvm.amdgcn."))
        calls.push_back(call);
      if (auto *call = dyn_cast<CallInst>(&instruction); call && call->isInlineAsm())
        assemblies.push_back(call);
      if (isa<FenceInst>(instruction))
        fences.push_back(&instruction); // fibres see each other's writes
    }
  }
  for (Instruction *fence : fences)
    fence->eraseFromParent();
  for (CallInst *assembly : assemblies)
    ORTC_TRY(remove(*assembly));
  for (CallInst *call : calls)
    ORTC_TRY(replace(*call));
  for (GlobalVariable &variable : make_early_inc_range(module.globals()))
    if (variable.getAddressSpace() == kSharedSpace && variable.getValueType()->isEmptyTy())
      giveSpace(variable);
  for (GlobalVariable &variable : module.globals())
    if (variable.getAddressSpace() == kSharedSpace) {
      variable.setLinkage(GlobalValue::ExternalLinkage); // other lanes write it during a call
      variable.setInitializer(Constant::getNullValue(variable.getValueType()));
      shared.emplace_back(variable.getName(),
                          module.getDataLayout().getTypeAllocSize(variable.getValueType()));
    }
  for (Function *kernel : kernels)
    addEntry(*kernel);
  std::string text;
  raw_string_ostream stream(text);
  return verifyModule(module, &stream) ? Status::failure(text) : Status();
}

/// An array whose size the launch says gets all that there is.
void Rewriter::giveSpace(GlobalVariable &variable) {
  auto *type = ArrayType::get(Type::getInt8Ty(module.getContext()), kMostShared);
  auto *space = new GlobalVariable(module, type, /*isConstant=*/false, GlobalValue::ExternalLinkage, nullptr,
                                   "", &variable, GlobalValue::NotThreadLocal, kSharedSpace);
  space->setAlignment(variable.getAlign());
  space->takeName(&variable);
  variable.replaceAllUsesWith(space);
  variable.eraseFromParent();
}

/// Operands and sums lie on the lane's stack.
Status Rewriter::replaceProduct(CallInst &call) {
  const MatrixUnit *unit = findMatrixUnit(call.getCalledFunction()->getName(), processor);
  if (!unit)
    return Status::failure("fibres have no " + call.getCalledFunction()->getName().str() + " of " +
                           processor);
  IRBuilder<> builder(&call), entry(&call.getFunction()->getEntryBlock().front());
  Type *pointer = builder.getPtrTy();
  SmallVector<Value *> arguments{
      builder.CreateIntToPtr(builder.getInt64(reinterpret_cast<uint64_t>(unit)), pointer)};
  for (unsigned i = 0; i < 3; ++i) {
    arguments.push_back(entry.CreateAlloca(call.getArgOperand(i)->getType()));
    builder.CreateStore(call.getArgOperand(i), arguments.back());
  }
  arguments.push_back(entry.CreateAlloca(call.getType()));
  Value *result = arguments.back();
  arguments.push_back(builder.getInt32(places++));
  SmallVector<Type *> types;
  for (Value *argument : arguments)
    types.push_back(argument->getType());
  builder.CreateCall(module.getOrInsertFunction(
                         kMultiply, FunctionType::get(builder.getVoidTy(), types, /*isVarArg=*/false)),
                     arguments);
  call.replaceAllUsesWith(builder.CreateLoad(call.getType(), result));
  call.eraseFromParent();
  hasProducts = true;
  return {};
}

/// Of no instruction: there are those that give their operand on, and comments.
Status Rewriter::remove(CallInst &assembly) {
  StringRef text = cast<InlineAsm>(assembly.getCalledOperand())->getAsmString();
  if (!text.empty() && !text.starts_with(";"))
    return Status::failure("fibres have no assembly '" + text.str() + "'");
  if (!assembly.getType()->isVoidTy())
    assembly.replaceAllUsesWith(assembly.getArgOperand(0));
  assembly.eraseFromParent();
  return {};
}

Status Rewriter::replace(CallInst &call) {
  StringRef name = call.getCalledFunction()->getName();
  if (name.contains(".mfma.") || name.contains(".wmma."))
    return replaceProduct(call);
  if (name.starts_with("llvm.amdgcn.sched.")) { // for the code generator alone
    call.eraseFromParent();
    return {};
  }
  const Stand *stand = find_if(kStands, [&](const Stand &each) { return name.starts_with(each.intrinsic); });
  if (stand == std::end(kStands))
    return Status::failure("fibres have no " + name.str());
  IRBuilder<> builder(&call);
  SmallVector<Value *> arguments(call.args());
  if (stand->takesPlace)
    arguments.push_back(builder.getInt32(places++));
  SmallVector<Type *> types;
  for (Value *argument : arguments)
    types.push_back(argument->getType());
  FunctionCallee callee =
      module.getOrInsertFunction(stand->name, FunctionType::get(call.getType(), types, /*isVarArg=*/false));
  call.replaceAllUsesWith(builder.CreateCall(callee, arguments));
  call.eraseFromParent();
  return {};
}

/// void lane_of_<kernel>(ptr arguments): calls the kernel with the pointers that lie there.
void Rewriter::addEntry(Function &kernel) {
  LLVMContext &context = module.getContext();
  Type *pointer = PointerType::get(context, 0);
  auto *entry = Function::Create(FunctionType::get(Type::getVoidTy(context), {pointer}, false),
                                 GlobalValue::ExternalLinkage, "lane_of_" + kernel.getName(), module);
  IRBuilder<> builder(BasicBlock::Create(context, "", entry));
  SmallVector<Value *> arguments;
  for (auto [i, argument] : enumerate(kernel.args())) {
    Value *place = builder.CreateConstGEP1_64(pointer, entry->getArg(0), i);
    arguments.push_back(builder.CreateAddrSpaceCast(builder.CreateLoad(pointer, place), argument.getType()));
  }
  builder.CreateCall(&kernel, arguments);
  builder.CreateRetVoid();
}

template <typename T> Expected<T> take(llvm::Expected<T> given) {
  if (!given)
    return Status::failure(toString(given.takeError()));
  return std::move(*given);
}

Expected<std::unique_ptr<orc::LLJIT>> createMachine() {
  std::string message;
  (void)emit::findLlvmTarget(Triple(), message); // registers all targets
  auto host = take(orc::JITTargetMachineBuilder::detectHost());
  if (!host)
    return host.getStatus();
  host->getOptions().AllowFPOpFusion = FPOpFusion::Strict;
  auto machine = take(orc::LLJITBuilder().setJITTargetMachineBuilder(*host).create());
  if (!machine)
    return machine;
  orc::SymbolMap symbols;
  for (const Stand &stand : kStands)
    symbols[(*machine)->mangleAndIntern(stand.name)] = {orc::ExecutorAddr::fromPtr(stand.address),
                                                        JITSymbolFlags::Exported};
  symbols[(*machine)->mangleAndIntern(kMultiply)] = {
      orc::ExecutorAddr::fromPtr(reinterpret_cast<void *>(multiplyMatrices)), JITSymbolFlags::Exported};
  if (Error error = (*machine)->getMainJITDylib().define(orc::absoluteSymbols(std::move(symbols))))
    return Status::failure(toString(std::move(error)));
  // Numbers that the host has no instruction for.
  auto process = take(orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      (*machine)->getDataLayout().getGlobalPrefix()));
  if (!process)
    return process.getStatus();
  (*machine)->getMainJITDylib().addGenerator(std::move(*process));
  return machine;
}

Expected<std::unique_ptr<Module>> parse(const std::string &bitcode, LLVMContext &context) {
  return take(parseBitcodeFile(MemoryBufferRef(bitcode, "kernel"), context));
}

} // namespace

Expected<std::vector<Fault>> HostCode::listFaults(const std::string &bitcode) {
  LLVMContext context;
  auto module = parse(bitcode, context);
  if (!module)
    return module.getStatus();
  return fibres::listFaults(**module);
}

Expected<HostCode> HostCode::load(const std::string &bitcode, const Fault *fault) {
  auto context = std::make_unique<LLVMContext>();
  auto module = parse(bitcode, *context);
  if (!module)
    return module.getStatus();
  if (fault)
    putFault(**module, *fault);
  HostCode code;
  ORTC_TRY(createMachine().moveTo(code.machine));
  (*module)->setTargetTriple(code.machine->getTargetTriple());
  (*module)->setDataLayout(code.machine->getDataLayout());
  Rewriter rewriter(**module);
  ORTC_TRY(rewriter.run());
  code.hasProducts = rewriter.hasProducts;
  if (Error error = code.machine->addIRModule(orc::ThreadSafeModule(std::move(*module), std::move(context))))
    return Status::failure(toString(std::move(error)));
  for (auto &[name, bytes] : rewriter.shared) {
    auto found = take(code.machine->lookup(name));
    if (!found)
      return found.getStatus();
    code.shared.push_back({name, bytes, found->toPtr<void *>()});
  }
  return code;
}

HostCode::Lane HostCode::find(const std::string &kernel) const {
  auto found = take(machine->lookup("lane_of_" + kernel));
  return found ? found->toPtr<Lane>() : nullptr;
}

bool HostCode::sharesAtMost(size_t bytes) const {
  for (const Array &array : shared)
    if (array.bytes == kMostShared)
      for (size_t i = bytes; i < array.bytes; ++i)
        if (static_cast<const char *>(array.data)[i] != char(0xff))
          return false;
  return true;
}

void HostCode::spoilShared() const {
  for (const Array &array : shared)
    std::memset(array.data, 0xff, array.bytes);
}

} // namespace ortc::fibres
