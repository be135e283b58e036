// Further shapes of convolutions: tails, strides, groups and blocks in other combinations than ConvTest has.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/conv/ConvCheck.h"

using namespace ortc::cpu;
using namespace ortc::cpu::test;

namespace {

TEST(ConvSweepTest, DepthwiseLines) {
  check({1, {4, 50}, 8, {1, 3}, 8, {}, {0, 9}, {}, {1, 9}, 8}, Coverage::Widest);
  check({1, {40, 41}, 20, {5, 5}, 20, {2, 2}, {8, 8}, {}, {4, 3}, 20}, Coverage::Widest);
  check({1, {3, 20}, 17, {5, 7}, 17, {}, {2, 3}, {}, {}, 17}, Coverage::Widest);
  check({3, {1, 1}, 48, {3, 3}, 48, {}, {1, 1}, {}, {}, 48}, Coverage::Widest);
  // Wide windows, windows of nothing but padding, positions that nothing reads.
  check({2, {70}, 18, {31}, 18, {}, {15}, {}, {}, 18}, Coverage::Widest);
  check({1, {30}, 4, {40}, 4, {}, {20}, {}, {}, 4}, Coverage::Widest);
  check({1, {4, 5}, 6, {2, 2}, 6, {}, {3, 4}, {4, 7}, {}, 6}, Coverage::Widest);
  check({1, {10, 21}, 12, {1, 2}, 12, {3, 4}, {}, {}, {}, 12}, Coverage::Widest);
  check({1, {3, 40}, 4, {2, 2}, 4, {1, 9}, {}, {}, {}, 4}, Coverage::Widest);
}

TEST(ConvSweepTest, DepthwiseWindowLines) {
  check({1, {8, 35}, 36, {4, 5}, 36, {}, {4, 2}, {1, 2}, {2, 1}, 36}, Coverage::Widest, Doubles::All,
        Kind::FilterGrad);
  check({2, {3, 19}, 17, {5, 2}, 17, {1, 2}, {2, 1}, {}, {}, 17}, Coverage::Widest, Kind::FilterGrad);
  check({1, {4, 5, 18}, 12, {2, 4, 3}, 12, {}, {1, 2, 1}, {}, {}, 12}, Coverage::Widest, Kind::FilterGrad);
}

TEST(ConvSweepTest, DepthwiseFetched) {
  check({1, {66, 80}, 160, {3, 5}, 160, {2, 2}, {1, 1}, {}, {}, 160}, Coverage::Widest);
}

TEST(ConvSweepTest, NarrowGroups) {
  check({1, {5, 9}, 12, {3, 3}, 24, {}, {1, 1}, {}, {}, 6}, Coverage::Widest);
  check({1, {5, 9}, 24, {3, 3}, 12, {1, 2}, {1, 1}, {}, {}, 3}, Coverage::Widest);
  check({1, {6, 6}, 8, {3, 3}, 64, {}, {1, 1}, {}, {}, 8});
  check({1, {6, 6}, 64, {3, 3}, 8, {}, {1, 1}, {}, {}, 8}, Coverage::Widest);
  check({1, {6, 6}, 40, {1, 1}, 40, {}, {}, {}, {}, 10}, Coverage::Widest);
  check({1, {4, 4, 9}, 8, {2, 3, 3}, 8, {1, 2, 1}, {1, 0, 1}, {}, {}, 2}, Coverage::Widest);
  // Not narrow: three and sixteen features a group.
  check({1, {6, 6}, 4, {3, 3}, 12, {}, {1, 1}, {}, {}, 4}, Coverage::Widest);
  check({1, {6, 6}, 32, {3, 3}, 32, {}, {1, 1}, {}, {}, 2}, Coverage::Widest);
}

TEST(ConvSweepTest, OneDimension) {
  check({2, {30}, 12, {5}, 12, {}, {2}, {}, {}, 12});
  check({2, {30}, 12, {5}, 8, {2}, {2}, {}, {}, 4});
}

TEST(ConvSweepTest, ThreeDimensions) {
  check({1, {6, 5, 6}, 6, {3, 3, 3}, 6, {}, {1, 1, 1}, {}, {}, 6});
  check({1, {7, 7, 6}, 4, {2, 2, 2}, 6, {1, 2, 1}, {1, 0, 1}, {}, {2, 1, 2}, 2});
}

TEST(ConvSweepTest, DepthwiseChunks) {
  for (int64_t channels : {144, 264})
    check({2, {6, 7}, channels, {3, 3}, channels, {}, {1, 1}, {}, {}, channels}, Coverage::Widest,
          Doubles::All);
}

TEST(ConvSweepTest, OddChannelCounts) {
  for (int64_t channels : {1, 17, 33})
    for (int64_t features : {1, 65})
      check({1, {5, 6}, channels, {2, 3}, features, {}, {1, 1}}, Coverage::Widest);
}

TEST(ConvSweepTest, BlocksOfTheReduction) {
  check({1, {30, 27}, 80, {3, 3}, 70, {}, {2, 2}, {}, {2, 2}}, Coverage::Widest);
  check({2, {4, 4}, 97, {5, 5}, 33, {}, {2, 2}}, Coverage::Widest);
  check({1, {500}, 300, {3}, 17, {}, {1}}, Coverage::Widest);
  check({1, {5, 5, 4}, 48, {3, 3, 3}, 20, {1, 2, 1}, {1, 1, 1}}, Coverage::Widest);
}

TEST(ConvSweepTest, FewerProducts) {
  check({5, {33, 31}, 32, {3, 3}, 32, {}, {1, 1}}, Coverage::Widest);
  check({2, {20, 21}, 160, {3, 3}, 144, {}, {1, 1}}, Coverage::Widest);
  check({3, {15, 15}, 320, {3, 3}, 128, {}, {1, 1}}, Coverage::Widest);
  check({1, {4, 4}, 32, {3, 3}, 32, {}, {3, 0}, {0, 4}}, Coverage::Widest);
}

TEST(ConvSweepTest, FewerProductsOfStrides) {
  check({1, {24, 23}, 32, {3, 4}, 32, {2, 2}, {0, 2}, {1, 0}}, Coverage::Widest);
  check({1, {18, 25}, 32, {4, 4}, 16, {2, 2}, {3, 0}, {2, 3}}, Coverage::Widest);
  check({2, {16, 17}, 160, {3, 3}, 144, {2, 2}, {1, 1}}, Coverage::Widest);
  check({9, {16, 16}, 128, {4, 4}, 96, {2, 2}, {1, 1}}, Coverage::Widest);
  check({1, {26, 27}, 192, {4, 3}, 160, {2, 2}, {2, 0}, {1, 1}}, Coverage::Widest);
}

TEST(ConvSweepTest, Strides) {
  check({2, {9, 9}, 8, {1, 1}, 16, {2, 2}});
  // Fewer positions than phases.
  check({2, {5, 1}, 4, {3, 3}, 8, {2, 2}, {1, 1}});
  check({2, {2, 1}, 4, {3, 3}, 8, {3, 3}, {1, 1}});
  check({3, {1}, 4, {3}, 8, {2}, {1}});
}

TEST(ConvSweepTest, UnequalPadding) {
  // Wider than the window: results of nothing but padding.
  check({1, {4, 4}, 3, {2, 2}, 5, {}, {3, 0}, {0, 4}});
}

TEST(ConvSweepTest, Dilations) { check({1, {16, 16}, 2, {2, 3}, 4, {4, 2}, {1, 2}, {}, {2, 4}}); }

TEST(ConvSweepTest, Depthwise) {
  // One channel a group, two features.
  check({1, {8, 8}, 6, {3, 3}, 12, {}, {1, 1}, {}, {}, 6});
}

TEST(ConvSweepTest, Groups) {
  check({1, {6, 6}, 4, {2, 2}, 40, {}, {}, {}, {}, 4});
  check({1, {6, 6}, 40, {3, 1}, 4, {}, {1, 0}, {}, {}, 4});
}

TEST(ConvSweepTest, Points) {
  check({2, {9, 9}, 24, {1, 1}, 700, {2, 2}, {}, {}, {}}, Coverage::Widest);
  check({1, {8, 8}, 20, {1, 1}, 20, {}, {1, 1}}, Coverage::Widest);
}

TEST(ConvSweepTest, SeveralBlocksAndChunks) {
  check({1, {90, 64}, 20, {5, 3}, 6, {2, 1}, {2, 1}}, Coverage::Widest);
  check({1, {3000}, 32, {3}, 5, {}, {1}}, Coverage::Widest);
}

TEST(ConvSweepTest, InputGradientsOfFewChannels) {
  check({5, {33}, 2, {6}, 12, {1}, {5}}, Coverage::Targets, Kind::InputGrad);
  check({2, {5, 6, 7}, 2, {3, 2, 3}, 8, {1, 2, 1}, {1, 0, 1}, {}, {2, 1, 1}}, Coverage::Targets,
        Kind::InputGrad);
  // Windows wider than the image, and results that no window reaches.
  check({2, {4, 4}, 3, {5, 5}, 8, {}, {2, 2}}, Coverage::Targets, Kind::InputGrad);
  check({2, {8, 11}, 3, {2, 2}, 8, {3, 3}}, Coverage::Targets, Kind::InputGrad);
  // Each chunk has some of the images.
  check({6, {40, 40}, 3, {4, 4}, 64, {2, 2}, {1, 1}}, Coverage::Widest, Kind::InputGrad);
}

TEST(ConvSweepTest, FilterGradientsOfFirstLayers) {
  check({6, {9, 11}, 2, {4, 3}, 21, {1, 2}, {1, 1}, {}, {2, 1}}, Coverage::All, Kind::FilterGrad);
  check({2, {20, 17}, 1, {2, 5}, 33, {2, 1}, {1, 0}, {0, 2}, {1, 3}}, Coverage::Targets, Kind::FilterGrad);
}

TEST(ConvSweepTest, OnePoint) { check({2, {4, 4}, 9, {4, 4}, 12}); }

TEST(ConvSweepTest, PointsFetched) {
  check({2, {61, 52}, 100, {1, 1}, 21}, Coverage::Widest, Doubles::All, Kind::FilterGrad);
}

TEST(ConvSweepTest, FirstLayers) { check({2, {16, 16}, 3, {3, 3}, 8, {}, {1, 1}}); }

TEST(ConvSweepTest, SquareWindowsWithPadding) { check({3, {5, 5}, 8, {5, 5}, 24, {}, {2, 2}}); }

} // namespace
