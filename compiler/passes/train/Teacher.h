// --teacher: what it means for the losses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/Model.h"
#include "compiler/options/CompileOptions.h"

namespace ortc::train {

/// `FILE.onnx:output=X,temperature=1,weight=0.5`.
Expected<TeacherSpec> parseTeacher(std::string_view text);

/// The name that a value of the teacher has in the model that both are.
std::string teacherName(const std::string &name);

/// With a teacher, adds the loss `distillation` of the output that the only loss reads and the teacher's, with its
/// weight; the loss of the labels gets the rest. Without a name that is the model's only output. Called once, after all
/// flags; fails where they do not go together.
Status addDistillation(const frontend::Model &model, CompileOptions &options);

} // namespace ortc::train
