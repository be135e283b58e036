// Stack use that is reported, against stacks that were painted before code ran on them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/KernelFixture.h"
#include "test/compiler/backends/cpu/PaintedStack.h"

#include "compiler/backends/cpu/object/Lowering.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace ortc::cpu;
using namespace ortc::cpu::test;

static CodeBlob link(llvm::ArrayRef<llvm::StringRef> texts, const Target &target) {
  KernelModule m;
  std::vector<Object> objects;
  for (llvm::StringRef text : texts) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &m.context);
    EXPECT_TRUE(module && succeeded(lowerToLLVM(*module, target)));
    objects.push_back(llvm::cantFail(emitObject(*module, target)));
  }
  return llvm::cantFail(linkBlob(objects, {BlobEntry{ORTC_ENTRY_TRAIN, 0, 0, "step"}}));
}

static std::optional<uint64_t> findUse(llvm::StringRef text, const PointerCalls &pointers = {}) {
  return findStackUse(link(text, *findTarget("x86-64")).frames, pointers, "step");
}

/// What `step` takes when it runs.
static uint64_t measure(CodeBlob blob) {
  LoadedBlob loaded = llvm::cantFail(LoadedBlob::load(std::move(blob)));
  ortc_step_fn step = loaded.step(ORTC_ENTRY_TRAIN, 0);
  return measureStack(step, static_cast<const ortc_call *>(nullptr));
}

// In an object of its own, so that it is not inlined. The deepest word is its return address, which is always written.
static const char kLeaf[] = "llvm.func @leaf(%p: !llvm.ptr) { llvm.return }";

/// A step that has `bytes` bytes at a multiple of `align`, and calls the leaf with its first parameter.
static std::string makeStep(int bytes, int align) {
  return R"(
    llvm.func @leaf(!llvm.ptr)
    llvm.func @step(%call: !llvm.ptr) -> i32 {
      %n = llvm.mlir.constant()" +
         std::to_string(bytes) + R"( : i64) : i64
      %p = llvm.alloca %n x i8 {alignment = )" +
         std::to_string(align) + R"( : i64} : (i64) -> !llvm.ptr
      llvm.call @leaf(%p) : (!llvm.ptr) -> ()
      %c = llvm.mlir.constant(0 : i32) : i32
      llvm.return %c : i32
    })";
}

TEST(StackUseTest, IsWhatAStepTakesToTheByte) {
  for (const Target &target : runnableTargets())
    for (int align : {1, 8, 16, 32, 64})
      for (int bytes : {8, 24, 100, 1000, 4096, 20000}) {
        std::string step = makeStep(bytes, align);
        CodeBlob blob = link({step, kLeaf}, target);
        auto reported = findStackUse(blob.frames, {}, "step");
        ASSERT_TRUE(reported);
        EXPECT_EQ(*reported, measure(std::move(blob))) << target.name << " " << bytes << " at " << align;
        EXPECT_GE(*reported, uint64_t(bytes) + 16); // two return addresses
      }
}

// Windows has a guard page below what a thread has touched of its stack.
TEST(StackUseTest, LargeFramesAreTouchedPageByPage) {
  for (const Target &target : runnableTargets())
    for (int bytes : {4096, 5000, 20000, 100000}) {
      LoadedBlob loaded = llvm::cantFail(LoadedBlob::load(link({makeStep(bytes, 16), kLeaf}, target)));
      ortc_step_fn step = loaded.step(ORTC_ENTRY_TRAIN, 0);
      Unpainted stack = measureStackAt(16, step, static_cast<const ortc_call *>(nullptr));
      EXPECT_GE(stack.bytes, size_t(bytes));
      EXPECT_LE(stack.gap, 4096u + 16) << target.name << " " << bytes;
    }
}

// Arguments that do not fit into registers are pushed, or lie in the caller's frame.
TEST(StackUseTest, CountsArgumentsOnTheStack) {
  std::string types = "!llvm.ptr", values = "%p", parameters = "%p: !llvm.ptr";
  for (int i = 1; i < 15; ++i) {
    types += ", !llvm.ptr";
    values += ", %p";
    parameters += ", %p" + std::to_string(i) + ": !llvm.ptr";
  }
  std::string leaf = "llvm.func @leaf(" + parameters + ") { llvm.return }";
  for (const char *attribute : {"", "attributes {passthrough = [\"optsize\"]}"})
    for (int align : {8, 64}) {
      std::string step = "llvm.func @leaf(" + types + R"()
        llvm.func @step(%call: !llvm.ptr) -> i32 )" +
                         attribute + R"( {
          %n = llvm.mlir.constant(40 : i64) : i64
          %p = llvm.alloca %n x i8 {alignment = )" +
                         std::to_string(align) + R"( : i64} : (i64) -> !llvm.ptr
          llvm.call @leaf()" +
                         values + ") : (" + types + R"() -> ()
          llvm.call @leaf()" +
                         values + ") : (" + types + R"() -> ()
          %c = llvm.mlir.constant(0 : i32) : i32
          llvm.return %c : i32
        })";
      CodeBlob blob = link({step, leaf}, *findTarget("x86-64"));
      auto reported = findStackUse(blob.frames, {}, "step");
      ASSERT_TRUE(reported);
      EXPECT_EQ(*reported, measure(std::move(blob))) << attribute << align;
    }
}

TEST(StackUseTest, TakesTheLongestPath) {
  std::string shallow = R"(
    llvm.func @leaf(!llvm.ptr)
    llvm.func @shallow(%p: !llvm.ptr) {
      llvm.call @leaf(%p) : (!llvm.ptr) -> ()
      llvm.call @leaf(%p) : (!llvm.ptr) -> ()
      llvm.return
    })";
  std::string deep = R"(
    llvm.func @leaf(!llvm.ptr)
    llvm.func @deep(%p: !llvm.ptr) {
      %n = llvm.mlir.constant(500 : i64) : i64
      %q = llvm.alloca %n x i8 {alignment = 64 : i64} : (i64) -> !llvm.ptr
      llvm.call @leaf(%q) : (!llvm.ptr) -> ()
      llvm.return
    })";
  std::string step = R"(
    llvm.func @shallow(!llvm.ptr)
    llvm.func @deep(!llvm.ptr)
    llvm.func @step(%call: !llvm.ptr) -> i32 {
      %f = llvm.mlir.addressof @deep : !llvm.ptr
      llvm.call @shallow(%call) : (!llvm.ptr) -> ()
      llvm.call @deep(%f) : (!llvm.ptr) -> ()
      llvm.call @shallow(%call) : (!llvm.ptr) -> ()
      %c = llvm.mlir.constant(0 : i32) : i32
      llvm.return %c : i32
    })";
  CodeBlob blob = link({step, shallow, deep, kLeaf}, *findTarget("x86-64"));
  auto reported = findStackUse(blob.frames, {}, "step");
  ASSERT_TRUE(reported);
  EXPECT_EQ(*reported, measure(std::move(blob)));
}

TEST(StackUseTest, FollowsPointersWhereTheyAreKnown) {
  std::string step = R"(
    llvm.func @leaf(!llvm.ptr)
    llvm.func @step(%call: !llvm.ptr) -> i32 {
      %f = llvm.mlir.addressof @leaf : !llvm.ptr
      %n = llvm.mlir.constant(1 : i64) : i64
      %p = llvm.alloca %n x !llvm.ptr : (i64) -> !llvm.ptr
      llvm.store volatile %f, %p : !llvm.ptr, !llvm.ptr
      %g = llvm.load volatile %p : !llvm.ptr -> !llvm.ptr
      llvm.call %g(%p) : !llvm.ptr, (!llvm.ptr) -> ()
      %c = llvm.mlir.constant(0 : i32) : i32
      llvm.return %c : i32
    })";
  CodeBlob blob = link({step, kLeaf}, *findTarget("x86-64"));
  EXPECT_FALSE(findStackUse(blob.frames, {}, "step"));
  auto reported = findStackUse(blob.frames, {{"step", {"leaf"}}}, "step");
  ASSERT_TRUE(reported);
  EXPECT_EQ(*reported, measure(std::move(blob)));
}

TEST(StackUseTest, IsNotKnownOfRecursion) {
  EXPECT_FALSE(findUse(R"(
    llvm.func @step(%call: !llvm.ptr) -> i32 {
      %n = llvm.mlir.constant(8 : i64) : i64
      %p = llvm.alloca %n x i8 : (i64) -> !llvm.ptr
      %a = llvm.load volatile %call : !llvm.ptr -> i32
      %zero = llvm.mlir.constant(0 : i32) : i32
      %is = llvm.icmp "ne" %a, %zero : i32
      llvm.cond_br %is, ^again, ^done
    ^again:
      %b = llvm.call @step(%p) : (!llvm.ptr) -> i32
      %s = llvm.mul %b, %a : i32
      llvm.store volatile %s, %p : i32, !llvm.ptr
      llvm.br ^done
    ^done:
      llvm.return %a : i32
    })"));
}

TEST(StackUseTest, IsNotKnownOfFramesThatVary) {
  EXPECT_FALSE(findUse(R"(
    llvm.func @step(%call: !llvm.ptr) -> i32 {
      %n = llvm.load %call : !llvm.ptr -> i64
      %p = llvm.alloca %n x i8 : (i64) -> !llvm.ptr
      llvm.store volatile %n, %p : i64, !llvm.ptr
      %c = llvm.mlir.constant(0 : i32) : i32
      llvm.return %c : i32
    })"));
}

TEST(StackUseTest, IsNotKnownOfFunctionsElsewhere) {
  StackFrames frames{{"step", {64, {"leaf"}, false}}};
  EXPECT_FALSE(findStackUse(frames, {}, "step"));
  frames["leaf"].bytes = 8;
  EXPECT_EQ(findStackUse(frames, {}, "step"), 72u);
}
