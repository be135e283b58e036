// Flags that act on the whole of the options.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/options/CompileOptions.h"

#include "support/ReadAll.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>

namespace ortc {

struct NamePattern::Expression {
  std::regex regex;
};

bool NamePattern::matches(const std::string &name) const {
  return names ? std::binary_search(names->begin(), names->end(), name)
               : std::regex_match(name, expression->regex);
}

NamePattern NamePattern::list(std::vector<std::string> names, std::string text) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  NamePattern pattern;
  pattern.text = std::move(text);
  pattern.names = std::make_shared<const std::vector<std::string>>(std::move(names));
  return pattern;
}

std::vector<std::string> splitNames(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    if (!line.empty())
      names.emplace_back(line);
  }
  return names;
}

Expected<NamePattern> NamePattern::read(std::string_view text) {
  constexpr uintmax_t kMostBytes = 64 << 20; // names of a million tensors
  if (text.empty() || text.front() != '@')
    return parse(text);
  std::string path(text.substr(1));
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code))
    return Status::refusal("'" + path + "' is no file with names, one a line" +
                           (code ? ": " + code.message() : ""));
  if (std::filesystem::file_size(path, code) > kMostBytes || code)
    return Status::refusal("'" + path + "' has more than 64 MiB, too many for a list of names");
  std::ifstream file(path, std::ios::binary);
  std::optional<std::string> contents = readAll(file);
  if (!file.is_open() || !contents)
    return Status::refusal("'" + path + "' cannot be read");
  constexpr std::string_view kMark = "\xef\xbb\xbf"; // of UTF-8, which some editors write
  std::string_view lines = *contents;
  if (lines.substr(0, kMark.size()) == kMark)
    lines.remove_prefix(kMark.size());
  return list(splitNames(lines), std::string(text));
}

/// std::regex recurses for every character of an expression.
static constexpr size_t kMostPatternBytes = 4096;

Expected<NamePattern> NamePattern::parse(std::string_view text) {
  if (text.empty())
    return Status::refusal("the regular expression is empty; '.*' matches every name");
  if (text.size() > kMostPatternBytes)
    return Status::refusal("the regular expression has " + std::to_string(text.size()) +
                           " bytes, the limit is " + std::to_string(kMostPatternBytes) +
                           "; write the names into a file, one a line, and give @FILE");
  NamePattern pattern;
  pattern.text = std::string(text);
  try {
    pattern.expression =
        std::make_shared<Expression>(Expression{std::regex(pattern.text, std::regex::ECMAScript)});
  } catch (const std::regex_error &) {
    return Status::refusal("'" + pattern.text +
                           "' is not a regular expression (ECMAScript); a plain dot is '\\.'");
  }
  return pattern;
}

Status addShapes(std::string_view text, CompileOptions &options) {
  constexpr int64_t kLimit = int64_t(1) << 40; // far above any tensor, far below overflow of a product check
  BindingSpec &binding = options.bindings.back();
  while (true) {
    size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    size_t equals = item.rfind('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == item.size())
      return Status::refusal("'" + std::string(item) +
                             "' binds nothing; write NAME=N for a dimension or INPUT=AxBxC for an input");
    ShapeSpec shape{std::string(item.substr(0, equals)), {}};
    std::string_view sizes = item.substr(equals + 1);
    while (true) {
      size_t cross = sizes.find('x');
      std::string_view size = sizes.substr(0, cross);
      int64_t value = 0;
      if (!parseInteger(size, value) || value < 1 || value > kLimit)
        return Status::refusal("'" + std::string(size) + "' in '" + std::string(item) +
                               "' is no size; sizes are whole numbers from 1");
      shape.dims.push_back(value);
      if (cross == std::string_view::npos)
        break;
      sizes.remove_prefix(cross + 1);
    }
    auto sameName = [&](const ShapeSpec &other) { return other.name == shape.name; };
    if (std::any_of(binding.shapes.begin(), binding.shapes.end(), sameName))
      return Status::refusal("'" + shape.name + "' is bound twice in binding '" + binding.name +
                             "'; --binding NAME starts another binding");
    binding.shapes.push_back(std::move(shape));
    if (comma == std::string_view::npos)
      return Status();
    text.remove_prefix(comma + 1);
  }
}

Status addBinding(std::string_view name, CompileOptions &options) {
  auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), allowed))
    return Status::refusal("'" + std::string(name) +
                           "' is no binding name; letters, digits, '_', '-' and '.' make one");
  auto sameName = [&](const BindingSpec &other) { return other.name == name; };
  BindingSpec &last = options.bindings.back();
  bool untouched = options.bindings.size() == 1 && last.shapes.empty() && last.name == "default";
  if (untouched) {
    last.name = std::string(name);
    return Status();
  }
  if (std::any_of(options.bindings.begin(), options.bindings.end(), sameName))
    return Status::refusal("binding '" + std::string(name) + "' is given twice");
  options.bindings.push_back({std::string(name), {}});
  return Status();
}

Status addTarget(std::string_view name, CompileOptions &options, bool &first) {
  if (first)
    options.targets.clear();
  first = false;
  if (name.empty())
    return Status::refusal("a target needs a name, e.g. host or native");
  if (std::find(options.targets.begin(), options.targets.end(), name) != options.targets.end())
    return Status::refusal("target '" + std::string(name) + "' is given twice");
  options.targets.emplace_back(name);
  return Status();
}

bool hasLoss(const CompileOptions &options) { return options.losses.front().source != LossSource::None; }
bool trains(const CompileOptions &options) { return hasLoss(options) || !options.cotangents.empty(); }
bool updates(const CompileOptions &options) {
  return hasLoss(options) || (trains(options) && options.optimizer.isGiven);
}

/// What --cotangents has no use for, because there is no loss or because hosts have a part in it.
static Status checkCotangents(const CompileOptions &options) {
  if (options.cotangents.empty())
    return options.inputGradients.empty()
               ? Status()
               : Status::refusal("--input-gradients " + options.inputGradients.front() +
                                 " needs --cotangents: the entry backward gives them");
  if (hasLoss(options))
    return Status::refusal("--cotangents takes gradients of outputs from the host, and --loss " +
                           options.losses.front().text + " makes its own; leave one of both out");
  const char *flag =
      options.gradients               ? "--gradients"
      : options.accumulate > 1        ? "--accumulate"
      : options.lossScale             ? "--loss-scale"
      : !options.trainOutputs.empty() ? "--train-outputs"
      : options.headChunk             ? "--head-chunk"
      : !options.lossInput.empty()    ? "--loss-input"
      : !options.sparse.empty()       ? "--sparse"
      : !options.channels.empty() && std::any_of(options.channels.begin(), options.channels.end(),
                                                 [](double share) { return share != 1; })
          ? "--train with channels"
          : nullptr;
  if (flag)
    return Status::refusal(std::string(flag) +
                           " belongs to a step with a loss, and --cotangents has none; leave "
                           "one of both out");
  const char *update = options.clipNorm          ? "--clip-norm"
                       : options.clipValue       ? "--clip-value"
                       : !options.groups.empty() ? "--group"
                       : options.noDecay.biases || options.noDecay.norms
                           ? "--no-decay"
                           : findUpdateFlag(options.updateSpecs);
  if (update && !updates(options))
    return Status::refusal(std::string(update) +
                           " needs an optimizer, which an artifact with --cotangents has "
                           "where --optimizer says so");
  return Status();
}

static Status checkWeights(const CompileOptions &options) {
  if (options.weights)
    return Status();
  const char *flag = options.emit || !trains(options) ? (options.emit ? "--emit" : "--loss none") : nullptr;
  return flag ? Status::refusal(std::string("--no-weights leaves out what is trained, and ") + flag +
                                " needs it; leave one of both out")
              : Status();
}

Status checkOptions(const CompileOptions &options) {
  if (options.output.empty() && options.compileTo.empty())
    return Status::refusal("-o DIR is missing: the folder of the artifact");
  for (const LossSpec &loss : options.losses)
    if (!options.lossInput.empty() && !loss.outputs.empty() &&
        loss.outputs != std::vector<std::string>{options.lossInput})
      return Status::refusal("--loss-input '" + options.lossInput + "' contradicts --loss " + loss.text +
                             (loss.source == LossSource::Output ? ": the graph computes its loss"
                                                                : ", which names what it reads") +
                             "; leave --loss-input out");
  if (options.accumulatesLabels && (options.losses.size() > 1 || options.accumulate == 1))
    return Status::refusal(options.accumulate == 1
                               ? "--accumulate 1:by=tokens adds nothing up; leave by=tokens out"
                               : "--accumulate by=tokens counts the labels of one loss, and there are " +
                                     std::to_string(options.losses.size()) + "; leave by=tokens out");
  if (options.gradients &&
      std::any_of(options.channels.begin(), options.channels.end(), [](double share) { return share != 1; }))
    return Status::refusal(
        "--gradients gives hosts whole gradients, and --train trains channels of a tensor; leave "
        "one of both out");
  if (options.base && options.lora.empty())
    return Status::refusal("--base " + options.base->text +
                           " needs --lora: weights beside adapters are quantised, and no others");
  if (!options.sparse.empty() && options.parameters == ParameterStorage::BF16Stochastic)
    return Status::refusal("--parameters bf16:stochastic draws numbers for whole tables, and --sparse " +
                           options.sparse.front().text + " updates rows alone; leave one of both out");
  bool isNarrow = options.parameters != ParameterStorage::F32;
  if (isNarrow && options.precision == Precision::F64)
    return Status::refusal(
        "--parameters bf16 stores parameters in bfloat16, and --precision f64 keeps them in "
        "float64; leave one of both out");
  if (options.precision == Precision::TF32 && options.numerics == Numerics::Portable)
    return Status::refusal(
        "--precision tf32 rounds operands for tensor cores, and --numerics portable gives the same "
        "bits on every target, which have none in common; leave one of both out");
  if (!options.qat.empty() && !options.lora.empty())
    return Status::refusal(
        "--qat and --lora do not go together: adapters are merged into weights that stay as they "
        "are, and quantised weights are trained; leave one of them out");
  if ((!options.emit || options.emit->kind != EmitSpec::Static) && options.objectFormat != ObjectFormat::Elf)
    return Status::refusal("--object needs --emit static: an artifact's code is in no object file");
  ORTC_TRY(checkCotangents(options));
  ORTC_TRY(checkWeights(options));
  if (options.bind.gradients && !options.gradients && options.cotangents.empty())
    return Status::refusal("--bind gradients needs an entry that gives some: --gradients or --cotangents");
  if ((options.bind.parameters || options.bind.gradients) && options.emit)
    return Status::refusal("--bind leaves tensors to the host, and --emit " + options.emit->text +
                           " places all of them; leave one of both out");
  if (!trains(options)) {
    const char *flag = options.gradients                                 ? "--gradients"
                       : options.optimizer.isGiven                       ? "--optimizer"
                       : options.clipNorm                                ? "--clip-norm"
                       : options.clipValue                               ? "--clip-value"
                       : options.accumulate > 1                          ? "--accumulate"
                       : options.lossScale                               ? "--loss-scale"
                       : !options.trainOutputs.empty()                   ? "--train-outputs"
                       : !options.train.empty()                          ? "--train"
                       : !options.freeze.empty()                         ? "--freeze"
                       : !options.materialized.empty()                   ? "--materialize-gradients"
                       : !options.lora.empty()                           ? "--lora"
                       : !options.sparse.empty()                         ? "--sparse"
                       : options.base                                    ? "--base"
                       : !options.qat.empty()                            ? "--qat"
                       : options.headChunk                               ? "--head-chunk"
                       : findUpdateFlag(options.updateSpecs)             ? findUpdateFlag(options.updateSpecs)
                       : isNarrow                                        ? "--parameters"
                       : !options.lossInput.empty()                      ? "--loss-input"
                       : !options.groups.empty()                         ? "--group"
                       : options.noDecay.biases || options.noDecay.norms ? "--no-decay"
                       : options.batchNorm.mode == BatchNormMode::Train  ? "--batch-norm train"
                       : options.dropout.mode == DropoutMode::Train      ? "--dropout train"
                                                                         : nullptr;
    if (flag)
      return Status::refusal(std::string(flag) +
                             " needs a loss, and --loss none compiles the forward part only");
  }
  if (const char *flag = findWholeTableFlag(options.updateSpecs); flag && !options.sparse.empty())
    return Status::refusal("--sparse " + options.sparse.front().text +
                           " keeps a step to the rows that it has read, and " + flag +
                           " works with every element; leave one of both out");
  if (!options.sparse.empty() && (options.gradients || options.accumulate > 1))
    return Status::refusal(
        "--sparse " + options.sparse.front().text + " keeps no gradient of a whole table, which " +
        (options.gradients ? "--gradients shows" : "--accumulate adds up") + "; leave one of both out");
  return Status();
}

} // namespace ortc
