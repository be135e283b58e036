// cvt between integers and numbers, in all directions and rounding modes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cfenv>

#include "test/gpu/emulator/tests/Operations.h"

namespace ortc::emulator::test {
namespace {

template <class T> std::string nameOf() {
  return (std::is_floating_point_v<T> ? "f"
          : std::is_signed_v<T>       ? "s"
                                      : "u") +
         std::to_string(8 * sizeof(T));
}

/// A float as an integer: rounded in a mode, the nearest one there is, 0 for NaN.
template <class T, class F> T toInteger(F value, int mode) {
  std::fesetround(mode);
  F whole = std::nearbyint(value);
  std::fesetround(FE_TONEAREST);
  if (value != value)
    return 0;
  long double exact = whole, most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::min();
  return T(exact > most ? most : exact < least ? least : exact);
}

class ConvertTest : public OperationTest {
protected:
  struct Mode {
    const char *name, *whole;
    int mode;
  };
  static constexpr Mode kModes[] = {{"rn", "rni", FE_TONEAREST},
                                    {"rz", "rzi", FE_TOWARDZERO},
                                    {"rm", "rmi", FE_DOWNWARD},
                                    {"rp", "rpi", FE_UPWARD}};

  template <class T> void checkFromFloats() {
    for (const Mode &mode : kModes) {
      std::string head = std::string("cvt.") + mode.whole + "." + nameOf<T>();
      check1<T, float>(head + ".f32 %y, %x0;", [&](float a) { return toInteger<T>(a, mode.mode); });
      check1<T, double>(head + ".f64 %y, %x0;", [&](double a) { return toInteger<T>(a, mode.mode); });
    }
  }
  template <class F, class T> void checkToFloat() {
    for (const Mode &mode : kModes)
      check1<F, T>(std::string("cvt.") + mode.name + "." + nameOf<F>() + "." + nameOf<T>() + " %y, %x0;",
                   [&](T a) {
                     std::fesetround(mode.mode);
                     volatile long double value = a; // holds every one of them
                     volatile F result = F(value);
                     std::fesetround(FE_TONEAREST);
                     return F(result);
                   });
  }
  template <class To, class From> void checkIntegers() {
    check1<To, From>("cvt." + nameOf<To>() + "." + nameOf<From>() + " %y, %x0;",
                     [](From a) { return To(a); });
    check1<To, From>("cvt.sat." + nameOf<To>() + "." + nameOf<From>() + " %y, %x0;", [](From a) {
      __int128 most = std::numeric_limits<To>::max(), least = std::numeric_limits<To>::min(), value = a;
      return To(value > most ? most : value < least ? least : value);
    });
  }
  template <class To> void checkFromAllIntegers() {
    checkIntegers<To, uint16_t>(), checkIntegers<To, int16_t>(), checkIntegers<To, uint32_t>();
    checkIntegers<To, int32_t>(), checkIntegers<To, uint64_t>(), checkIntegers<To, int64_t>();
  }
};

TEST_F(ConvertTest, FloatsToIntegers) {
  checkFromFloats<int16_t>(), checkFromFloats<uint16_t>(), checkFromFloats<int32_t>();
  checkFromFloats<uint32_t>(), checkFromFloats<int64_t>(), checkFromFloats<uint64_t>();
}

TEST_F(ConvertTest, IntegersToFloats) {
  checkToFloat<float, int32_t>(), checkToFloat<float, uint32_t>(), checkToFloat<float, int64_t>();
  checkToFloat<float, uint16_t>(), checkToFloat<double, int32_t>(), checkToFloat<double, uint32_t>();
  checkToFloat<double, int64_t>(), checkToFloat<float, int16_t>(), checkToFloat<float, uint64_t>();
  checkToFloat<double, uint64_t>();
}

TEST_F(ConvertTest, IntegersToIntegers) {
  checkFromAllIntegers<uint16_t>(), checkFromAllIntegers<int16_t>(), checkFromAllIntegers<uint32_t>();
  checkFromAllIntegers<int32_t>(), checkFromAllIntegers<uint64_t>(), checkFromAllIntegers<int64_t>();
}

TEST_F(ConvertTest, BytesLieInWiderRegisters) {
  check1<int32_t, int32_t>("cvt.s32.s8 %y, %x0;", [](int32_t a) { return int8_t(a); });
  check1<uint32_t, uint16_t>("cvt.u32.u8 %y, %x0;", [](uint16_t a) { return uint8_t(a); });
  check1<int16_t, int32_t>("cvt.s16.s8 %y, %x0;", [](int32_t a) { return int8_t(a); });
  check1<int64_t, int64_t>("cvt.s64.s8 %y, %x0;", [](int64_t a) { return int8_t(a); });
  check1<int64_t, int64_t>("cvt.s64.s32 %y, %x0;", [](int64_t a) { return int32_t(a); });
  check1<uint16_t, float>("cvt.rzi.u8.f32 %y, %x0;",
                          [](float a) { return toInteger<uint8_t>(a, FE_TOWARDZERO); });
  check1<int32_t, int32_t>("cvt.s8.s32 %y, %x0;", [](int32_t a) { return int8_t(a); });
}

TEST_F(ConvertTest, FloatsToFloats) {
  for (const Mode &mode : kModes)
    check1<float, double>(std::string("cvt.") + mode.name + ".f32.f64 %y, %x0;", [&](double a) {
      std::fesetround(mode.mode);
      volatile double value = a;
      volatile float result = float(value);
      std::fesetround(FE_TONEAREST);
      return float(result);
    });
  check1<double, float>("cvt.f64.f32 %y, %x0;", [](float a) { return double(a); });
  check1<float, float>("cvt.rmi.f32.f32 %y, %x0;", [](float a) { return std::floor(a); });
  check1<float, float>("cvt.rpi.f32.f32 %y, %x0;", [](float a) { return std::ceil(a); });
  check1<float, float>("cvt.rni.f32.f32 %y, %x0;", [](float a) { return std::nearbyint(a); });
  check1<double, double>("cvt.rzi.f64.f64 %y, %x0;", [](double a) { return std::trunc(a); });
  check1<uint32_t, float>("cvt.rna.tf32.f32 %y, %x0;", [](float a) {
    uint32_t bits = bitCast<uint32_t>(a);
    return std::isfinite(a) ? (bits + 0x1000) & ~0x1fffu : bits;
  });
}

} // namespace
} // namespace ortc::emulator::test
