// How arrays are cut into slices, shuffled and filled up.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>

#include "engine/artifact/batch_table.h"
#include "engine/data/batches.h"
#include "support/Random.h"
#include "test/engine/data_files.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

static NamedArray floats(const std::string &name, const Shape &shape) {
  int64_t count = 0;
  EXPECT_TRUE(countElements(shape, count));
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0f);
  return {name, DataType::Float32, shape, bytesOf(values)};
}

static InputSpec input(const std::string &name, const Shape &shape) {
  return {name, DataType::Float32, shape, name == "label"};
}

static std::vector<float> slice(const Batches &batches, size_t field, int64_t k,
                                const std::vector<int64_t> *items = nullptr) {
  std::vector<float> values(batches.getInputBytes(field) / 4);
  std::optional<Order> order;
  if (items)
    order.emplace(*items);
  Status status =
      batches.gather(field, k, items ? &*order : nullptr, reinterpret_cast<uint8_t *>(values.data()));
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  return values;
}

/// Creates batches and expects that to work.
static Batches make(std::vector<NamedArray> arrays, const std::vector<InputSpec> &inputs, Remainder remainder,
                    std::vector<std::string> *notes = nullptr) {
  Batches batches;
  std::vector<std::string> told;
  Status status = Batches::create(*makeSource(std::move(arrays)), inputs, remainder, batches, told);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  if (notes)
    *notes = told;
  return batches;
}

static std::string refuse(std::vector<NamedArray> arrays, const std::vector<InputSpec> &inputs,
                          Remainder remainder = Remainder::Drop) {
  Batches batches;
  std::vector<std::string> notes;
  return Batches::create(*makeSource(std::move(arrays)), inputs, remainder, batches, notes).getMessage();
}

TEST(BatchesTest, DropsAShortLastBatchInTraining) {
  Batches batches = make({floats("x", {7, 2}), floats("label", {7})},
                         {input("x", {3, 2}), input("label", {3})}, Remainder::Drop);
  EXPECT_TRUE(batches.isBatch());
  EXPECT_EQ(batches.getSlices(), 2);
  EXPECT_EQ(batches.getDropped(), 1);
  EXPECT_EQ(slice(batches, 0, 1), (std::vector<float>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(slice(batches, 1, 1), (std::vector<float>{3, 4, 5}));
}

TEST(BatchesTest, RepeatsSamplesToFillTheLastSlice) {
  Batches batches = make({floats("x", {8})}, {input("x", {5})}, Remainder::Repeat);
  EXPECT_EQ(batches.getSlices(), 2);
  EXPECT_EQ(batches.getRealRows(0), 5);
  EXPECT_EQ(batches.getRealRows(1), 3);
  EXPECT_EQ(slice(batches, 0, 1), (std::vector<float>{5, 6, 7, 5, 6}));
}

TEST(BatchesTest, FillsASliceThatIsLargerThanTheData) {
  Batches batches = make({floats("x", {2})}, {input("x", {5})}, Remainder::Repeat);
  EXPECT_EQ(slice(batches, 0, 0), (std::vector<float>{0, 1, 0, 1, 0}));
}

/// A mask of [rows, columns] for every sample has the beginning of both; what is not cut is as ever.
TEST(BatchesTest, CutsRowsAtTheirEnds) {
  Batches batches = make({floats("x", {4, 2, 3, 4}), floats("y", {4, 2})},
                         {input("x", {2, 2, 3, 4}), input("y", {2, 2})}, Remainder::Drop);
  Order order({3, 0, 1, 2});
  std::vector<float> values(2 * 2 * 2 * 3);
  ASSERT_TRUE(batches.gather(0, 0, &order, {2, 2, 2, 3}, reinterpret_cast<uint8_t *>(values.data())).isOk());
  std::vector<float> wanted;
  for (int sample : {3, 0})
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        for (int k = 0; k < 3; ++k)
          wanted.push_back(float(((sample * 2 + i) * 3 + j) * 4 + k));
  EXPECT_EQ(values, wanted);
  values.resize(4);
  ASSERT_TRUE(batches.gather(1, 0, &order, {2, 2}, reinterpret_cast<uint8_t *>(values.data())).isOk());
  EXPECT_EQ(values, (std::vector<float>{6, 7, 0, 1}));
  EXPECT_TRUE(batches.canCut(0));
  EXPECT_FALSE(
      make({floats("x", {2, 4})}, {input("x", {1, 2, 2})}, Remainder::Drop).canCut(0)); // read as slices
}

TEST(BatchesTest, PermutesSamplesOfABatch) {
  Batches batches = make({floats("x", {4, 2}), floats("label", {4})},
                         {input("x", {2, 2}), input("label", {2})}, Remainder::Drop);
  std::vector<int64_t> order = {3, 0, 2, 1};
  EXPECT_EQ(slice(batches, 0, 0, &order), (std::vector<float>{6, 7, 0, 1}));
  EXPECT_EQ(slice(batches, 1, 1, &order), (std::vector<float>{2, 1}));
}

TEST(BatchesTest, PermutesWholeSlicesWhenLeadingDimensionsDiffer) {
  Batches batches = make({floats("nodes", {6}), floats("edges", {4, 2})},
                         {input("nodes", {3}), input("edges", {2, 2})}, Remainder::Drop);
  EXPECT_FALSE(batches.isBatch());
  EXPECT_EQ(batches.getSlices(), 2);
  EXPECT_EQ(batches.getItems(), 2);
  std::vector<int64_t> order = {1, 0};
  EXPECT_EQ(slice(batches, 0, 0, &order), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(slice(batches, 1, 1, &order), (std::vector<float>{0, 1, 2, 3}));
}

/// Equal numbers are no batch where the model has another dimension there.
TEST(BatchesTest, PermutesWholeSlicesWhereTheModelKnowsOfNoBatch) {
  InputSpec x = input("x", {2, 2}), graph = input("graph", {2, 2});
  x.isBatch = true;
  graph.isBatch = false;
  Batches batches = make({floats("x", {4, 2}), floats("graph", {4, 2})}, {x, graph}, Remainder::Drop);
  EXPECT_FALSE(batches.isBatch());
  EXPECT_EQ(batches.getItems(), 2);
  std::vector<int64_t> order = {1, 0};
  EXPECT_EQ(slice(batches, 0, 0, &order), (std::vector<float>{4, 5, 6, 7}));
  EXPECT_EQ(slice(batches, 1, 1, &order), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(batches.describeShuffling(),
            "data.npz: whole slices change places, and no samples: the leading dimension of 'graph' is not "
            "the batch");
  EXPECT_EQ(refuse({floats("x", {3, 2}), floats("graph", {3, 2})}, {x, graph}, Remainder::Repeat),
            "data.npz: array 'x' has 3 rows, which is no multiple of the 2 of a slice, and no samples can be "
            "repeated: the leading dimension of 'graph' is not the batch");
  EXPECT_EQ(
      make({floats("x", {2, 2}), floats("graph", {2, 2})}, {x, graph}, Remainder::Drop).describeShuffling(),
      ""); // of one slice
}

TEST(BatchesTest, SaysWhenABatchIsNothingButEqualNumbers) {
  InputSpec x = input("x", {2, 2}), label = input("label", {2});
  auto describe = [&] {
    return make({floats("x", {4, 2}), floats("label", {4})}, {x, label}, Remainder::Drop).describeShuffling();
  };
  const std::string note =
      "data.npz: the leading dimension, 2 in every input, is taken for a batch, and samples of all steps are "
      "mixed; where the rows of a step belong together, give --no-shuffle, or export the model with a "
      "symbolic batch dimension";
  EXPECT_EQ(describe(), note);
  x.isBatch = true;
  EXPECT_EQ(describe(), note);
  label.isBatch = true;
  EXPECT_EQ(describe(), "");
  EXPECT_EQ(make({floats("x", {4, 2})}, {input("x", {1, 2})}, Remainder::Drop).describeShuffling(), "")
      << "a slice of one sample";
  EXPECT_EQ(make({floats("x", {4, 2}), floats("edges", {6})}, {input("x", {2, 2}), input("edges", {3})},
                 Remainder::Drop)
                .describeShuffling(),
            "");
}

TEST(BatchesTest, SaysHowTheLastSliceIsFilled) {
  auto describe = [](int64_t samples) {
    return make({floats("x", {samples})}, {input("x", {5})}, Remainder::Repeat).describeFilling();
  };
  EXPECT_EQ(describe(10), "");
  EXPECT_EQ(describe(8),
            "data.npz: the last slice has 3 samples and is filled to 5 by repeating them, which changes "
            "results where the model lets samples depend on each other");
  EXPECT_EQ(describe(6),
            "data.npz: the last slice has 1 sample and is filled to 5 by repeating it, which changes "
            "results where the model lets samples depend on each other");
}

TEST(BatchTableTest, TakesWhatAManifestSays) {
  BatchTable table = BatchTable::parse(
      R"({"bindings": [{"name": "a", "inputs": [{"name": "x", "batch": true}, {"name": "y", "batch": false},)"
      R"( {"name": "z"}, {"name": "w", "batch": 1}, 7], "outputs": [{"name": "x", "batch": false}]}, 3]})");
  EXPECT_EQ(table.find("a", "x", true), std::optional(true));
  EXPECT_EQ(table.find("a", "y", true), std::optional(false));
  EXPECT_EQ(table.find("a", "x", false), std::optional(false));
  for (const char *name : {"z", "w", "v"})
    EXPECT_EQ(table.find("a", name, true), std::nullopt) << name;
  EXPECT_EQ(table.find("b", "x", true), std::nullopt);
  for (const char *text : {"", "[]", "{}", R"({"bindings": {"inputs": 1}})", R"({"bindings": [[]]})"})
    EXPECT_EQ(BatchTable::parse(text).find("a", "x", true), std::nullopt) << text;
}

TEST(BatchesTest, GivesAScalarInputOneValueASlice) {
  Batches batches =
      make({floats("x", {4}), floats("time", {2})}, {input("x", {2}), input("time", {})}, Remainder::Drop);
  EXPECT_FALSE(batches.isBatch());
  EXPECT_EQ(batches.getSlices(), 2);
  EXPECT_EQ(slice(batches, 1, 1), (std::vector<float>{1}));
}

TEST(BatchesTest, TakesALoneNumberAsOneSlice) {
  Batches one = make({floats("time", {})}, {input("time", {})}, Remainder::Repeat);
  EXPECT_EQ(one.getSlices(), 1);
  EXPECT_EQ(slice(one, 0, 0), (std::vector<float>{0}));
  Batches many = make({floats("time", {3})}, {input("time", {})}, Remainder::Repeat);
  EXPECT_EQ(many.getSlices(), 3);
  EXPECT_EQ(slice(many, 0, 2), (std::vector<float>{2}));
  Batches beside = make({floats("x", {2, 3}), floats("time", {})}, {input("x", {2, 3}), input("time", {})},
                        Remainder::Repeat);
  EXPECT_EQ(beside.getSlices(), 1);
}

TEST(BatchesTest, ConvertsWhileGathering) {
  std::vector<NamedArray> arrays = {{"x", DataType::UInt8, {2, 2}, std::string("\1\2\3\4")}};
  std::vector<std::string> notes;
  Batches batches = make(arrays, {input("x", {1, 2})}, Remainder::Drop, &notes);
  EXPECT_EQ(slice(batches, 0, 1), (std::vector<float>{3, 4}));
  EXPECT_EQ(notes, (std::vector<std::string>{
                       "data.npz: array 'x' is uint8; it is converted to the graph's float32"}));
}

TEST(BatchesTest, RegroupsNeighbouringDimensionsWithANote) {
  std::vector<std::string> notes;
  Batches batches = make({floats("x", {2, 8, 8})}, {input("x", {1, 1, 64})}, Remainder::Drop, &notes);
  EXPECT_EQ(batches.getSlices(), 2);
  EXPECT_EQ(notes, (std::vector<std::string>{
                       "data.npz: array 'x' of shape [2, 8, 8] is read as slices of [1, 1, 64]"}));
}

TEST(BatchesTest, TakesTheOnlyArrayForTheOnlyInput) {
  std::vector<std::string> notes;
  make({floats("image", {4, 3}), floats("label", {4})}, {input("pixels", {2, 3}), input("label", {2})},
       Remainder::Drop, &notes);
  EXPECT_EQ(notes, (std::vector<std::string>{
                       "data.npz: array 'image' is taken for the graph's only input 'pixels'"}));
}

TEST(BatchesTest, SaysWhichArraysAreNotUsed) {
  std::vector<std::string> notes;
  make({floats("x", {4}), floats("y", {4}), floats("label", {4})}, {input("x", {2})}, Remainder::Drop,
       &notes);
  EXPECT_EQ(notes, (std::vector<std::string>{"data.npz: not used: 'y'"}));
}

TEST(BatchesTest, AGraphWithoutInputsHasOneStep) {
  std::vector<std::string> notes;
  Batches batches = make({floats("x", {4})}, {}, Remainder::Repeat, &notes);
  EXPECT_EQ(batches.getSlices(), 1);
  EXPECT_EQ(batches.getRealRows(0), 1);
  EXPECT_EQ(notes, (std::vector<std::string>{"data.npz: not used: 'x'"}));
}

TEST(BatchesTest, RefusesAMissingArray) {
  EXPECT_EQ(refuse({floats("x", {4})}, {input("x", {2}), input("label", {2})}),
            "data.npz: has no array 'label' for the loss; it has 'x'");
  EXPECT_EQ(refuse({floats("a", {4}), floats("b", {4})}, {input("x", {2})}),
            "data.npz: has no array 'x' for the input of that name; it has 'a', 'b'");
}

TEST(BatchesTest, RefusesShapesThatOnlyCountTheSame) {
  EXPECT_EQ(refuse({floats("x", {2, 32, 32, 3})}, {input("x", {1, 3, 32, 32})}),
            "data.npz: array 'x' has shape [2, 32, 32, 3] but input 'x' is [1, 3, 32, 32]: all dimensions "
            "after the "
            "first must be equal");
}

TEST(BatchesTest, SaysWhatOneHotLabelsNeed) {
  EXPECT_EQ(
      refuse({floats("x", {4, 3}), floats("label", {4, 10})}, {input("x", {2, 3}), input("label", {2})}),
      "data.npz: array 'label' has shape [4, 10] but input 'label' is [2]: all dimensions after the first "
      "must "
      "be equal; for one-hot or probability labels compile with --loss cross_entropy:probabilities=1");
}

TEST(BatchesTest, RefusesCountsThatDisagree) {
  EXPECT_EQ(refuse({floats("x", {4}), floats("label", {6})}, {input("x", {2}), input("label", {2})}),
            "data.npz: array 'label' has 6 samples but 'x' has 4");
  EXPECT_EQ(refuse({floats("x", {4}), floats("edges", {9})}, {input("x", {2}), input("edges", {3})}),
            "data.npz: array 'edges' has 3 slices but 'x' has 2");
}

TEST(BatchesTest, RefusesTooLittleData) {
  EXPECT_EQ(refuse({floats("x", {3})}, {input("x", {4})}),
            "data.npz: has 3 samples but a batch takes 4; compile with a smaller batch (--shape)");
  EXPECT_EQ(refuse({floats("x", {0, 4})}, {input("x", {1, 4})}),
            "data.npz: array 'x' has shape [0, 4] and holds no elements");
  EXPECT_EQ(refuse({floats("x", {1})}, {input("x", {4})}),
            "data.npz: has 1 sample but a batch takes 4; compile with a smaller batch (--shape)");
  EXPECT_EQ(refuse({floats("x", {})}, {input("x", {2})}),
            "data.npz: has 1 sample but a batch takes 2; compile with a smaller batch (--shape)");
  EXPECT_EQ(refuse({floats("x", {4}), floats("time", {})}, {input("x", {2}), input("time", {})}),
            "data.npz: array 'time' has 1 slice but 'x' has 2");
}

TEST(BatchesTest, NamesTheAxisOfLogitsWithClassesLast) {
  NamedArray label{"label", DataType::Int64, {8, 16}, std::string(8 * 16 * 8, '\0')};
  InputSpec classes{"label", DataType::Int64, {4, 96},
                    true,    std::nullopt,    "cross_entropy"}; // of logits [4, 16, 96]
  EXPECT_EQ(refuse({label}, {classes}),
            "data.npz: array 'label' has shape [8, 16] but input 'label' is [4, 96]: all dimensions after "
            "the first "
            "must be equal; where the last axis of the output has the classes, compile with --loss "
            "cross_entropy:axis=2");
}

TEST(BatchesTest, NamesTheSizeOfLabelsOfSequences) {
  NamedArray label{"label", DataType::Int64, {8, 5}, std::string(8 * 5 * 8, '\0')};
  NamedArray lengths{"target_lengths", DataType::Int64, {8}, std::string(8 * 8, '\0')};
  InputSpec classes{"label", DataType::Int64, {4, 48}, true},
      counts{"target_lengths", DataType::Int64, {4}, true};
  classes.loss = "ctc";
  EXPECT_EQ(
      refuse({label, lengths}, {classes, counts}),
      "data.npz: array 'label' has shape [8, 5] but input 'label' is [4, 48]: all dimensions after the first "
      "must be equal; a sample has 48 labels with padding: compile with --loss ctc:labels=5, or cut or pad "
      "the array");
}

TEST(BatchesTest, RefusesARestOfRowsWhereNothingCanBeRepeated) {
  EXPECT_EQ(
      refuse({floats("x", {4}), floats("edges", {7})}, {input("x", {2}), input("edges", {3})},
             Remainder::Repeat),
      "data.npz: array 'edges' has 7 rows, which is no multiple of the 3 of a slice, and no samples can be "
      "repeated: leading dimensions differ");
}

TEST(BatchesTest, WhatIsCopiedFromAFileDoesNotStayResident) {
  constexpr int64_t kRow = 1 << 16, kRows = 8; // 256 KiB a row: what is smaller stays
  NamedArray array = floats("x", {kRows, kRow});
  TemporaryFolder folder;
  std::string shape = "(" + std::to_string(kRows) + ", " + std::to_string(kRow) + ")";
  std::string path = folder.write("data.npz", zip({{"x.npy", npyOf("<f4", shape, array.data)}}));
  auto countResident = [&] {
    std::ifstream maps("/proc/self/smaps");
    std::string line;
    while (std::getline(maps, line) && !line.ends_with(path)) {
    }
    while (std::getline(maps, line) && !line.starts_with("Rss:")) {
    }
    return line.starts_with("Rss:") ? std::stol(line.substr(4)) : -1;
  };
  std::unique_ptr<DataSource> source;
  ASSERT_TRUE(openData(path, source).isOk());
  Batches batches;
  std::vector<std::string> notes;
  ASSERT_TRUE(Batches::create(*source, {input("x", {2, kRow})}, Remainder::Drop, batches, notes).isOk());
  std::vector<int64_t> order = shuffle(1, 0, kRows);
  for (int64_t k = 0; k < kRows / 2; ++k) {
    EXPECT_EQ(slice(batches, 0, k)[kRow], float((2 * k + 1) * kRow));
    EXPECT_EQ(slice(batches, 0, k, &order)[kRow], float(order[size_t(2 * k + 1)] * kRow));
  }
  EXPECT_GE(countResident(), 0);
  EXPECT_LE(countResident(), 64 * 4) << "a few pages beside what was copied last, of 2 MiB";
}

TEST(ShuffleTest, IsAPermutationThatDependsOnSeedAndEpochOnly) {
  std::vector<int64_t> order = shuffle(7, 3, 1000);
  EXPECT_EQ(order, shuffle(7, 3, 1000));
  EXPECT_NE(order, shuffle(7, 4, 1000));
  EXPECT_NE(order, shuffle(8, 3, 1000));
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < 1000; ++i)
    EXPECT_EQ(order[size_t(i)], i);
}

TEST(ShuffleTest, IsTheSameOnEveryMachine) {
  // By integers of any size, in Python: the formula of engine/data/batches.cpp and support/Random.h.
  EXPECT_EQ(shuffle(7, 3, 12), (std::vector<int64_t>{0, 10, 2, 8, 1, 4, 9, 6, 5, 11, 3, 7}));
  constexpr uint64_t kMost = UINT64_MAX;
  EXPECT_EQ(pickBelow(1, kMost), 0u);
  EXPECT_EQ(pickBelow(kMost, kMost), kMost - 1);
  EXPECT_EQ(pickBelow(kMost >> 1, 0xfedcba9876543210), 0x7f6e5d4c3b2a1907u);
  EXPECT_EQ(pickBelow(0x123456789abcdef0, 0x0fedcba987654321), 0x121fa00ad77d742u);
  EXPECT_EQ(pickBelow(3, 0xaaaaaaaaaaaaaaab), 2u);
  EXPECT_EQ(pickBelow(3, 0xaaaaaaaaaaaaaaaa), 1u);
}

TEST(ShuffleTest, PutsEveryItemEverywhereAboutEquallyOften) {
  // 4000 epochs of 8 items: each item is expected 500 times in each place, with a standard deviation of 21.
  std::vector<std::vector<int>> counts(8, std::vector<int>(8));
  for (int64_t epoch = 0; epoch < 4000; ++epoch) {
    std::vector<int64_t> order = shuffle(1, epoch, 8);
    for (size_t place = 0; place < 8; ++place)
      ++counts[place][size_t(order[place])];
  }
  for (const auto &row : counts)
    for (int count : row)
      EXPECT_NEAR(count, 500, 5 * 21);
}
