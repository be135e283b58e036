// --teacher: what it means for the losses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hinton et al., "Distilling the knowledge in a neural network" (2015), as PyTorch's tutorial on distillation has it.
#include "compiler/passes/train/Teacher.h"

#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/onnx.pb.h"
#include "compiler/passes/train/Losses.h"
#include "support/Lists.h"

namespace ortc::train {

Expected<TeacherSpec> parseTeacher(std::string_view text) {
  TeacherSpec parsed;
  const std::vector<Key> keys = {
      {"output", parsed.output, kName, "the teacher's logits"},
      {"temperature", parsed.temperature, kPositive, "divides the logits of both"},
      {"weight", parsed.weight, kShare, "of the distillation; the loss of the labels has the rest"}};
  size_t colon = text.rfind(":output=");
  if (colon == std::string_view::npos || colon == 0)
    return Status::refusal(
        quote(text) + " must be FILE.onnx:output=NAME,temperature=1,weight=0.5, where the output is needed");
  KeyValues given;
  ORTC_TRY(parseKeys(text.substr(colon + 1), "teacher " + quote(text.substr(0, colon)), keys).moveTo(given));
  Settings settings(keys, given);
  parsed.file = std::string(text.substr(0, colon));
  parsed.output = settings.getWord("output");
  parsed.temperature = settings.getNumber("temperature");
  parsed.weight = settings.getNumber("weight");
  parsed.text = std::string(text);
  return parsed;
}

std::string teacherName(const std::string &name) { return "teacher." + name; }

/// The output that learns where no flag names one: the only one of the model.
static Status findOnlyOutput(const frontend::Model &model, const LossSpec &labels, const std::string &flag,
                             std::string &output) {
  std::vector<std::string> names;
  for (const auto &each : model.getProto().graph().output())
    names.push_back(each.name());
  if (names.size() != 1)
    return Status::refusal(flag + " compares one output of the model with the teacher's, and --loss " +
                           labels.text + " names none of " + quoteSome(names, 8) + "; write --loss " +
                           labels.text + "@OUTPUT");
  output = names.front();
  return Status();
}

Status addDistillation(const frontend::Model &model, CompileOptions &options) {
  if (!options.teacher)
    return Status();
  const TeacherSpec &teacher = *options.teacher;
  const std::string flag = "--teacher " + teacher.text;
  if (!hasLoss(options))
    return Status::refusal(flag + " needs a loss of the labels, beside which the distillation is trained");
  if (options.losses.size() > 1)
    return Status::refusal(flag + " goes with one loss, and there are " +
                           std::to_string(options.losses.size()));
  if (options.accumulatesLabels)
    return Status::refusal(flag +
                           " adds a loss of every sample, and --accumulate by=tokens divides by labels; "
                           "leave by=tokens out");
  if (options.batchNorm.mode == BatchNormMode::Train || options.dropout.mode == DropoutMode::Train)
    return Status::refusal(
        flag + ": --" + (options.dropout.mode == DropoutMode::Train ? "dropout" : "batch-norm") +
        " train is for all nodes, and a teacher does not train; export the model in training mode "
        "and leave it out");
  LossSpec &labels = options.losses.front();
  std::string output = !options.lossInput.empty() ? options.lossInput
                       : labels.outputs.size() == 1 && labels.source == LossSource::Formula
                           ? labels.outputs.front()
                           : "";
  if (output.empty() && labels.source == LossSource::Formula && labels.outputs.empty())
    ORTC_TRY(findOnlyOutput(model, labels, flag, output));
  if (output.empty())
    return Status::refusal(flag + " compares one output of the model with the teacher's, and --loss " +
                           labels.text + " reads no single one; write LOSS@OUTPUT");
  LossSpec added = *parseLoss("distillation");
  added.given["temperature"] = teacher.temperature;
  if (hasClasses(labels))
    added.given["dim"] = settingsOf(labels).getInteger(kAxis);
  added.id = "teacher";
  added.outputs = {output, teacherName(teacher.output)};
  added.weight = teacher.weight;
  labels.id = labels.id.empty() ? "label" : labels.id;
  labels.outputs = {output};
  labels.weight = (1 - teacher.weight) * labels.weight.value_or(1);
  options.lossInput.clear();
  if (labels.id == added.id)
    return Status::refusal("the loss is called 'teacher', as that of " + flag + " is; give it another name");
  options.losses.push_back(std::move(added));
  return Status();
}

} // namespace ortc::train
