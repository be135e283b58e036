// Applies an instruction to arrays of values, for comparison with the host's arithmetic.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <type_traits>

#include "test/gpu/emulator/tests/Emulator.h"

namespace ortc::emulator::test {

template <class T> std::string bitsType() {
  return "b" + std::to_string(8 * (sizeof(T) == 1 ? 2 : sizeof(T)));
}
template <class To, class From> To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

/// Numbers that instructions treat in a way of their own, and some others.
template <class T> std::vector<T> interesting() {
  std::mt19937_64 random(sizeof(T) + 10 * std::is_signed_v<T>);
  std::vector<T> values;
  if constexpr (std::is_floating_point_v<T>) {
    using L = std::numeric_limits<T>;
    for (T v : {T(0),
                T(1),
                T(0.5),
                T(1.5),
                T(2.5),
                T(3),
                T(1e10),
                T(1e-10),
                T(255.5),
                T(32768),
                T(65520),
                T(2147483648.0),
                T(4294967296.0),
                T(9.3e18),
                L::max(),
                L::min(),
                L::denorm_min(),
                L::min() / 2,
                L::infinity(),
                L::epsilon()}) {
      values.push_back(v);
      values.push_back(-v);
    }
    values.push_back(L::quiet_NaN());
    for (int k = 0; k < 20; ++k)
      values.push_back(T(std::ldexp(double(int64_t(random())), -60 + int(random() % 30))));
  } else {
    using L = std::numeric_limits<T>;
    for (T v : {T(0), T(1), T(2), T(3), T(7), T(31), T(32), T(33), T(63), T(64), T(100), L::max(), L::min(),
                T(-1), T(-2)})
      values.push_back(v);
    for (int k = 0; k < 20; ++k)
      values.push_back(T(random() >> (random() % 64)));
  }
  return values;
}

class OperationTest : public EmulatorTest {
protected:
  /// Runs `body`, which makes %y of %x0, %x1 and so on, registers of the types' widths, for every element.
  /// The last warp is not whole.
  template <class R, class... In>
  std::vector<R> compute(const std::string &body, const std::vector<In> &...in) {
    const size_t count = std::get<0>(std::tie(in...)).size();
    std::string text = ".reg ." + bitsType<R>() + " %y;\nsetp.ge.u32 %p39, %i, %a" +
                       std::to_string(sizeof...(In) + 1) + ";\n@%p39 bra $end;\n";
    size_t k = 0;
    auto loadOne = [&](size_t bytes, const std::string &type) {
      std::string n = std::to_string(k++);
      text += ".reg ." + type + " %x" + n + ";\nmad.wide.u32 %rd39, %i, " + std::to_string(bytes) + ", %a" +
              n + ";\nld.global.b" + std::to_string(8 * bytes) + " %x" + n + ", [%rd39];\n";
    };
    (loadOne(sizeof(In), bitsType<In>()), ...);
    text += body + "\nmad.wide.u32 %rd39, %i, " + std::to_string(sizeof(R)) + ", %a" +
            std::to_string(sizeof...(In)) + ";\nst.global.b" + std::to_string(8 * sizeof(R)) +
            " [%rd39], %y;\n$end:";
    std::vector<const char *> types(sizeof...(In) + 1, "b64");
    std::string ptx = sizeof...(In) == 1   ? makeKernel({"b64", "b64", "b32"}, text)
                      : sizeof...(In) == 2 ? makeKernel({"b64", "b64", "b64", "b32"}, text)
                                           : makeKernel({"b64", "b64", "b64", "b64", "b32"}, text);
    ortc_cu_kernel k0 = kernel(ptx);
    ortc_cu_pointer out = allocate(count * sizeof(R));
    if (k0)
      runOn(k0, count, out, upload(in)...);
    return download<R>(out, count);
  }

  /// Compares an instruction with one operand to what the host makes of it.
  template <class R, class A, class Expected> void check1(const std::string &body, Expected expected) {
    std::vector<A> a = interesting<A>();
    std::vector<R> results = compute<R>(body, a);
    for (size_t k = 0; k < a.size(); ++k)
      ASSERT_TRUE(isSame(results[k], R(expected(a[k]))))
          << body << "\n"
          << show(a[k]) << " -> " << show(results[k]) << ", expected " << show(R(expected(a[k])));
  }
  /// With two: all pairs.
  template <class R, class A, class B, class Expected>
  void check2(const std::string &body, Expected expected) {
    std::vector<A> a;
    std::vector<B> b;
    for (A x : interesting<A>())
      for (B y : interesting<B>()) {
        a.push_back(x);
        b.push_back(y);
      }
    std::vector<R> results = compute<R>(body, a, b);
    for (size_t k = 0; k < a.size(); ++k)
      ASSERT_TRUE(isSame(results[k], R(expected(a[k], b[k]))))
          << body << "\n"
          << show(a[k]) << ", " << show(b[k]) << " -> " << show(results[k]) << ", expected "
          << show(R(expected(a[k], b[k])));
  }
  /// With three: pairs, and every number as the third.
  template <class R, class A, class B, class C, class Expected>
  void check3(const std::string &body, Expected expected) {
    std::vector<A> a;
    std::vector<B> b;
    std::vector<C> c;
    std::vector<C> thirds = interesting<C>();
    size_t n = 0;
    for (A x : interesting<A>())
      for (B y : interesting<B>())
        for (int repeat = 0; repeat < 3; ++repeat) {
          a.push_back(x);
          b.push_back(y);
          c.push_back(thirds[n++ * 7 % thirds.size()]);
        }
    std::vector<R> results = compute<R>(body, a, b, c);
    for (size_t k = 0; k < a.size(); ++k)
      ASSERT_TRUE(isSame(results[k], R(expected(a[k], b[k], c[k]))))
          << body << "\n"
          << show(a[k]) << ", " << show(b[k]) << ", " << show(c[k]) << " -> " << show(results[k])
          << ", expected " << show(R(expected(a[k], b[k], c[k])));
  }

private:
  template <class... Memory> void runOn(ortc_cu_kernel k, size_t count, ortc_cu_pointer out, Memory... in) {
    run(k, unsigned((count + 95) / 96), 96, {in..., out, uint32_t(count)});
  }
  /// Bits, where NVIDIA's f32 arithmetic has one NaN.
  template <class T> static bool isSame(T a, T b) {
    if constexpr (std::is_same_v<T, double>)
      if (a != a && b != b)
        return true;
    if constexpr (std::is_same_v<T, float>)
      if (b != b)
        return bitCast<uint32_t>(a) == 0x7fffffffu;
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
  template <class T> static std::string show(T value) {
    char text[64];
    if constexpr (std::is_floating_point_v<T>)
      std::snprintf(text, sizeof text, "%a", double(value));
    else
      std::snprintf(text, sizeof text, "0x%llx", (unsigned long long)(std::make_unsigned_t<T>(value)));
    return text;
  }
};

} // namespace ortc::emulator::test
