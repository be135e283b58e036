// The page of `ortc report`: what it reads, what it refuses, and that it loads nothing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>

#include "engine/page/axis.h"
#include "engine/page/chart.h"
#include "engine/page/report_page.h"
#include "test/engine/data_files.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

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
         {"svg", "g", "figure", "table", "tr", "td", "th", "p", "h2", "ul", "li", "text", "body"})
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
  EXPECT_EQ(count(page, "<g class=\"c0 d\"><title>"), 2u); // evaluations: loss and auc
  EXPECT_EQ(count(page, "</svg> a&lt;b&gt;&amp;&quot;c&quot;.jsonl, evaluation</li>"), 0u);
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
  EXPECT_TRUE(log.ofEvaluations["eval_loss"][""].steps.empty());
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
  EXPECT_EQ(count(page, "<polyline points=\"84,"), 3u);
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
  EXPECT_NE(page.find("loss (logarithmic scale)</text>"), std::string::npos); // 1 to 0.0002
  EXPECT_NE(page.find("learning rate (linear scale)</text>"), std::string::npos);
  EXPECT_NE(page.find(">step</text>"), std::string::npos);
  EXPECT_NE(page.find("</svg> band: from the smallest to the largest of 17 values; line: their mean</li>"),
            std::string::npos);
  EXPECT_GE(count(page, "<polygon"), 1u);
  EXPECT_LT(page.size(), 200000u);
  // The mean of the first 17 of 294 parts is drawn where the middle of them stands.
  Series series;
  for (int i = 0; i < 1000; ++i) {
    series.steps.push_back(i);
    series.values.push_back(i % 2 ? 3 : 1);
  }
  std::string chart = drawFigure({"x", "x", {{"y", &series, 0}}});
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
    std::string chart = drawFigure({"x", "x", {{"y", series, 9}}});
    EXPECT_EQ(count(chart, "nan") + count(chart, "=\"inf") + count(chart, "=\"-"), 0u) << chart;
    EXPECT_EQ(count(chart, "<polyline"), 2u); // one of them in the legend
  }
}

/// Ticks are few, told apart and in their order however little values differ for their size, and however much.
TEST_F(ReportPageTest, AxesOfAnyEndsHaveAFewTicks) {
  constexpr double kTiny = 5e-324, kMost = 1.7976931348623157e308;
  const std::pair<double, double> ends[] = {{0.1, 0.10000000000000002},
                                            {0.1, 0.1000000000000004},
                                            {-0.10000000000000002, -0.1},
                                            {1e300, std::nextafter(1e300, kMost)},
                                            {0, kTiny},
                                            {-kTiny, kTiny},
                                            {kTiny, 9 * kTiny},
                                            {kTiny, 1e-308},
                                            {-kMost, kMost},
                                            {std::nextafter(kMost, 0), kMost},
                                            {9007199254740990, 9007199254740991},
                                            {9007199254740991, 9007199254740992},
                                            {0, 9007199254740992},
                                            {1, 1},
                                            {0, 0},
                                            {kMost, kMost},
                                            {1, 7},
                                            {999999, 1000003},
                                            {-3, 1e6}};
  for (auto [least, most] : ends)
    for (Scale scale : {Scale::Linear, Scale::Whole, Scale::Logarithmic}) {
      if ((scale == Scale::Logarithmic && least <= 0) ||
          (scale == Scale::Whole && !(least >= 0 && most <= 1e16)))
        continue;
      Axis axis(least, most, scale, 100, 300);
      EXPECT_LE(axis.getTicks().size(), 11u) << least << " " << most;
      EXPECT_TRUE(std::isfinite(axis.place(least)) && std::isfinite(axis.place(most)));
      for (size_t i = 0; i < axis.getTicks().size(); ++i) {
        const Tick &tick = axis.getTicks()[i];
        EXPECT_TRUE(tick.place >= 99.9 && tick.place <= 300.1)
            << tick.place << " " << least << " " << most << " " << int(scale);
        EXPECT_LE(tick.label.size(), 13u) << tick.label;
        if (i > 0) {
          EXPECT_GT(tick.place, axis.getTicks()[i - 1].place) << least << " " << most;
          EXPECT_NE(tick.label, axis.getTicks()[i - 1].label) << least << " " << most;
        }
      }
    }
  Axis narrow(0.1, 0.10000000000000002, Scale::Linear, 0, 100);
  EXPECT_EQ(narrow.getName("loss"), "loss - 0.1 (linear scale)");
  EXPECT_EQ(narrow.getTicks().front().label, "0");
  Axis steps(9007199254740990, 9007199254740991, Scale::Whole, 0, 100);
  EXPECT_EQ(steps.getName("step"), "step - 9007199254740990");
  ASSERT_EQ(steps.getTicks().size(), 2u);
  EXPECT_EQ(steps.getTicks()[1].label, "1");
  EXPECT_EQ(steps.getTicks()[1].place, 100);
  Axis few(1, 2, Scale::Whole, 0, 100); // there is no step 1.25
  ASSERT_EQ(few.getTicks().size(), 2u);
}

/// A page of such series comes to an end, and shows them.
TEST_F(ReportPageTest, SeriesThatHardlyMoveAreDrawn) {
  std::string page = write({folder.write("a.jsonl", "{\"step\":0,\"loss\":0.1}\n"
                                                    "{\"step\":1,\"loss\":0.10000000000000002}\n")});
  EXPECT_NE(page.find("loss - 0.1 (linear scale)</text>"), std::string::npos) << page;
  page = write({folder.write("b.jsonl", "{\"step\":9007199254740990,\"loss\":1}\n"
                                        "{\"step\":9007199254740991,\"loss\":2}\n")});
  EXPECT_NE(page.find("step - 9007199254740990</text>"), std::string::npos) << page;
  EXPECT_NE(page.find("<td>9007199254740991</td>"), std::string::npos) << page;
}

TEST_F(ReportPageTest, TellsEvaluationsOfAveragesApart) {
  auto evaluation = [](int step, double loss, const std::string &weights) {
    return "{\"event\":\"eval\",\"step\":" + std::to_string(step) + ",\"eval_loss\":" + std::to_string(loss) +
           weights + "}\n";
  };
  std::string path = folder.write("a.jsonl", makeSteps(1, 9) + evaluation(3, 0.5, "") +
                                                 evaluation(6, 0.25, ",\"weights\":\"ema\"") +
                                                 evaluation(9, 0.375, ",\"weights\":\"ema\""));
  std::string page = write({path});
  EXPECT_NE(page.find("</svg> " + path + ", evaluation</li>"), std::string::npos) << page;
  EXPECT_NE(page.find("</svg> " + path + ", evaluation of averages (ema)</li>"), std::string::npos) << page;
  EXPECT_EQ(count(page, "<g class=\"c0 o\"><title>"), 1u);
  EXPECT_NE(page.find("<td>0.25 (step 6, ema)</td><td>0.375 (ema)</td>"), std::string::npos) << page;
}

/// Small screens and dark pages have rules of their own.
TEST_F(ReportPageTest, FitsScreens) {
  std::string page = write({folder.write("a.jsonl", makeSteps(1, 9))});
  EXPECT_NE(page.find("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"),
            std::string::npos);
  EXPECT_NE(page.find("@media(max-width:640px){"), std::string::npos);
  std::string dark = page.substr(page.find("@media(prefers-color-scheme:dark){svg text{fill:"));
  EXPECT_EQ(count(dark.substr(0, dark.find("</style>")), " polyline,"), kColours);
}

TEST_F(ReportPageTest, ChartsAloneAreAnSvgFile) {
  ReportOptions options;
  options.runs = {folder.write("a<b>.jsonl", makeSteps(1, 1000)),
                  folder.write("\xff\x9b.jsonl", makeSteps(1, 3))};
  options.output = folder / "charts.SVG";
  options.quiet = true;
  ASSERT_TRUE(writeReportPage(options).isOk());
  std::string svg = readFile(options.output);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 ")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  for (const char *tag : {"svg", "g", "text", "title", "style"})
    EXPECT_EQ(count(svg, "<" + std::string(tag) + ">") + count(svg, "<" + std::string(tag) + " "),
              count(svg, "</" + std::string(tag) + ">"))
        << tag;
  for (const char *wanted :
       {">loss</text>", ">lr</text>", ">loss (logarithmic scale)</text>", "a&lt;b&gt;.jsonl</text>",
        "/??.jsonl</text>", "band: from the smallest", "@media(prefers-color-scheme:dark)"})
    EXPECT_NE(svg.find(wanted), std::string::npos) << wanted;
  EXPECT_EQ(count(svg, "&mdash;") + count(svg, "\xff"), 0u); // it is XML
  options.plans = {options.runs[0]};
  Status refused = writeReportPage(options);
  EXPECT_EQ(refused.getCode(), ExitCode::Refused);
  EXPECT_EQ(refused.getMessage(),
            "-o " + options.output +
                ": a file of charts has no place for the tables of --plan; name it .html");
}

TEST_F(ReportPageTest, RefusesPicturesOfOtherKinds) {
  ReportOptions options;
  options.runs = {folder.write("a.jsonl", makeSteps(1, 3))};
  options.quiet = true;
  for (const char *end : {".png", ".PNG", ".jpg", ".pdf", ".json"}) {
    options.output = folder / ("page" + std::string(end));
    Status status = writeReportPage(options);
    EXPECT_EQ(status.getCode(), ExitCode::Refused);
    EXPECT_NE(status.getMessage().find("ortc report does not write ."), std::string::npos)
        << status.getMessage();
    EXPECT_NE(status.getMessage().find("name it .html for a page, or .svg for the charts"),
              std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(options.output));
  }
  for (const char *name : {"page.htm", "page", "page.HTML"}) {
    options.output = folder / name;
    EXPECT_TRUE(writeReportPage(options).isOk()) << name;
    EXPECT_TRUE(readFile(options.output).starts_with("<!doctype html>"));
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
