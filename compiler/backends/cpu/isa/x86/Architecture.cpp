// What only x86-64 has in generated code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/isa/x86/X86.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/CodeGen/MachineFrameInfo.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace mlir;

namespace ortc::cpu {
namespace {

/// The bits of MXCSR that make denormal numbers count as zero: flush-to-zero and denormals-are-zero.
constexpr unsigned kDenormalsAreZero = 1 << 15 | 1 << 6;

class X86 final : public Architecture {
public:
  ortc_architecture format() const override { return ORTC_ARCH_X86_64; }
  llvm::StringRef name() const override { return "x86-64"; }
  std::optional<uint64_t> hostFeatures() const override { return x86::findHostFeatures(); }

  uint16_t elfMachine() const override { return llvm::ELF::EM_X86_64; }
  uint8_t codeFiller() const override { return 0xCC; } // int3

  Relocated relocate(const Relocation &relocation, uint8_t *bytes) const override {
    switch (relocation.type) {
    case llvm::ELF::R_X86_64_PC32:
    case llvm::ELF::R_X86_64_PLT32:
      return writeDistance(relocation, bytes);
    case llvm::ELF::R_X86_64_PC64:
      llvm::support::endian::write64le(bytes, static_cast<uint64_t>(relocation.distance()));
      return Relocated::Done;
    default:
      return Relocated::NotRelative;
    }
  }

  /// Return address, frame pointer and saved registers, then what is lost to the alignment, then the rest in whole
  /// multiples of it. The caller's stack pointer is a multiple of `stackAlign`, and the most is lost behind the least
  /// favourable one.
  std::optional<uint64_t> findAlignedFrame(const llvm::MachineFrameInfo &info, uint64_t stackAlign,
                                           uint64_t returnAddress) const override {
    uint64_t align = info.getMaxAlign().value();
    uint64_t saved = 8 * (1 + info.getCalleeSavedInfo().size()), pushed = returnAddress + saved;
    uint64_t lost = align - stackAlign + (llvm::alignTo(pushed, stackAlign) - pushed);
    return pushed + lost + llvm::alignTo(info.getStackSize() - saved, align);
  }

  Value emitDenormalMode(OpBuilder &b, Location loc, bool areZero) const override {
    Type i32 = b.getI32Type(), pointer = LLVM::LLVMPointerType::get(b.getContext());
    Value one = LLVM::ConstantOp::create(b, loc, b.getI64Type(), int64_t(1));
    Value saved = LLVM::AllocaOp::create(b, loc, pointer, i32, one, 4);
    Value changed = LLVM::AllocaOp::create(b, loc, pointer, i32, one, 4);
    call(b, loc, "llvm.x86.sse.stmxcsr", saved);
    Value before = LLVM::LoadOp::create(b, loc, i32, saved);
    Value mode = withBits(b, loc, before, kDenormalsAreZero, areZero);
    LLVM::StoreOp::create(b, loc, mode, changed);
    call(b, loc, "llvm.x86.sse.ldmxcsr", changed);
    return saved;
  }
  void emitRestoreMode(OpBuilder &b, Location loc, Value saved) const override {
    call(b, loc, "llvm.x86.sse.ldmxcsr", saved);
  }

  /// Pieces of 16 floats.
  Value emitScaling(OpBuilder &builder, Location loc, Value x, Value n) const override {
    constexpr int64_t kPiece = 16;
    auto vector = dyn_cast<VectorType>(x.getType());
    if (!vector || !vector.getElementType().isF32() || vector.getRank() != 1 ||
        vector.getDimSize(0) % kPiece != 0)
      return Value();
    auto scalePiece = [&](Value piece, Value power) -> Value {
      Value all = arith::ConstantOp::create(builder, loc, builder.getI16IntegerAttr(-1));
      Value currentRounding = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(4));
      return LLVM::CallIntrinsicOp::create(builder, loc, piece.getType(),
                                           builder.getStringAttr("llvm.x86.avx512.mask.scalef.ps.512"),
                                           ValueRange{piece, power, piece, all, currentRounding})
          .getResult(0);
    };
    if (vector.getDimSize(0) == kPiece)
      return scalePiece(x, n);
    Value result = x;
    for (int64_t at = 0; at < vector.getDimSize(0); at += kPiece) {
      auto slice = [&](Value whole) -> Value {
        return vector::ExtractStridedSliceOp::create(builder, loc, whole, at, kPiece, 1);
      };
      result =
          vector::InsertStridedSliceOp::create(builder, loc, scalePiece(slice(x), slice(n)), result, at, 1);
    }
    return result;
  }

  Value emitLookup(OpBuilder &builder, Location loc, ArrayRef<Value> table, Value index) const override {
    return x86::emitLookup(builder, loc, table, index);
  }

  void emitUnitBegin(OpBuilder &builder, Location loc, Value configuration) const override {
    x86::emitUnitBegin(builder, loc, configuration);
  }
  void emitUnitEnd(OpBuilder &builder, Location loc) const override { x86::emitUnitEnd(builder, loc); }
  void emitBlockProduct(OpBuilder &builder, Location loc, const BlockProduct &product) const override {
    x86::emitBlockProduct(builder, loc, product);
  }

  /// VDPBF16PS: two fused multiply-adds behind each other, denormal numbers are zero.
  Value emitPairProduct(OpBuilder &builder, Location loc, Value sums, Value left,
                        Value right) const override {
    auto pairs = [&](Value words) -> Value {
      auto type = VectorType::get({32}, builder.getBF16Type());
      return LLVM::BitcastOp::create(builder, loc, type, words);
    };
    return LLVM::CallIntrinsicOp::create(builder, loc, sums.getType(),
                                         builder.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
                                         ValueRange{sums, pairs(left), pairs(right)})
        .getResult(0);
  }

private:
  static void call(OpBuilder &b, Location loc, StringRef intrinsic, Value place) {
    LLVM::CallIntrinsicOp::create(b, loc, b.getStringAttr(intrinsic), ValueRange{place});
  }
};

} // namespace

const Architecture &x86::architecture() {
  static const X86 architecture;
  return architecture;
}

#if defined(__x86_64__)

DenormalModeHere::DenormalModeHere(bool areZero) : before(_mm_getcsr()) {
  auto others = static_cast<unsigned>(before) & ~kDenormalsAreZero;
  _mm_setcsr(areZero ? others | kDenormalsAreZero : others);
}
DenormalModeHere::~DenormalModeHere() { _mm_setcsr(static_cast<unsigned>(before)); }

#endif

} // namespace ortc::cpu
