// What only WebAssembly has in generated code: nothing that is asked for here. Its code is linked as a module
// (object/WasmModule.h).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/wasm/Wasm.h"

#include "llvm/BinaryFormat/ELF.h"

namespace ortc::cpu {
namespace {

class Wasm final : public Architecture {
public:
  ortc_architecture format() const override { return ORTC_ARCH_WASM32; }
  llvm::StringRef name() const override { return "WebAssembly"; }
  std::optional<uint64_t> hostFeatures() const override { return std::nullopt; }

  bool isModule() const override { return true; }
  uint16_t elfMachine() const override { return llvm::ELF::EM_NONE; }
  uint8_t codeFiller() const override { return 0; }
  Relocated relocate(const Relocation &, uint8_t *) const override { return Relocated::NotRelative; }
};

} // namespace

const Architecture &wasm::architecture() {
  static const Wasm architecture;
  return architecture;
}

} // namespace ortc::cpu
