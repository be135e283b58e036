// The image and a table of the steps become an object, and the linker does the rest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/WholeModule.h"

#include "compiler/backends/cpu/object/WasmModule.h"
#include "compiler/backends/emit/Linker.h"
#include "compiler/backends/emit/LlvmModule.h"

#include "ortc/ortc.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace ortc::cpu {

using namespace emit;

/// Of the runtime, beside what the model's code may use: as much as linkers give otherwise.
static constexpr uint64_t kRuntimeStackBytes = 64 << 10;

static GlobalVariable *addConstant(Module &module, Constant *value, const char *name,
                                   GlobalValue::LinkageTypes linkage = GlobalValue::PrivateLinkage) {
  return new GlobalVariable(module, value->getType(), /*isConstant=*/true, linkage, value, name);
}

/// `const ortc_static ortc_model` (ortc/static.h).
static void defineModel(Module &module, const std::vector<std::string> &steps, const Bytes &image) {
  LLVMContext &context = module.getContext();
  auto *word = IntegerType::getInt32Ty(context);
  auto *pointer = PointerType::getUnqual(context);
  auto *step = FunctionType::get(word, {pointer}, /*isVarArg=*/false);
  std::vector<Constant *> functions;
  for (const std::string &name : steps) {
    auto *function = cast<Function>(module.getOrInsertFunction(name, step).getCallee());
    function->setVisibility(GlobalValue::HiddenVisibility);
    functions.push_back(function);
  }
  Constant *table =
      addConstant(module, ConstantArray::get(ArrayType::get(pointer, functions.size()), functions), "steps");
  GlobalVariable *bytes = addConstant(module, ConstantDataArray::get(context, ArrayRef(image)), "image");
  bytes->setAlignment(Align(ORTC_ALIGNMENT));
  auto number = [&](uint64_t value) { return ConstantInt::get(word, value); };
  // of ortc_static with pointers of 32 bits; bindings/js/linked.cpp asserts it
  constexpr uint64_t kStaticBytes = 20;
  Constant *fields[] = {number(kStaticBytes), number(ORTC_ABI_VERSION), bytes, number(image.size()), table};
  addConstant(module, ConstantStruct::getAnon(fields), "ortc_model", GlobalValue::ExternalLinkage)
      ->setVisibility(GlobalValue::HiddenVisibility);
}

static Expected<SmallVector<char, 0>> emitModel(const std::vector<std::string> &steps, const Isa &isa,
                                                const Bytes &image) {
  Triple triple(isa.triple);
  std::string message;
  const llvm::Target *found = findLlvmTarget(triple, message);
  std::unique_ptr<TargetMachine> machine(
      found ? found->createTargetMachine(triple, isa.cpu, isa.features, makeTargetOptions(), Reloc::Static)
            : nullptr);
  if (!machine)
    return Status::failure("LLVM has no code generator for " + isa.triple);
  LLVMContext context;
  Module module("model", context);
  module.setTargetTriple(triple);
  module.setDataLayout(machine->createDataLayout());
  defineModel(module, steps, image);
  SmallVector<char, 0> object;
  raw_svector_ostream stream(object);
  legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile))
    return Status::failure("LLVM cannot emit objects for " + isa.triple);
  passes.run(module);
  return object;
}

Expected<Bytes> linkWholeModule(ArrayRef<Object> objects, const std::vector<std::string> &steps,
                                const Isa &isa, const Bytes &image, StringRef runtime) {
  auto model = emitModel(steps, isa, image);
  if (!model)
    return model.getStatus();
  std::vector<std::string> flags{"--no-entry",
                                 "--stack-first",
                                 "-z",
                                 "stack-size=" + std::to_string(kWasmStackBytes + kRuntimeStackBytes),
                                 "--export-dynamic",
                                 "--gc-sections",
                                 "--strip-all",
                                 "--whole-archive"};
  std::vector<StringRef> inputs{runtime, StringRef(model->data(), model->size())};
  for (const Object &object : objects)
    inputs.emplace_back(reinterpret_cast<const char *>(object.bytes.data()), object.bytes.size());
  return runLinker(LinkerFlavour::WebAssembly, flags, inputs);
}

} // namespace ortc::cpu
