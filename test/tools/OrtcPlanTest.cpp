// ortc-plan as a process: MiniMalloc's hard packings, what it prints, exit statuses and messages, hostile files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdio>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <sys/wait.h>

#include "test/engine/data_files.h"

using namespace ortc::engine::test;

namespace {

struct Outcome {
  int status;       ///< of exit
  std::string text; ///< stdout and stderr
};

/// Runs the tool through a shell.
Outcome run(const std::string &arguments, const std::string &redirection = "2>&1") {
  std::FILE *pipe = popen((std::string(ORTC_PLAN) + " " + arguments + " " + redirection).c_str(), "r");
  Outcome outcome;
  char buffer[4096];
  for (size_t count; (count = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    outcome.text.append(buffer, count);
  int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

/// Rows of a CSV file of numbers, by the names of the header.
std::vector<std::map<std::string, uint64_t>> readRows(const std::string &text) {
  std::vector<std::map<std::string, uint64_t>> rows;
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::map<std::string, uint64_t> row;
    bool isHeader = names.empty();
    size_t at = 0;
    for (std::string field; std::getline(fields, field, ','); ++at)
      if (isHeader)
        names.push_back(field);
      else
        row[names.at(at)] = std::stoull(field);
    if (!isHeader)
      rows.push_back(row);
  }
  return rows;
}

class OrtcPlanTest : public testing::Test {
protected:
  /// Packs a file with these contents.
  Outcome pack(const std::string &text, const std::string &flags = "") {
    return run(folder.write("in.csv", text) + " " + flags);
  }
  std::string in() const { return folder / "in.csv"; }
  std::string out() const { return folder / "out.csv"; }
  bool isWritten() const { return std::filesystem::exists(out()); }

  TemporaryFolder folder;
};

constexpr const char *kExample = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n";

class HardPackingTest : public OrtcPlanTest, public testing::WithParamInterface<const char *> {};

/// Work is counted: what fits here fits on every machine. 3000 million units take at most 10 s on one slow core.
TEST_P(HardPackingTest, FitsItsCapacity) {
  std::string file = std::string(ORTC_PACKINGS) + "/" + GetParam() + ".1048576.csv";
  Outcome outcome = run(file + " --capacity 1048576 --work 3000 -o " + out());
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  auto given = readRows(readFile(file)), placed = readRows(readFile(out()));
  ASSERT_EQ(given.size(), placed.size());
  for (size_t i = 0; i < placed.size(); ++i) {
    auto &x = placed[i];
    ASSERT_LE(x["offset"] + x["size"], 1048576u);
    for (const auto &[name, value] : given[i])
      ASSERT_EQ(x[name], value) << name;
    for (size_t k = 0; k < i; ++k) {
      auto &y = placed[k];
      bool meet = x["lower"] < y["upper"] && y["lower"] < x["upper"] &&
                  x["offset"] < y["offset"] + y["size"] && y["offset"] < x["offset"] + x["size"];
      ASSERT_FALSE(meet) << i << " and " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(MiniMalloc, HardPackingTest, testing::Values("A", "B", "C", "D", "E", "F"));

TEST_F(OrtcPlanTest, PrintsItsFigures) {
  Outcome outcome = pack(kExample, "--capacity 13 -o " + out());
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.text.substr(0, outcome.text.find("seconds")),
            "buffers    5\nmax-live   12\nheight     12\ngap        0 bytes (0.000 %) above max-live\n"
            "capacity   13\nplacement  skyline:size\n");
  std::string written = readFile(out());
  EXPECT_EQ(written.substr(0, written.find('\n')), "id,lower,upper,size,offset");
  // A solution is a problem whose offsets are fixed: it is judged as it is.
  EXPECT_EQ(run(out() + " --capacity 12").status, 0);
}

TEST_F(OrtcPlanTest, MinimisesWithoutACapacity) {
  Outcome outcome = pack("id,lower,upper,size,offset\na,0,9,4,6\nb,0,9,6,\nc,0,9,1,\n");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.text.find("height     11\n"), std::string::npos) << outcome.text;
}

TEST_F(OrtcPlanTest, PoolsHaveCapacitiesOfTheirOwn) {
  const char *text = "id,lower,upper,size,pool\na,0,9,4,0\nb,0,9,6,2\nc,0,9,1,2\n";
  Outcome outcome = pack(text, "--capacity 2=7 --capacity 4 -o " + out());
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("pool       2\nbuffers    2\nmax-live   7\n"), std::string::npos)
      << outcome.text;
  EXPECT_EQ(readFile(out()), "id,lower,upper,size,pool,offset\na,0,9,4,0,0\nb,0,9,6,2,0\nc,0,9,1,2,6\n");
  outcome = pack(text, "--capacity 2=6 -o " + folder / "other.csv");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("ortc-plan: error: " + in() +
                              ": pool 2: no packing fits the capacity of 6 bytes: "
                              "max-live is 7; raise --capacity to 7\n"),
            std::string::npos)
      << outcome.text;
  EXPECT_FALSE(std::filesystem::exists(folder / "other.csv"));
  EXPECT_EQ(pack(text, "--capacity 9=6").text,
            "ortc-plan: error: --capacity 9=6: " + in() + " has no buffer in pool 9\n");
}

TEST_F(OrtcPlanTest, EmptyFilesOfBuffers) {
  Outcome outcome = pack("id,lower,upper,size\n", "--capacity 0 -o " + out());
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(readFile(out()), "id,lower,upper,size\n");
}

TEST_F(OrtcPlanTest, SaysWhatIsMissingToFit) {
  Outcome outcome = pack(kExample, "--capacity 11 -o " + out());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find(
                "ortc-plan: error: " + in() +
                ": no packing fits the capacity of 11 bytes: max-live is 12; raise --capacity to 12\n"),
            std::string::npos)
      << outcome.text;
  // With a fixed buffer in the middle the bound says nothing; the search does.
  outcome = pack("id,lower,upper,size,offset\na,0,9,4,3\nb,0,9,4,\nc,0,2,1,\n", "--capacity 10 -o " + out());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find(
                "no packing within the capacity of 10 bytes was found: the best is 11 high, and max-live "
                "is 9; raise --capacity to that height, or --work to search longer\n"),
            std::string::npos)
      << outcome.text;
  outcome = pack("id,lower,upper,size,offset\na,0,9,4,30\n", "--capacity 10 -o " + out());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("bound      34, the end of a fixed buffer\n"), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("a fixed buffer ends at 34; raise --capacity to 34\n"), std::string::npos)
      << outcome.text;
  EXPECT_FALSE(isWritten());
}

TEST_F(OrtcPlanTest, HostileFilesAreRefused) {
  const std::map<std::string, std::string> files = {
      {"", "line 1: the file is empty"},
      {std::string(1, '\0'), "line 1: a zero byte"},
      {"\x7f"
       "ELF",
       "line 1: the header has no column 'id'"},
      {"id,lower,upper,size\n1,0,1\n", "line 2: there are 3 fields but the header has 4"},
      {"id,lower,upper,size\n1,0,1,99999999999999999999\n",
       "line 2: size 99999999999999999999 is above 4611686018427387904"},
      {"id,lower,upper,size\n1,3,1,4\n", "line 2: the buffer ends at 1, not after it begins at 3"},
      {"id,lower,upper,size,alignment\n1,0,1,4,0\n", "line 2: alignment 0 is not a power of two"},
      {"id,lower,upper,size,gaps\n1,0,9,4,1-2@9:10\n",
       "line 2: gap '1-2@9:10' has a window that is empty or not within the 4 bytes of the buffer"},
      {"id,lower,upper,size,offset\n1,0,9,4,0\n2,3,4,4,2\n",
       "items 0 and 1 have fixed offsets at which they overlap at time 3"},
      {"id,lower,upper,size\n\"1,0,1,4\n", "line 2: a quoted field has no closing quote"}};
  for (const auto &[text, message] : files) {
    Outcome outcome = pack(text, "-o " + out());
    EXPECT_EQ(outcome.status, 2) << text;
    EXPECT_EQ(outcome.text, "ortc-plan: error: " + in() + ": " + message + "\n");
    EXPECT_FALSE(isWritten());
  }
}

TEST_F(OrtcPlanTest, DamagedFilesNeverCrash) {
  uint32_t state = 1;
  auto draw = [&](uint32_t limit) { return (state = state * 1664525 + 1013904223, (state >> 8) % limit); };
  const std::string good = "id,lower,upper,size,alignment,gaps,hint,offset,pool\n1,0,30,4,4,1-2@1:3,-1,8,0\n"
                           "2,0,20,16,1,,0,,0\n3,10,30,64,64,12-14,,,1\n";
  for (int i = 0; i < 150; ++i) {
    std::string text = good;
    for (uint32_t k = 1 + draw(3); k > 0; --k)
      text[draw(uint32_t(text.size()))] = "0123456789,-@: \n\"x"[draw(18)];
    Outcome outcome = pack(text, "--work 1");
    EXPECT_TRUE(outcome.status == 0 || outcome.status == 2) << outcome.status << "\n" << text << outcome.text;
  }
}

TEST_F(OrtcPlanTest, FilesThatFail) {
  std::string missing = folder / "missing.csv";
  EXPECT_EQ(run(missing).status, 1);
  EXPECT_EQ(run(missing).text,
            "ortc-plan: error: " + missing + ": cannot be opened: No such file or directory\n");
  Outcome outcome = pack(kExample, "-o " + folder / "none/out.csv");
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  outcome = pack(kExample, "-o " + in()); // the input stays as it is
  EXPECT_EQ(outcome.status, 2) << outcome.text;
  EXPECT_EQ(readFile(in()), kExample);
  EXPECT_EQ(pack(kExample, "-o /dev/null").status, 2);
  EXPECT_EQ(run(in(), "2>&1 >/dev/full").status, 1);
}

TEST_F(OrtcPlanTest, FlagsThatAreRefused) {
  for (const char *flags :
       {"--capacity", "--capacity x", "--capacity -1", "--capacity 1 --capacity 2",
        "--capacity 1=2 --capacity 1=3", "--capacity =2", "--capacity 18446744073709551616", "--work 1.5",
        "--work 1000001", "--frobnicate", "other.csv"}) {
    Outcome outcome = pack(kExample, flags);
    EXPECT_EQ(outcome.status, 2) << flags << "\n" << outcome.text;
    EXPECT_EQ(outcome.text.substr(0, 18), "ortc-plan: error: ") << outcome.text;
  }
  EXPECT_EQ(run("").status, 2);
  EXPECT_EQ(run("--help").status, 0);
  EXPECT_EQ(run("--version").status, 0);
}

} // namespace
