// Stand-ins for matrix instructions, against published layouts and numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/fibres/MatrixUnits.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>
#include <optional>
#include <sstream>
#include <string>

using namespace ortc::fibres;

namespace {

using Number = MatrixUnit::Number;

/// Where elements lie, as register{lane}.[bits]: A[i][k] of the first operand, B[k][j] of the second, D[i][j] of sums.
struct Place {
  int64_t i, j, k;
  const char *first, *second, *sum;
};

// As github.com/ROCm/amd_matrix_instruction_calculator prints it with --register-layout (commit 2ef91896).
/// v_mfma_f32_16x16x16bf16_1k, v_mfma_f32_16x16x16_bf16, v_mfma_f32_16x16x16_f16
constexpr Place kNarrow[] = {
    {3, 2, 0, "v0{3}.[15:0]", "v0{2}.[15:0]", "v3{2}"},
    {8, 9, 1, "v0{8}.[31:16]", "v0{9}.[31:16]", "v0{41}"},
    {13, 0, 2, "v1{13}.[15:0]", "v1{0}.[15:0]", "v1{48}"},
    {2, 7, 3, "v1{2}.[31:16]", "v1{7}.[31:16]", "v2{7}"},
    {7, 14, 4, "v0{23}.[15:0]", "v0{30}.[15:0]", "v3{30}"},
    {12, 5, 5, "v0{28}.[31:16]", "v0{21}.[31:16]", "v0{53}"},
    {1, 12, 6, "v1{17}.[15:0]", "v1{28}.[15:0]", "v1{12}"},
    {6, 3, 7, "v1{22}.[31:16]", "v1{19}.[31:16]", "v2{19}"},
    {11, 10, 8, "v0{43}.[15:0]", "v0{42}.[15:0]", "v3{42}"},
    {0, 1, 9, "v0{32}.[31:16]", "v0{33}.[31:16]", "v0{1}"},
    {5, 8, 10, "v1{37}.[15:0]", "v1{40}.[15:0]", "v1{24}"},
    {10, 15, 11, "v1{42}.[31:16]", "v1{47}.[31:16]", "v2{47}"},
    {15, 6, 12, "v0{63}.[15:0]", "v0{54}.[15:0]", "v3{54}"},
    {4, 13, 13, "v0{52}.[31:16]", "v0{61}.[31:16]", "v0{29}"},
    {9, 4, 14, "v1{57}.[15:0]", "v1{52}.[15:0]", "v1{36}"},
    {14, 11, 15, "v1{62}.[31:16]", "v1{59}.[31:16]", "v2{59}"},
};
/// v_mfma_f32_16x16x4f32
constexpr Place kFull[] = {
    {3, 2, 0, "v0{3}", "v0{2}", "v3{2}"},      {8, 9, 1, "v0{24}", "v0{25}", "v0{41}"},
    {13, 0, 2, "v0{45}", "v0{32}", "v1{48}"},  {2, 7, 3, "v0{50}", "v0{55}", "v2{7}"},
    {7, 14, 0, "v0{7}", "v0{14}", "v3{30}"},   {12, 5, 1, "v0{28}", "v0{21}", "v0{53}"},
    {1, 12, 2, "v0{33}", "v0{44}", "v1{12}"},  {6, 3, 3, "v0{54}", "v0{51}", "v2{19}"},
    {11, 10, 0, "v0{11}", "v0{10}", "v3{42}"}, {0, 1, 1, "v0{16}", "v0{17}", "v0{1}"},
    {5, 8, 2, "v0{37}", "v0{40}", "v1{24}"},   {10, 15, 3, "v0{58}", "v0{63}", "v2{47}"},
    {15, 6, 0, "v0{15}", "v0{6}", "v3{54}"},   {4, 13, 1, "v0{20}", "v0{29}", "v0{29}"},
    {9, 4, 2, "v0{41}", "v0{36}", "v1{36}"},   {14, 11, 3, "v0{62}", "v0{59}", "v2{59}"},
};
/// v_wmma_f32_16x16x16_bf16, v_wmma_f32_16x16x16_f16
constexpr Place kReplicated[] = {
    {3, 2, 0, "v0{3}.[15:0] v0{19}.[15:0]", "v0{2}.[15:0] v0{18}.[15:0]", "v1{18}"},
    {8, 9, 1, "v0{8}.[31:16] v0{24}.[31:16]", "v0{9}.[31:16] v0{25}.[31:16]", "v4{9}"},
    {13, 0, 2, "v1{13}.[15:0] v1{29}.[15:0]", "v1{0}.[15:0] v1{16}.[15:0]", "v6{16}"},
    {2, 7, 3, "v1{2}.[31:16] v1{18}.[31:16]", "v1{7}.[31:16] v1{23}.[31:16]", "v1{7}"},
    {7, 14, 4, "v2{7}.[15:0] v2{23}.[15:0]", "v2{14}.[15:0] v2{30}.[15:0]", "v3{30}"},
    {12, 5, 5, "v2{12}.[31:16] v2{28}.[31:16]", "v2{5}.[31:16] v2{21}.[31:16]", "v6{5}"},
    {1, 12, 6, "v3{1}.[15:0] v3{17}.[15:0]", "v3{12}.[15:0] v3{28}.[15:0]", "v0{28}"},
    {6, 3, 7, "v3{6}.[31:16] v3{22}.[31:16]", "v3{3}.[31:16] v3{19}.[31:16]", "v3{3}"},
    {11, 10, 8, "v4{11}.[15:0] v4{27}.[15:0]", "v4{10}.[15:0] v4{26}.[15:0]", "v5{26}"},
    {0, 1, 9, "v4{0}.[31:16] v4{16}.[31:16]", "v4{1}.[31:16] v4{17}.[31:16]", "v0{1}"},
    {5, 8, 10, "v5{5}.[15:0] v5{21}.[15:0]", "v5{8}.[15:0] v5{24}.[15:0]", "v2{24}"},
    {10, 15, 11, "v5{10}.[31:16] v5{26}.[31:16]", "v5{15}.[31:16] v5{31}.[31:16]", "v5{15}"},
    {15, 6, 12, "v6{15}.[15:0] v6{31}.[15:0]", "v6{6}.[15:0] v6{22}.[15:0]", "v7{22}"},
    {4, 13, 13, "v6{4}.[31:16] v6{20}.[31:16]", "v6{13}.[31:16] v6{29}.[31:16]", "v2{13}"},
    {9, 4, 14, "v7{9}.[15:0] v7{25}.[15:0]", "v7{4}.[15:0] v7{20}.[15:0]", "v4{20}"},
    {14, 11, 15, "v7{14}.[31:16] v7{30}.[31:16]", "v7{11}.[31:16] v7{27}.[31:16]", "v7{11}"},
};

/// What all lanes of a wavefront give and get.
struct Wavefront {
  explicit Wavefront(const MatrixUnit &unit)
      : unit(unit), first(unit.lanes), second(unit.lanes), sums(unit.lanes), results(unit.lanes) {}

  void multiply() {
    std::vector<MatrixOperands> lanes;
    for (int64_t lane = 0; lane < unit.lanes; ++lane)
      lanes.push_back({first[lane].data(), second[lane].data(), sums[lane].data(), results[lane].data()});
    ortc::fibres::multiply(unit, lanes);
  }

  using Registers = std::array<uint32_t, 8>;
  const MatrixUnit &unit;
  std::vector<Registers> first, second;
  std::vector<std::array<float, 8>> sums, results;
};

/// Puts bits of a number where a text says, which may name two places.
void put(std::vector<Wavefront::Registers> &lanes, const char *places, uint32_t bits) {
  std::istringstream words(places);
  for (std::string word; words >> word;) {
    int number = 0, lane = 0, high = 31, low = 0;
    std::sscanf(word.c_str(), "v%d{%d}.[%d:%d]", &number, &lane, &high, &low);
    lanes.at(lane).at(number) |= bits << low;
  }
}

uint32_t oneOf(Number number) {
  return number == Number::f32 ? 0x3f800000 : number == Number::bf16 ? 0x3f80 : 0x3c00;
}

void checkLayout(const char *intrinsic, const char *processor, const Place *begin, const Place *end) {
  const MatrixUnit *unit = findMatrixUnit(intrinsic, processor);
  ASSERT_TRUE(unit) << intrinsic;
  for (const Place *place = begin; place != end; ++place) {
    SCOPED_TRACE(std::string(intrinsic) + " of " + processor + ": " + place->first + " * " + place->second);
    Wavefront wavefront(*unit);
    put(wavefront.first, place->first, oneOf(unit->number));
    put(wavefront.second, place->second, oneOf(unit->number));
    wavefront.multiply();
    int number = -1, lane = -1;
    std::sscanf(place->sum, "v%d{%d}", &number, &lane);
    for (int64_t l = 0; l < unit->lanes; ++l)
      for (int64_t i = 0; i < unit->sums(); ++i)
        EXPECT_EQ(wavefront.results[l][i], l == lane && i == number ? 1 : 0) << l << " " << i;
  }
}

TEST(MatrixUnitsTest, ElementsLieWhereTheyArePublished) {
  for (const char *processor : {"gfx90a", "gfx942"}) {
    checkLayout("llvm.amdgcn.mfma.f32.16x16x16bf16.1k", processor, std::begin(kNarrow), std::end(kNarrow));
    checkLayout("llvm.amdgcn.mfma.f32.16x16x4f32", processor, std::begin(kFull), std::end(kFull));
  }
  checkLayout("llvm.amdgcn.mfma.f32.16x16x16f16", "gfx942", std::begin(kNarrow), std::end(kNarrow));
  for (const char *intrinsic : {"llvm.amdgcn.wmma.f32.16x16x16.bf16", "llvm.amdgcn.wmma.f32.16x16x16.f16"})
    checkLayout(intrinsic, "gfx1100", std::begin(kReplicated), std::end(kReplicated));
}

/// Bits of a row, a column and a sum, and of what they give on CDNA 2 and 3.
struct Sum {
  Number number;
  const char *what;
  std::array<uint16_t, 16> row, column;
  uint32_t sum;
  std::optional<uint32_t> cdna2;
  uint32_t cdna3;
};

// As mmasim/simulator/arithmetic.py of github.com/microsoft/MMA-Sim gives them (commit c7851383). Each
// result is another than the other generation's, a chain's of fused multiply-adds, and the exact sum rounded once.
constexpr Sum kSums[] = {
    {Number::bf16,
     "ordinary numbers",
     {0xbff2, 0xbed2, 0x3f75, 0xbe80, 0x4082, 0x3f5b, 0xbf9b, 0xbf52, 0x3ece, 0xbf96, 0xbf8e, 0xbf1a, 0xbd6b,
      0x3f40, 0xbed1, 0xbec9},
     {0xbfe9, 0xbf15, 0xbdfa, 0xbfc8, 0x3e6b, 0xbf8f, 0x3fd0, 0x401f, 0x3fc3, 0xbeb3, 0xbea4, 0xbe3a, 0x3a47,
      0xc009, 0x3d60, 0xbe06},
     0x3cba7c71,
     0xbe10edd8,
     0xbe10eddc},
    {Number::bf16,
     "numbers of 24 binades",
     {0xc123, 0xc147, 0x40e2, 0xbd83, 0x3d42, 0xb9d3, 0xbe90, 0x3f83, 0xb9b9, 0x4065, 0x3fcc, 0x414a, 0xbf7b,
      0xbb6d, 0x4022, 0x3d7d},
     {0x396a, 0xc39c, 0x3ea4, 0x4187, 0x41e6, 0xc039, 0x3bde, 0x43bb, 0x4423, 0xbf02, 0xc09d, 0x4022, 0x4592,
      0xb930, 0x432e, 0x3f0f},
     0x421b3d3f,
     0x433a6e20,
     0x433a6e08},
    {Number::bf16,
     "products near the least normal number",
     {0x9fcf, 0x1f6b, 0x2064, 0x2095, 0xa04c, 0xa005, 0x9fa4, 0xa030, 0x9f81, 0xa036, 0x1fca, 0x9fda, 0x9b0c,
      0x1faa, 0x9e94, 0x1f33},
     {0x1f95, 0x9f52, 0x1fb1, 0x1ef6, 0xa04e, 0x1e76, 0x9f4d, 0xa071, 0x9fbb, 0xa011, 0x1fc1, 0x2005, 0x1f6c,
      0x9f59, 0x9dc5, 0x9c96},
     0x8019d6da,
     0x01ffe000,
     0x01f40a7b},
    {Number::bf16,
     "some subnormal numbers",
     {0x3539, 0x800d, 0xb585, 0x0014, 0x0000, 0x8005, 0x35f3, 0xb412, 0xb5b2, 0x8001, 0xb51f, 0x8005, 0x8007,
      0xbfa7, 0xb626, 0x3e87},
     {0x3f2c, 0x3f53, 0x3d5c, 0xbf7e, 0xbeea, 0xbe83, 0xbf17, 0xbf41, 0x3f8d, 0x3f84, 0xbf3b, 0xbfa6, 0xbdf2,
      0x3fc4, 0x3f07, 0x3fbb},
     0x3fb5f85c,
     0xbe4389e8,
     0xbe4389e0},
    {Number::f16,
     "ordinary numbers",
     {0x3c6b, 0xbc8a, 0xbe29, 0xa0c9, 0xb8b7, 0x3892, 0xb088, 0x310b, 0x3d64, 0xbe2a, 0x2699, 0x3f87, 0xc04c,
      0x33b7, 0xaa38, 0x2edd},
     {0x307e, 0xbce5, 0x3d49, 0x2867, 0x3a31, 0x3877, 0x3260, 0x3164, 0x3e00, 0xb623, 0xb993, 0x3577, 0xb188,
      0xbbdb, 0xb928, 0xbb89},
     0x3f09c221,
     std::nullopt,
     0x404d6e62},
    {Number::f16,
     "numbers of 24 binades",
     {0x5454, 0x1fc6, 0x0cb6, 0x3288, 0xc9e3, 0xb057, 0x9a66, 0xd937, 0xb0ec, 0x13e9, 0x5304, 0x2878, 0x1e35,
      0x5624, 0x8630, 0x984b},
     {0x57fc, 0x6822, 0xc6df, 0x4ad3, 0x197d, 0xd732, 0x252e, 0x382c, 0xe7e8, 0x4752, 0x0ae0, 0x4a9a, 0x4036,
      0x48f4, 0xbeb1, 0xc158},
     0x4217d413,
     std::nullopt,
     0x461e1495},
    {Number::f16,
     "some subnormal numbers",
     {0x2ce1, 0x0007, 0x012e, 0xa83a, 0x00b2, 0x2d60, 0x8001, 0x82a2, 0xae96, 0x2dcf, 0xa9d9, 0x9d20, 0x000d,
      0x8101, 0x2f00, 0x00fb},
     {0xb9bf, 0x3808, 0xa1f3, 0x3ed4, 0xb9b6, 0xb8ca, 0x3c1a, 0x3d2e, 0x39da, 0x346a, 0xbd46, 0xbd56, 0xb8c6,
      0xb14b, 0x3d80, 0xad68},
     0xbc5fc945,
     std::nullopt,
     0xbc03e35c},
};

void checkSum(const char *intrinsic, const char *processor, const Sum &sum, uint32_t wanted) {
  const MatrixUnit *unit = findMatrixUnit(intrinsic, processor);
  ASSERT_TRUE(unit) << intrinsic;
  Wavefront wavefront(*unit);
  for (int64_t k = 0; k < 16; ++k) { // row 0 and column 0
    wavefront.first[k / 4 * 16][k % 4 / 2] |= uint32_t(sum.row[k]) << k % 2 * 16;
    wavefront.second[k / 4 * 16][k % 4 / 2] |= uint32_t(sum.column[k]) << k % 2 * 16;
  }
  wavefront.sums[0][0] = std::bit_cast<float>(sum.sum);
  wavefront.multiply();
  EXPECT_EQ(std::bit_cast<uint32_t>(wavefront.results[0][0]), wanted) << processor << ": " << sum.what;
}

TEST(MatrixUnitsTest, SumsHaveThePublishedBits) {
  for (const Sum &sum : kSums) {
    bool isHalf = sum.number == Number::f16;
    const char *intrinsic =
        isHalf ? "llvm.amdgcn.mfma.f32.16x16x16f16" : "llvm.amdgcn.mfma.f32.16x16x16bf16.1k";
    if (sum.cdna2)
      checkSum(intrinsic, "gfx90a", sum, *sum.cdna2);
    checkSum(intrinsic, "gfx942", sum, sum.cdna3);
  }
}

/// Where lanes that must agree do not, or one is absent, nobody knows what counts.
TEST(MatrixUnitsTest, WhatIsUnknownIsNaN) {
  const MatrixUnit &unit = *findMatrixUnit("llvm.amdgcn.wmma.f32.16x16x16.bf16", "gfx1100");
  Wavefront wavefront(unit);
  wavefront.first[19][3] = 0x3f80; // row 3, without lane 3
  wavefront.multiply();
  EXPECT_TRUE(std::isnan(wavefront.results[16][1])); // D[3][0]
  EXPECT_EQ(wavefront.results[0][1], 0);             // D[2][0]
  std::vector<MatrixOperands> lanes(32);
  lanes[0] = {wavefront.first[0].data(), wavefront.second[0].data(), wavefront.sums[0].data(),
              wavefront.results[0].data()};
  multiply(unit, lanes);
  EXPECT_TRUE(std::isnan(wavefront.results[0][0]));
}

} // namespace
