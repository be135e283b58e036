// Gradients of a model against differences.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "check/CheckGradients.h"

#include "check/FindSuspect.h"
#include "compiler/artifact/OutputFolder.h"
#include "compiler/driver/Compile.h"
#include "compiler/passes/train/Losses.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/train/TrainDialect.h"
#include "engine/artifact/artifact_path.h"
#include "engine/export/export_model.h"
#include "engine/report.h"
#include "engine/session/gradient_check.h"
#include "support/Elements.h"
#include "support/Json.h"
#include "support/Printable.h"
#include "support/Text.h"

#include "llvm/Support/MathExtras.h"

#include <filesystem>
#include <tuple>
#include <unistd.h>

using namespace mlir;

namespace ortc::check {

using evaluator::HostTensor;

/// Of central differences in float64.
static constexpr double kDifferenceTolerance = 1e-5;
/// Generated code sums in another order than the evaluator and has elementary functions of its own.
static constexpr double kCodeTolerance = 1e-9;

namespace {

/// A folder that goes with its object.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::error_code code;
    std::string pattern = (std::filesystem::temp_directory_path(code) / "ortc-check-XXXXXX").string();
    path = mkdtemp(pattern.data()) ? pattern : "";
  }
  ~TemporaryFolder() {
    std::error_code code;
    if (!path.empty())
      std::filesystem::remove_all(path, code);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string path; ///< empty where none could be made
};

/// The check of a compiled artifact.
class Check {
public:
  Check(const CheckOptions &options, const std::string &folder, ModuleOp parts, CheckResult &result)
      : options(options), folder(folder), parts(parts), result(result) {}

  Status run();

private:
  Status draw();
  Status feed();
  Status prepare(uint32_t role);
  Status readGradients(NamedValues &values);
  Status readOutputs(NamedValues &values);
  Status checkDifferences();
  Status checkEvaluator();
  Status explain();
  std::map<std::string, engine::InputRange> findRanges();
  FailureOr<HostTensor> valueOf(func::FuncOp function, unsigned argument);
  ValueSource source() {
    return [this](func::FuncOp function, unsigned argument) { return valueOf(function, argument); };
  }

  const CheckOptions &options;
  const std::string &folder;
  ModuleOp parts;
  CheckResult &result;
  engine::Artifact artifact;
  engine::Session session;
  const engine::Entry *entry = nullptr;
};

} // namespace

/// The function's inputs that `value` is computed from, through integers.
static SmallVector<StringRef> findSources(func::FuncOp function, Value value) {
  SmallVector<StringRef> names;
  SmallVector<Value> todo = {value};
  llvm::DenseSet<Value> seen;
  while (!todo.empty()) {
    Value next = todo.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (Operation *op = next.getDefiningOp()) {
      for (Value operand : op->getOperands())
        if (auto type = dyn_cast<RankedTensorType>(operand.getType());
            type && isa<IntegerType>(type.getElementType()))
          todo.push_back(operand);
      continue;
    }
    auto argument = cast<BlockArgument>(next);
    if (argument.getOwner() != &function.front())
      continue; // of a loop's body
    if (auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), train::kInput))
      names.push_back(name.getValue());
  }
  return names;
}

/// The ranges of integer inputs, from the checks that their values reach.
std::map<std::string, engine::InputRange> Check::findRanges() {
  std::map<std::string, engine::InputRange> ranges;
  for (const char *name : {"backward_0", "forward_eval_0"}) {
    auto function = parts.lookupSymbol<func::FuncOp>(name);
    if (!function)
      continue; // without a loss there is nothing but the forward part
    function.walk([&](nn::CheckIndexOp check) {
      for (StringRef source : findSources(function, check.getInput())) {
        auto [range, isNew] =
            ranges.try_emplace(source.str(), engine::InputRange{0, int64_t(check.getUpper())});
        if (!isNew)
          range->second.high = std::min(range->second.high, int64_t(check.getUpper()));
      }
    });
  }
  return ranges;
}

/// Fills the inputs with random numbers. Where an index is computed from an input (added to an offset, say),
/// its range is narrower than the check's: it is halved until the program takes it.
Status Check::draw() {
  std::map<std::string, engine::InputRange> ranges = findRanges();
  for (;;) {
    ORTC_TRY(engine::fillInputs(session, *entry, ranges, options.compile.seed));
    double loss = 0;
    ortc_status told = ORTC_OK;
    Status status = session.step(*entry, loss, &told);
    bool canShrink = false;
    for (auto &[name, range] : ranges) {
      canShrink |= range.high > 1;
      range.high = std::max<int64_t>(range.high / 2, 1);
    }
    if (told != ORTC_E_RANGE)
      return status;
    if (!canShrink)
      return Status::failure(status.getMessage() + "; give data the model is made for with --data FILE");
  }
}

Status Check::feed() {
  if (options.data.empty())
    return draw();
  std::unique_ptr<engine::DataSource> source;
  ORTC_TRY(engine::openData(options.data, source));
  std::vector<std::string> notes;
  engine::Batches batches;
  ORTC_TRY(engine::Batches::create(*source, entry->inputs, engine::Remainder::Drop, batches, notes));
  return session.feed(*entry, batches, 0, nullptr);
}

/// An integer as the program has it: there it has no sign of its own and is read as signed.
static int64_t loadAsSigned(DataType type, const uint8_t *place) {
  auto bits = static_cast<uint64_t>(loadAsInteger(type, place));
  return llvm::SignExtend64(bits, static_cast<unsigned>(8 * getElementBytes(type)));
}
static double loadValue(DataType type, const uint8_t *place) {
  return isInteger(type) ? static_cast<double>(loadAsSigned(type, place)) : loadAsDouble(type, place);
}

FailureOr<HostTensor> Check::valueOf(func::FuncOp function, unsigned argument) {
  if (auto symbol = function.getArgAttrOfType<FlatSymbolRefAttr>(argument, train::kTensor)) {
    auto tensor = parts.lookupSymbol<train::TensorOp>(symbol.getValue());
    std::string name = tensor.getName().str();
    ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
    if (ortc_tensor_find(artifact.getProgram(), name.c_str(), &info) != ORTC_OK)
      return failure();
    std::vector<uint8_t> bytes(info.bytes);
    if (ortc_read(session.get(), name.c_str(), bytes.data(), bytes.size()) != ORTC_OK)
      return failure();
    auto type = static_cast<DataType>(info.dtype);
    size_t width = getElementBytes(type);
    std::vector<double> values;
    for (size_t i = 0; i < bytes.size(); i += width)
      values.push_back(loadValue(type, bytes.data() + i));
    return toProgramLayout(values, tensor);
  }
  auto name = function.getArgAttrOfType<StringAttr>(argument, train::kInput);
  engine::TensorView view = name ? session.view(*entry, name.str()) : engine::TensorView();
  if (view.type == DataType::None)
    return failure();
  HostTensor result(cast<RankedTensorType>(function.getArgument(argument).getType()));
  for (int64_t i = 0; i < result.size(); ++i) {
    const uint8_t *place = view.data + size_t(i) * getElementBytes(view.type);
    if (result.isFloat())
      result.setFloat(i, loadAsDouble(view.type, place));
    else
      result.setInt(i, loadAsSigned(view.type, place));
  }
  return result;
}

Status Check::readGradients(NamedValues &values) {
  double loss = 0;
  ORTC_TRY(session.step(*entry, loss)); // at the weights as they are
  values["loss"] = {loss};
  for (auto tensor : parts.getOps<train::TensorOp>()) {
    if (tensor.getRole() != train::Role::parameter)
      continue;
    std::string name = tensor.getName().str();
    std::vector<double> &gradient = values["gradient of '" + name + "'"];
    gradient.resize(size_t(cast<RankedTensorType>(tensor.getType()).getNumElements()));
    if (ortc_read_gradient(session.get(), name.c_str(), gradient.data(), gradient.size() * sizeof(double)) !=
        ORTC_OK)
      return Status::failure("'" + name + "': " + ortc_session_message(session.get()));
  }
  return Status();
}

Status Check::readOutputs(NamedValues &values) {
  double none = 0;
  ORTC_TRY(session.step(*entry, none));
  for (const engine::OutputSpec &output : entry->outputs) {
    engine::TensorView view = session.view(*entry, output.name);
    int64_t count = 0;
    (void)countElements(output.shape, count);
    for (int64_t i = 0; i < count; ++i)
      values["output '" + output.name + "'"].push_back(
          loadValue(view.type, view.data + size_t(i) * getElementBytes(view.type)));
  }
  return Status();
}

/// Names what to suspect.
Status Check::explain() {
  NamedValues compiled;
  ORTC_TRY(readGradients(compiled));
  autodiff::DifferentiateOptions how;
  const GradientMutation &mutation = options.compile.mutation;
  how.mutation = {mutation.operation, mutation.operand, mutation.factor};
  result.table += makePrintable(findSuspect(parts, source(), compiled, how,
                                            options.tolerance.value_or(kDifferenceTolerance))) +
                  "\n";
  return Status();
}

Status Check::checkDifferences() {
  ORTC_TRY(prepare(ORTC_ENTRY_GRADIENTS));
  std::vector<engine::TensorCheck> results;
  engine::GradientCheckOptions how;
  how.seed = options.compile.seed;
  how.tolerance = options.tolerance.value_or(kDifferenceTolerance);
  ORTC_TRY(engine::checkGradients(session, artifact, *entry, how, results));
  result.table += engine::formatChecks(results, how.tolerance);
  result.isGood = llvm::all_of(results, [](const engine::TensorCheck &tensor) { return tensor.isGood; });
  return result.isGood ? Status() : explain();
}

/// The worst first.
static std::string formatComparisons(std::vector<CodeComparison> comparisons, double tolerance) {
  llvm::sort(comparisons, [](const CodeComparison &a, const CodeComparison &b) {
    return std::tuple(-a.distance, a.name) < std::tuple(-b.distance, b.name);
  });
  std::string text;
  int64_t wrong = 0, elements = 0;
  for (const CodeComparison &comparison : comparisons) {
    elements += comparison.elements;
    if (comparison.isGood)
      continue;
    ++wrong;
    text += "the " + makePrintable(comparison.name) + " (" + formatCount(comparison.elements, "element") +
            ") is off by " + formatShort(comparison.distance, 2) + " of its largest  WRONG\n";
  }
  return text + (wrong ? std::to_string(wrong) + " of " : "") +
         formatCount(int64_t(comparisons.size()), "value") +
         (wrong                     ? " differ from"
          : comparisons.size() == 1 ? " agrees with"
                                    : " agree with") +
         " the evaluator: " + formatCount(elements, "element") + ", worst difference " +
         formatShort(comparisons.empty() ? 0 : comparisons.front().distance, 2) +
         " of the largest, tolerance " + formatShort(tolerance, 2) + "\n";
}

Status Check::checkEvaluator() {
  double tolerance = options.tolerance.value_or(kCodeTolerance);
  std::vector<CodeComparison> all;
  auto compare = [&](const char *name, const NamedValues &compiled) {
    auto found = compareWithEvaluator(parts.lookupSymbol<func::FuncOp>(name), source(), compiled, tolerance);
    if (found)
      all.insert(all.end(), found->begin(), found->end());
    return found.getStatus();
  };
  NamedValues gradients, outputs;
  ORTC_TRY(prepare(ORTC_ENTRY_PREDICT));
  ORTC_TRY(readOutputs(outputs));
  ORTC_TRY(compare("forward_eval_0", outputs));
  if (hasLoss(options.compile)) {
    ORTC_TRY(prepare(ORTC_ENTRY_GRADIENTS));
    ORTC_TRY(readGradients(gradients));
    ORTC_TRY(compare("backward_0", gradients));
  }
  result.table += formatComparisons(all, tolerance);
  result.isGood = llvm::all_of(all, [](const CodeComparison &comparison) { return comparison.isGood; });
  return Status();
}

/// Opens an entry with its inputs filled.
Status Check::prepare(uint32_t role) {
  ORTC_TRY(artifact.findEntry(role, "", entry));
  return feed();
}

Status Check::run() {
  ORTC_TRY(engine::Artifact::open(folder, artifact));
  ORTC_TRY(engine::Session::create(artifact, {0, false}, session));
  return options.against == CheckAgainst::Evaluator ? checkEvaluator() : checkDifferences();
}

/// A flag that was given about what an artifact says itself; null where none was.
static const char *findGraphFlag(const CompileOptions &given) {
  const BindingSpec &binding = given.bindings.front();
  bool isBound = given.bindings.size() > 1 || !binding.shapes.empty() || binding.name != BindingSpec().name;
  return given.losses.front().isGiven                        ? "--loss"
         : !given.lossInput.empty()                          ? "--loss-input"
         : isBound                                           ? "--shape or --binding"
         : !given.train.empty()                              ? "--train"
         : !given.freeze.empty()                             ? "--freeze"
         : !given.untie.empty()                              ? "--untie"
         : !given.ties.empty()                               ? "--tie"
         : !given.lora.empty()                               ? "--lora"
         : given.base                                        ? "--base"
         : !given.qat.empty()                                ? "--qat"
         : given.batchNorm.mode != BatchNormMode::AsExported ? "--batch-norm"
         : given.dropout.mode != DropoutMode::AsExported     ? "--dropout"
                                                             : nullptr;
}

/// The options that an artifact was compiled with, as far as gradients depend on them.
static Status readArtifact(const CheckOptions &check, const std::string &folder, CompileOptions &options) {
  if (const char *flag = findGraphFlag(options))
    return Status::refusal(options.model + ": " + flag +
                           " cannot be given for an artifact, which was compiled with its own; leave it out");
  engine::Artifact artifact;
  ORTC_TRY(engine::Artifact::open(options.model, artifact));
  if (!artifact.getAdapters().empty())
    return Status::refusal(options.model +
                           ": has adapters, which are checked with the model: ortc check MODEL --lora ...");
  auto manifest = parseJson(artifact.getManifest());
  if (manifest.contains("quantizers"))
    return Status::refusal(options.model +
                           ": was compiled with --qat; rounding has a gradient that differences of "
                           "losses do not show");
  if (manifest.contains("flags") && manifest["flags"].contains("teacher"))
    return Status::refusal(options.model +
                           ": was compiled with --teacher, which no artifact has as a graph; check its "
                           "model without");
  std::string damaged = options.model + ": its manifest does not say how it was compiled";
  try {
    const auto &flags = manifest.at("flags");
    Status read;
    const auto &losses = flags.at("loss"); // a text, or a list
    for (size_t i = 0; i < (losses.is_array() ? losses.size() : 1) && read.isOk(); ++i)
      read = train::addLoss((losses.is_array() ? losses[i] : losses).get<std::string>(), options.losses);
    if (read.isOk())
      read = parseBatchNorm(flags.at("batch_norm").get<std::string>()).moveTo(options.batchNorm);
    if (read.isOk())
      read = parseDropout(flags.at("dropout").get<std::string>()).moveTo(options.dropout);
    if (!read.isOk())
      return Status::failure(damaged + ": " + read.getMessage());
    if (!hasLoss(options))
      return Status::refusal(options.model + ": was compiled with --loss none and has no gradients");
    if (options.losses.front().outputs.empty())
      options.lossInput = manifest.at("loss").at("output").get<std::string>();
    const auto &binding = manifest.at("bindings").at(0);
    if (binding.contains("dimensions"))
      for (const auto &[name, size] : binding.at("dimensions").items())
        options.bindings[0].shapes.push_back({name, size.is_array()
                                                        ? size.get<std::vector<int64_t>>()
                                                        : std::vector<int64_t>{size.get<int64_t>()}});
    std::vector<std::string> trained;
    for (const auto &tensor : manifest.at("tensors"))
      if (tensor.at("role") == "parameter")
        trained.push_back(tensor.at("name").get<std::string>());
    options.train.push_back(NamePattern::list(std::move(trained), "of the artifact"));
  } catch (const nlohmann::json::exception &) {
    return Status::failure(damaged);
  }
  std::string model = folder + "/model.onnx";
  ORTC_TRY(engine::exportModel({options.model, model, check.load, /*weights=*/"", /*adapter=*/"",
                                /*quiet=*/true, /*isForTraining=*/true}));
  options.model = model;
  return Status();
}

/// Writes an artifact for the runtime, which reads files.
static Status writeArtifact(const std::string &path, const driver::Compiled &compiled) {
  artifact::OutputFolder folder(path);
  ORTC_TRY(compiled.writeTo(folder));
  return folder.commit();
}

Status checkGradients(const CheckOptions &check, CheckResult &result) {
  TemporaryFolder temporary;
  if (temporary.path.empty())
    return Status::failure("no temporary folder can be made");
  CompileOptions options = check.compile;
  options.randomLora = true;
  options.marksGradients = check.against != CheckAgainst::Differences;
  options.channels.clear(); // whole gradients are checked
  std::string file;
  bool isArtifact = std::filesystem::path(options.model).extension() != ".onnx" &&
                    engine::findArtifactFile(options.model, file).isOk();
  if (isArtifact)
    ORTC_TRY(readArtifact(check, temporary.path, options));
  else if (!options.qat.empty() && check.against == CheckAgainst::Differences)
    return Status::refusal("--qat rounds, and differences of losses do not show the gradient that is passed "
                           "through; compare --against evaluator");
  else if (!check.load.empty())
    return Status::refusal("--load needs an artifact: checkpoints have its tensors");
  else if (!hasLoss(options) && check.against == CheckAgainst::Differences)
    return Status::refusal(
        "--loss none leaves no loss to differentiate; name one, or compare --against evaluator");
  options.precision = Precision::F64;
  options.gradients = hasLoss(options);
  options.source = false;
  options.targets = {"native"};
  driver::CompileExtras extras;
  extras.keepsParts = true;
  Expected<driver::Compiled> compiled = driver::compile(options, extras);
  if (!compiled)
    return compiled.getStatus();
  const std::string folder = temporary.path + "/artifact";
  ORTC_TRY(writeArtifact(folder, *compiled));
  result.notes = compiled->notes;
  result.warnings = compiled->facts.warnings;
  return Check(check, folder, *compiled->parts, result).run();
}

} // namespace ortc::check
