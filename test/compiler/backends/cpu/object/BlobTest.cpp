// Code blobs: lowered, linked, run; what must not be in one is refused.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/KernelFixture.h"

#include "compiler/backends/cpu/object/Lowering.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace ortc::cpu;
using namespace ortc::emit;
using namespace ortc::cpu::test;

/// y[i] = x[i] + 1, in chunks of 16, through a workspace.
static KernelInfo addOne(KernelModule &m, llvm::StringRef name) {
  OpBuilder &b = m.builder;
  Location loc = b.getUnknownLoc();
  KernelInfo info;
  info.name = name.str();
  info.chunks = 4;
  info.workspaceBytesPerWorker = 100;
  KernelBuffer in{b.getF32Type(), 64, false, true}, out{b.getF32Type(), 64, true, true};
  KernelFunction kernel = createKernelFunction(b, *m.module, info, {in, out});
  Value sixteen = arith::ConstantIndexOp::create(b, loc, 16),
        zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value at = arith::MulIOp::create(b, loc, kernel.chunk, sixteen);
  auto type = VectorType::get({16}, b.getF32Type());
  Value one = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, 1.0f));
  Value scratch = kernel.workspaceView(b, loc, 64, b.getF32Type(), 16);
  Value x = vector::LoadOp::create(b, loc, type, kernel.buffers[0], at);
  vector::StoreOp::create(b, loc, x, scratch, zero);
  Value again = vector::LoadOp::create(b, loc, type, scratch, zero);
  vector::StoreOp::create(b, loc, arith::AddFOp::create(b, loc, again, one), kernel.buffers[1], at);
  return info;
}

TEST(BlobTest, RunsKernelChunksOnTheirWorkersWorkspace) {
  for (const Target &target : runnableTargets()) {
    KernelModule m;
    KernelInfo info = addOne(m, "add_one");
    EXPECT_EQ(info.workspaceBytesPerWorker, 128);
    LoadedBlob blob = m.load(target);
    ortc_task_fn kernel = blob.kernel("add_one");
    ASSERT_NE(kernel, nullptr);
    AlignedArray<float> x(64), y(64), workspace(2 * 32);
    for (int i = 0; i < 64; ++i)
      x[i] = float(i);
    void *args[] = {x.begin(), y.begin(), workspace.begin()};
    for (int64_t chunk = 0; chunk < info.chunks; ++chunk)
      kernel(args, chunk, chunk % 2);
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(y[i], float(i + 1));
    // Chunk 3 ran last on worker 1, whose workspace starts 128 bytes in.
    EXPECT_EQ(workspace[32 + 16], 48.0f);
    EXPECT_EQ(workspace[0], 0.0f);
  }
}

TEST(BlobTest, SameInputGivesSameBytes) {
  std::vector<Bytes> seen;
  for (int round = 0; round < 2; ++round) {
    KernelModule m;
    addOne(m, "add_one");
    addOne(m, "add_two");
    auto blob = compileModule(*m.module, *findTarget("x86-64-v3"));
    ASSERT_TRUE(bool(blob));
    seen.push_back(blob->bytes);
  }
  EXPECT_EQ(seen[0], seen[1]);
}

static llvm::Expected<Object> objectOf(MLIRContext &context, llvm::StringRef text) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module);
  Target target = *findTarget("x86-64");
  EXPECT_TRUE(succeeded(lowerToLLVM(*module, target)));
  return emitObject(*module, target);
}

TEST(BlobTest, LinksStepFunctionsWithKernelsOfOtherObjects) {
  KernelModule m;
  auto step = objectOf(m.context, R"(
    llvm.func @seven() -> i32
    llvm.func @step(%call: !llvm.ptr) -> i32 {
      %f = llvm.mlir.addressof @seven : !llvm.ptr
      %a = llvm.call %f() : !llvm.ptr, () -> i32
      %b = llvm.call @seven() : () -> i32
      %c = llvm.add %a, %b : i32
      llvm.return %c : i32
    })");
  auto seven = objectOf(m.context, R"(
    llvm.func @seven() -> i32 {
      %c = llvm.mlir.constant(7 : i32) : i32
      llvm.return %c : i32
    })");
  ASSERT_TRUE(step && seven);
  auto blob = linkBlob({*step, *seven}, {BlobEntry{ORTC_ENTRY_TRAIN, 2, 0, "step"}});
  ASSERT_TRUE(bool(blob));
  auto loaded = LoadedBlob::load(std::move(*blob));
  ASSERT_TRUE(bool(loaded));
  EXPECT_EQ(loaded->step(ORTC_ENTRY_EVAL, 2), nullptr);
  ortc_step_fn function = loaded->step(ORTC_ENTRY_TRAIN, 2);
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function(nullptr), 14);
}

TEST(BlobTest, RefusesUndefinedSymbols) {
  KernelModule m;
  auto object = objectOf(m.context, R"(
    llvm.func @expf(f32) -> f32
    llvm.func @step(%x: f32) -> f32 {
      %y = llvm.call @expf(%x) : (f32) -> f32
      llvm.return %y : f32
    })");
  ASSERT_TRUE(bool(object));
  auto blob = linkBlob(*object);
  ASSERT_FALSE(bool(blob));
  EXPECT_EQ(llvm::toString(blob.takeError()), "undefined symbol 'expf' in a code blob");
}

TEST(BlobTest, RefusesWritableData) {
  KernelModule m;
  auto object = objectOf(m.context, R"(
    llvm.mlir.global external @counter(0 : i32) : i32
    llvm.func @step() -> i32 {
      %p = llvm.mlir.addressof @counter : !llvm.ptr
      %v = llvm.load %p : !llvm.ptr -> i32
      llvm.return %v : i32
    })");
  ASSERT_FALSE(bool(object));
  EXPECT_EQ(llvm::toString(object.takeError()), "global 'counter' is writable, a code blob has no data");
}

TEST(BlobTest, RefusesSymbolsDefinedTwice) {
  KernelModule m;
  auto object = objectOf(m.context, "llvm.func @step() { llvm.return }");
  ASSERT_TRUE(bool(object));
  auto blob = linkBlob({*object, *object});
  ASSERT_FALSE(bool(blob));
  EXPECT_EQ(llvm::toString(blob.takeError()), "symbol 'step' is defined by two objects");
}

TEST(BlobTest, LoopsAreNotTurnedIntoCallsOfMemset) {
  KernelModule m;
  auto object = objectOf(m.context, R"(
    func.func @clear(%x: memref<4096xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 4096 : index
      %z = arith.constant 0.0 : f32
      scf.for %i = %c0 to %n step %c1 {
        memref.store %z, %x[%i] : memref<4096xf32>
      }
      return
    })");
  ASSERT_TRUE(bool(object));
  auto blob = linkBlob(*object);
  EXPECT_TRUE(bool(blob)) << llvm::toString(blob.takeError());
}
