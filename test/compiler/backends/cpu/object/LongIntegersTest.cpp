// Divisions and conversions of i64, written out, against those of this processor.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/KernelFixture.h"

#include <cstring>
#include <random>

using namespace mlir;
using namespace ortc::cpu;
using namespace ortc::cpu::test;

namespace {

constexpr int64_t kCount = 4096, kLanes = 4;

/// Numbers of all sizes, with those where roundings and signs change.
std::vector<int64_t> sampleIntegers() {
  std::vector<int64_t> x{0, 1, -1, 2, -2, INT64_MAX, INT64_MIN, INT64_MIN + 1};
  for (int bit : {24, 25, 31, 32, 33, 52, 53, 54, 62})
    for (int64_t beside : {-1, 0, 1})
      for (int64_t half : {int64_t(0), bit > 24 ? int64_t(1) << (bit - 24) : 0}) // between two numbers of f32
        for (int sign : {1, -1})
          x.push_back(sign * ((int64_t(1) << bit) + half + beside));
  std::mt19937_64 random(7);
  while (x.size() < kCount)
    x.push_back(static_cast<int64_t>(random()) >> random() % 64);
  return x;
}

class LongIntegersTest : public testing::Test {
protected:
  LongIntegersTest() : x(kCount), y(kCount), f(kCount), d(kCount) {
    std::vector<int64_t> samples = sampleIntegers();
    std::mt19937_64 random(3);
    std::copy(samples.begin(), samples.end(), x.begin());
    std::shuffle(samples.begin(), samples.end(), random);
    for (int64_t i = 0; i < kCount; ++i) {
      y[i] = samples[i] ? samples[i] : 3;
      if (x[i] == INT64_MIN && y[i] == -1) // has no quotient
        y[i] = 7;
      d[i] = std::ldexp(double(samples[i]), -int(random() % 64)) / 2;
      f[i] = static_cast<float>(d[i]);
    }
  }

  using Emit = llvm::function_ref<Value(OpBuilder &, Location, Value, Value)>;

  /// Bits of what `emit` makes of vectors of `from` at two addresses, on x86-64.
  std::vector<uint8_t> run(bool isExpanded, Type (*from)(OpBuilder &), Type (*to)(OpBuilder &), void *left,
                           void *right, int64_t lanes, Emit emit) {
    KernelModule m;
    OpBuilder &b = m.builder;
    Location loc = b.getUnknownLoc();
    KernelInfo info;
    info.name = "k";
    KernelFunction kernel = createKernelFunction(
        b, *m.module, info,
        {{from(b), kCount, false, true}, {from(b), kCount, false, true}, {to(b), kCount, true, true}});
    auto at = [&](int64_t i) -> Value { return arith::ConstantIndexOp::create(b, loc, i); };
    auto loop = scf::ForOp::create(b, loc, at(0), at(kCount), at(lanes));
    b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar();
    auto load = [&](Value buffer) -> Value {
      if (lanes == 1)
        return memref::LoadOp::create(b, loc, buffer, i);
      return vector::LoadOp::create(b, loc, VectorType::get({lanes}, from(b)), buffer, i);
    };
    Value result = emit(b, loc, load(kernel.buffers[0]), load(kernel.buffers[1]));
    if (lanes == 1)
      memref::StoreOp::create(b, loc, result, kernel.buffers[2], i);
    else
      vector::StoreOp::create(b, loc, result, kernel.buffers[2], i);
    Target target = *findTarget("x86-64");
    target.isa.expandsLong = isExpanded;
    LoadedBlob blob = m.load(target);
    AlignedArray<uint8_t> out(kCount * 8);
    void *args[] = {left, right, out.begin()};
    blob.kernel("k")(args, 0, 0);
    return {out.begin(), out.end()};
  }

  void compare(const char *what, Type (*from)(OpBuilder &), Type (*to)(OpBuilder &), void *left, void *right,
               Emit emit) {
    for (int64_t lanes : {int64_t(1), kLanes})
      EXPECT_TRUE(run(true, from, to, left, right, lanes, emit) ==
                  run(false, from, to, left, right, lanes, emit))
          << what << ", lanes " << lanes;
  }

  static Type i64(OpBuilder &b) { return b.getI64Type(); }
  static Type f32(OpBuilder &b) { return b.getF32Type(); }
  static Type f64(OpBuilder &b) { return b.getF64Type(); }
  static Type withElement(Value value, Type element) {
    auto vector = dyn_cast<VectorType>(value.getType());
    return vector ? Type(vector.clone(element)) : element;
  }

  AlignedArray<int64_t> x, y;
  AlignedArray<float> f;
  AlignedArray<double> d;
};

TEST_F(LongIntegersTest, Divisions) {
  auto check = [&]<typename Op>(const char *what, std::type_identity<Op>) {
    compare(what, i64, i64, x.begin(), y.begin(),
            [](OpBuilder &b, Location loc, Value a, Value c) -> Value { return Op::create(b, loc, a, c); });
  };
  check("divsi", std::type_identity<arith::DivSIOp>());
  check("remsi", std::type_identity<arith::RemSIOp>());
  check("divui", std::type_identity<arith::DivUIOp>());
  check("remui", std::type_identity<arith::RemUIOp>());
}

TEST_F(LongIntegersTest, ToFloats) {
  for (auto to : {f32, f64}) {
    compare("sitofp", i64, to, x.begin(), y.begin(),
            [&](OpBuilder &b, Location loc, Value a, Value) -> Value {
              return arith::SIToFPOp::create(b, loc, withElement(a, to(b)), a);
            });
    compare("uitofp", i64, to, x.begin(), y.begin(),
            [&](OpBuilder &b, Location loc, Value a, Value) -> Value {
              return arith::UIToFPOp::create(b, loc, withElement(a, to(b)), a);
            });
  }
}

TEST_F(LongIntegersTest, FromFloats) {
  for (int64_t i = 0; i < kCount; ++i) // what an i64 holds
    if (std::abs(d[i]) >= 0x1p63 || std::abs(f[i]) >= 0x1p63f)
      d[i] = f[i] = 0.5f;
  auto toSigned = [](OpBuilder &b, Location loc, Value a, Value) -> Value {
    return arith::FPToSIOp::create(b, loc, withElement(a, b.getI64Type()), a);
  };
  compare("f32 to i64", f32, i64, f.begin(), f.begin(), toSigned);
  compare("f64 to i64", f64, i64, d.begin(), d.begin(), toSigned);
  for (int64_t i = 0; i < kCount; ++i)
    d[i] = std::abs(d[i]), f[i] = std::abs(f[i]);
  auto toUnsigned = [](OpBuilder &b, Location loc, Value a, Value) -> Value {
    return arith::FPToUIOp::create(b, loc, withElement(a, b.getI64Type()), a);
  };
  compare("f32 to ui64", f32, i64, f.begin(), f.begin(), toUnsigned);
  compare("f64 to ui64", f64, i64, d.begin(), d.begin(), toUnsigned);
}

} // namespace
