// The page of `ortc report`: what it reads, what it refuses, and that it loads nothing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>

#include "host/page/chart.h"
#include "host/page/report_page.h"
#include "test/host/data_files.h"

using namespace ortc;
using namespace ortc::host;
using namespace ortc::host::test;

namespace {

size_t count(const std::string &text, const std::string &what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size()))
    ++found;
  return found;
}

class ReportPageTest : public testing::Test {
protected:
  /// The page of these files, with what holds of every page.
  std::string write(const std::vector<std::string> &runs, const std::vector<std::string> &plans = {}) {
    ReportOptions options;
    options.runs = runs;
    options.plans = plans;
    options.output = folder / "page.html";
    options.quiet = true;
    Status status = writeReportPage(options);
    EXPECT_TRUE(status.isOk()) << status.getMessage();
    std::string page = readFile(options.output);
    for (const char *outer : {"<script", "http:", "https:", "src=", "href=", "url(", "@import"})
      EXPECT_EQ(count(page, outer), 0u) << outer;
    for (const char *tag :
         {"svg", "g", "figure", "table", "tr", "td", "th", "p", "h2", "span", "text", "body"})
      EXPECT_EQ(count(page, "<" + std::string(tag) + ">") + count(page, "<" + std::string(tag) + " "),
                count(page, "</" + std::string(tag) + ">"))
          << tag;
    // Coordinates are numbers; words such as "not finite" are no attributes.
    EXPECT_EQ(count(page, "=\"nan") + count(page, "=\"inf") + count(page, ",nan") + count(page, ",inf") +
                  count(page, ",-"),
              0u);
    return page;
  }
  std::string refuse(const std::string &contents) {
    ReportOptions options;
    options.runs = {folder.write("bad.jsonl", contents)};
    options.output = folder / "refused.html";
    Status status = writeReportPage(options);
    EXPECT_EQ(status.getCode(), ExitCode::Refused);
    EXPECT_FALSE(std::filesystem::exists(options.output));
    return status.getMessage();
  }

  TemporaryFolder folder;
};

std::string makeSteps(int from, int to, double scale = 1) {
  std::string lines;
  for (int step = from; step <= to; ++step)
    lines += "{\"step\":" + std::to_string(step) + ",\"epoch\":0,\"loss\":" + std::to_string(scale / step) +
             ",\"lr\":0.5,\"ms\":2}\n";
  return lines;
}

} // namespace

TEST_F(ReportPageTest, ShowsRunsBesideEachOther) {
  std::string first =
      folder.write("a<b>&\"c\".jsonl", makeSteps(1, 20) +
                                           "{\"event\":\"eval\",\"step\":10,\"epoch\":0,\"eval_loss\":0.25,"
                                           "\"auc\":0.75}\n" +
                                           "{\"event\":\"early_stop\",\"step\":20}\n");
  std::string second = folder.write("b.jsonl", makeSteps(1, 10)), empty = folder.write("empty.jsonl", "");
  std::string page = write({first, second, empty});
  EXPECT_EQ(count(page, "<b>"), 0u);
  EXPECT_GE(count(page, "a&lt;b&gt;&amp;&quot;c&quot;.jsonl"), 2u);
  EXPECT_EQ(count(page, "<figure>"), 4u); // loss, auc, lr, ms
  EXPECT_NE(
      page.find("<td>20</td><td>0.05</td><td>0.25 (step 10)</td><td>0.25</td><td>2</td><td>0.04</td><td>"
                "early_stop (step 20)</td>"),
      std::string::npos)
      << page;
  EXPECT_NE(page.find("empty.jsonl</td><td>no steps</td>"), std::string::npos);
  EXPECT_EQ(count(page, "class=\"c0 d\""), 2u); // evaluations: loss and auc
}

/// A run that went on from step 5 of what had come to step 9: steps and evaluations after it are done again.
TEST_F(ReportPageTest, ARunThatGoesOnReplacesWhatCameAfter) {
  std::string evaluation = "{\"event\":\"eval\",\"step\":9,\"epoch\":0,\"eval_loss\":7}\n";
  MetricsLog log;
  ASSERT_TRUE(
      MetricsLog::read(folder.write("a.jsonl", makeSteps(1, 9) + evaluation + makeSteps(6, 7, 2)), log)
          .isOk());
  EXPECT_EQ(log.ofSteps["loss"].steps, (std::vector<double>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_NEAR(log.ofSteps["loss"].values[5], 2.0 / 6, 1e-6);
  EXPECT_TRUE(log.ofEvaluations["eval_loss"].steps.empty());
  EXPECT_EQ(log.milliseconds, 22);
}

TEST_F(ReportPageTest, ShowsWatchedTensors) {
  std::string seen;
  for (int step : {1, 2})
    seen +=
        R"({"event":"watch","step":)" + std::to_string(step) +
        R"(,"values":{"a.weight":{"min":-1,"max":2,"mean":0.5,"nan":0}},"gradients":{"a.weight":{"min":null,"max":null,)"
        R"("mean":null,"nan":6}}})"
        "\n";
  std::string page = write({folder.write("a.jsonl", makeSteps(1, 2) + seen)});
  page = page.substr(page.find("<h2>Watched tensors</h2>"));
  EXPECT_EQ(count(page, "<figure>"), 2u);
  EXPECT_EQ(count(page, "<polyline"), 3u);
  EXPECT_NE(page.find("<figcaption>a.weight, gradient</figcaption><p>no finite value</p>"), std::string::npos)
      << page;
}

TEST_F(ReportPageTest, ValuesThatAreNotFiniteAreGaps) {
  std::string gap = "{\"step\":4,\"epoch\":0,\"loss\":null,\"lr\":0.5,\"ms\":2}\n";
  std::string page = write({folder.write("a.jsonl", makeSteps(1, 3) + gap + makeSteps(5, 9))});
  std::string chart = page.substr(page.find("<svg"), page.find("</svg>") - page.find("<svg"));
  EXPECT_EQ(count(chart, "<polyline"), 2u);
  EXPECT_NE(page.find("(1 value not finite)"), std::string::npos);
  page = write({folder.write("b.jsonl", "{\"step\":1,\"loss\":null}\n")});
  EXPECT_NE(page.find("no finite value"), std::string::npos);
}

TEST_F(ReportPageTest, LongRunsAreMeansBeforeABand) {
  std::string page = write({folder.write("a.jsonl", makeSteps(1, 5000))});
  EXPECT_NE(page.find("loss (logarithmic)"), std::string::npos); // 1 to 0.0002
  EXPECT_GE(count(page, "<polygon"), 1u);
  EXPECT_LT(page.size(), 200000u);
  // The mean of the first 17 of 294 parts is drawn where the middle of them stands.
  Series series;
  for (int i = 0; i < 1000; ++i) {
    series.steps.push_back(i);
    series.values.push_back(i % 2 ? 3 : 1);
  }
  std::string chart = drawChart("x", {{"y", &series, 0, false}});
  std::string points = chart.substr(chart.find("<polyline points=\"") + 18);
  points = points.substr(0, points.find('"'));
  EXPECT_EQ(count(points, ","), 250u); // parts of four steps
  EXPECT_EQ(count(points, points.substr(points.find(','), points.find(' ') - points.find(','))),
            250u); // all mean 2
}

TEST_F(ReportPageTest, ExtremesHaveAPlace) {
  Series one, wide, equal;
  one.steps = {5};
  one.values = {-3};
  wide.steps = {1, 2, 3};
  wide.values = {-1.7e308, 0, 1.7e308};
  equal.steps = {1, 2};
  equal.values = {0, 0};
  for (const Series *series : {&one, &wide, &equal}) {
    std::string chart = drawChart("x", {{"y", series, 9, false}});
    EXPECT_EQ(count(chart, "nan") + count(chart, "=\"inf") + count(chart, "=\"-"), 0u) << chart;
    EXPECT_EQ(count(chart, "<polyline"), 1u);
  }
}

TEST_F(ReportPageTest, ShowsPlansAndProfiles) {
  std::string run = folder.write(
      "a.jsonl", makeSteps(1, 2) +
                     R"({"event":"profile","steps":9,"warm_up":1,"ms":2,"between_ms":0.1,"data_ms":0.2,)"
                     R"("machine":[],"kernels":[{"name":"k","work":"dot <x>","shape":"2x2","place":"Gemm",)"
                     R"("ms":0.5,"calls":2,"flops":1e6,"bytes":2e6,"bound_ms":0.25}]})"
                     "\n");
  std::string plan = folder.write(
      "plan.json",
      R"({"memory":{"persistent":2048,"constants":0},"entries":[{"name":"train/default","memory":)"
      R"({"transient":36864,"bound":36864,"order_bound":36864,"source_order":42048,"peak":{"step":3,)"
      R"("kernel":"kernel_0","tensors":[{"name":"relu","type":"64x64","bytes":16384,"offset":0,"first":0,)"
      R"("last":6}]}}}]})");
  std::string page = write({run}, {plan});
  EXPECT_NE(
      page.find("<td>0.5</td><td>25 %</td><td>2</td><td>2</td><td>4</td><td>50 %</td><td>dot &lt;x&gt;</td>"
                "<td>2x2</td><td>Gemm</td>"),
      std::string::npos)
      << page;
  EXPECT_NE(page.find("persistent 2.00 KiB, constants 0 B"), std::string::npos) << page;
  EXPECT_NE(page.find("<td>train/default</td><td>36.0 KiB</td>"), std::string::npos) << page;
  EXPECT_NE(page.find("<td>relu</td><td>64x64</td><td>16.0 KiB</td><td>0</td><td>0</td><td>6</td>"),
            std::string::npos);
}

TEST_F(ReportPageTest, RefusesLinesThatNoRunHasWritten) {
  const std::string path = folder / "bad.jsonl", end = " is no step and no event of ortc run --metrics";
  EXPECT_EQ(refuse(makeSteps(1, 2) + "{\"step\":3,\"epo"), path + ": line 3" + end);
  EXPECT_EQ(refuse("\n[1]\n"), path + ": line 2" + end);
  for (const char *line :
       {"{\"step\":1}", "{\"loss\":1}", "{\"step\":\"a\",\"loss\":1}", "{\"event\":1,\"step\":1}",
        "{\"event\":\"eval\"}", "{\"step\":null,\"loss\":1}", "text", "{\"step\":1.5,\"loss\":1}",
        "{\"step\":-1,\"loss\":1}", "{\"event\":\"early_stop\",\"step\":1e300}"})
    EXPECT_EQ(refuse(line), path + ": line 1" + end) << line;
  for (auto [line, key] :
       {std::pair("{\"step\":1,\"loss\":\"low\"}", "loss"),
        {"{\"step\":1,\"loss\":1,\"ms\":[2]}", "ms"},
        {"{\"step\":1,\"loss\":1,\"binding\":2,\"lr\":true}", "lr"},
        {"{\"event\":\"eval\",\"step\":1,\"accuracy\":{}}", "accuracy"},
        {"{\"event\":\"watch\",\"step\":1,\"values\":[]}", "values"},
        {"{\"event\":\"watch\",\"step\":1,\"gradients\":{\"w\":{\"min\":1,\"mean\":\"a\",\"max\":2}}}", "w"}})
    EXPECT_EQ(refuse(makeSteps(1, 2) + line), path + ": line 3 has '" + key + "', which is no number there")
        << line;
}

TEST_F(ReportPageTest, RefusesFilesThatAreNoPlans) {
  ReportOptions options;
  options.runs = {folder.write("a.jsonl", makeSteps(1, 2))};
  options.plans = {options.runs[0]};
  options.output = folder / "page.html";
  EXPECT_EQ(writeReportPage(options).getMessage(),
            options.runs[0] +
                ": is no manifest.json and no report of ortc plan: it has no 'memory' and 'entries'");
  EXPECT_FALSE(std::filesystem::exists(options.output));
  options.plans.clear();
  options.output = options.runs[0];
  EXPECT_EQ(writeReportPage(options).getMessage(),
            "-o " + options.runs[0] + " would overwrite METRICS " + options.runs[0] + "; name another file");
}
