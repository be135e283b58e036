// What differs between architectures in generated code: object format, frames, modes and special instructions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/isa/Isa.h"
#include "compiler/backends/emit/MathExpansion.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/StringRef.h"

#include "ortc/format.h"

#include <optional>

namespace llvm {
class MachineFrameInfo;
}

namespace ortc::cpu {

struct BlockProduct;

/// A reference from one place of a code blob to another. Blobs are loaded at multiples of 4 KiB.
struct Relocation {
  uint64_t type;  ///< of ELF
  int64_t place;  ///< what refers, in bytes from the start of the blob
  int64_t target; ///< what it refers to, with the addend
  /// The distance of the reference that stands at `target`, where there is one: of addresses in two parts, the second
  /// of some architectures names the first.
  std::optional<int64_t> first;

  int64_t distance() const { return target - place; }
};

/// One object per architecture, in a folder of its own beside this file. Stateless: any thread may use it.
class Architecture : public emit::ScalingInstruction {
public:
  virtual ortc_architecture format() const = 0; ///< what the artifact calls it
  virtual llvm::StringRef name() const = 0;     ///< in messages

  /// The features of this machine in the bits of `Isa::requiredFeatures`. Nothing when it is of another architecture.
  virtual std::optional<uint64_t> hostFeatures() const = 0;

  // Objects are ELF, but for WebAssembly, whose code is a module of its own.

  virtual bool isModule() const { return false; }

  virtual uint16_t elfMachine() const = 0;
  virtual uint8_t codeFiller() const = 0; ///< between functions: a trap
  /// What a blob's address must be a multiple of: where code names addresses by their pages, a page.
  virtual uint64_t blobAlignment() const { return ORTC_ALIGNMENT; }
  /// What the address of a function has more than its place: 1 where it tells which instructions those are.
  virtual uint64_t functionBit() const { return 0; }
  /// The addend of a relocation that has none of its own: it stands where the relocation writes. Nothing where the
  /// architecture has no such relocations.
  virtual std::optional<int64_t> implicitAddend(uint64_t type, const uint8_t *bytes) const {
    return std::nullopt;
  }
  enum class Relocated { Done, TooFar, NotRelative };
  /// Writes what an ELF relocation wants to its bytes.
  virtual Relocated relocate(const Relocation &relocation, uint8_t *bytes) const = 0;

  // Calling convention.

  /// The most that a frame takes whose alignment is above the stack's, from the stack pointer before the call down.
  /// Nothing when the layout of such frames is not known. `returnAddress`: its bytes on the stack. Here: the stack
  /// pointer goes down by the frame and then to a multiple of the alignment.
  virtual std::optional<uint64_t> findAlignedFrame(const llvm::MachineFrameInfo &info, uint64_t stackAlign,
                                                   uint64_t returnAddress) const;

  // Code, all at the insertion point.

  /// Makes denormal numbers count as zero on this thread, or as numbers, whatever the caller has, and returns what
  /// `emitRestoreMode` needs. At the start of a function. Here: there is no such mode, and they are numbers.
  virtual mlir::Value emitDenormalMode(mlir::OpBuilder &builder, mlir::Location loc, bool areZero) const;
  virtual void emitRestoreMode(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value saved) const;

  /// Only where an Isa has Instruction::Scaling.
  mlir::Value emitScaling(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x,
                          mlir::Value n) const override;

  // The matrix unit (contraction/MatrixUnit.h has its tiles). Only where an Isa has Instruction::MatrixUnit.

  /// Readies the unit of this thread; `configuration` is a buffer of at least 16 words. Before the first product of a
  /// chunk.
  virtual void emitUnitBegin(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value configuration) const;
  /// Gives it back. After the last product of a chunk.
  virtual void emitUnitEnd(mlir::OpBuilder &builder, mlir::Location loc) const;
  virtual void emitBlockProduct(mlir::OpBuilder &builder, mlir::Location loc,
                                const BlockProduct &product) const;

  /// `sums` + the products of the pairs of bf16 in the words `left` and `right`, for 16 lanes: f32, i32, i32. In which
  /// order a pair is summed, and with how many roundings, is the architecture's. Only where an Isa has
  /// Instruction::PairProduct.
  virtual mlir::Value emitPairProduct(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value sums,
                                      mlir::Value left, mlir::Value right) const;

protected:
  /// For `emitDenormalMode`: `word` with `bits` set or cleared.
  static mlir::Value withBits(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value word, uint64_t bits,
                              bool areSet);
  /// For `relocate`: the distance in 32 bits with a sign.
  static Relocated writeDistance(const Relocation &relocation, uint8_t *bytes);
};

/// While it lives, the thread that runs this program treats denormal numbers as kernels do (`emitDenormalMode`).
class DenormalModeHere {
public:
  explicit DenormalModeHere(bool areZero);
  ~DenormalModeHere();
  DenormalModeHere(const DenormalModeHere &) = delete;
  DenormalModeHere &operator=(const DenormalModeHere &) = delete;

private:
  uint64_t before = 0;
};

} // namespace ortc::cpu
