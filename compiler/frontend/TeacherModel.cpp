// A second model whose output the trained one learns.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both are one graph: what they compute of the same inputs is computed once, and one plan has the memory of both.
#include "compiler/frontend/TeacherModel.h"

#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/InferenceForm.h"
#include "compiler/frontend/onnx.pb.h"
#include "support/Lists.h"

#include <algorithm>

namespace ortc::frontend {

using Rename = std::function<std::string(const std::string &)>;

static bool isInitializer(const proto::GraphProto &graph, const std::string &name) {
  return std::any_of(graph.initializer().begin(), graph.initializer().end(),
                     [&](const auto &tensor) { return tensor.name() == name; });
}

/// "float32[batch, 3]", as far as a file says it.
static std::string describeType(const proto::ValueInfoProto &value) {
  const auto &tensor = value.type().tensor_type();
  std::string text = dataTypeName(tensor.elem_type());
  if (!tensor.has_shape())
    return text;
  text += "[";
  for (const auto &dim : tensor.shape().dim())
    text += (text.back() == '[' ? "" : ", ") + (dim.has_dim_value()       ? std::to_string(dim.dim_value())
                                                : dim.dim_param().empty() ? "?"
                                                                          : dim.dim_param());
  return text + "]";
}

/// Whether what the teacher takes is what the model takes: dimensions of which one says no number go together.
static bool areAlike(const proto::ValueInfoProto &a, const proto::ValueInfoProto &b) {
  const auto &x = a.type().tensor_type(), &y = b.type().tensor_type();
  if (x.elem_type() != y.elem_type())
    return false;
  if (!x.has_shape() || !y.has_shape())
    return true;
  if (x.shape().dim_size() != y.shape().dim_size())
    return false;
  for (int i = 0; i < x.shape().dim_size(); ++i) {
    const auto &p = x.shape().dim(i), &q = y.shape().dim(i);
    if (p.has_dim_value() && q.has_dim_value() && p.dim_value() != q.dim_value())
      return false;
  }
  return true;
}

static Status checkInputs(const proto::GraphProto &graph, const proto::GraphProto &teacher,
                          const std::string &flag) {
  for (const auto &input : teacher.input()) {
    if (isInitializer(teacher, input.name()))
      continue;
    auto found = std::find_if(graph.input().begin(), graph.input().end(),
                              [&](const auto &each) { return each.name() == input.name(); });
    if (found == graph.input().end() || isInitializer(graph, input.name())) {
      std::vector<std::string> names;
      for (const auto &each : graph.input())
        names.push_back(each.name());
      return Status::refusal(flag + ": the teacher has an input '" + input.name() +
                             "', which the model has not; inputs of the model are " + quoteSome(names, 8));
    }
    if (!areAlike(*found, input))
      return Status::refusal(flag + ": input '" + input.name() + "' is " + describeType(input) +
                             " in the teacher and " + describeType(*found) + " in the model");
  }
  return Status();
}

static Status checkTeacher(const proto::ModelProto &model, const proto::ModelProto &teacher,
                           const std::string &output, const std::string &flag) {
  ORTC_TRY(checkInputs(model.graph(), teacher.graph(), flag));
  if (listNames(teacher.graph()).count(output) == 0) {
    std::vector<std::string> names;
    for (const auto &each : teacher.graph().output())
      names.push_back(each.name());
    return Status::refusal(flag + ": the teacher has no output '" + output + "'; it has " +
                           quoteSome(names, 8));
  }
  for (const auto &import : teacher.opset_import())
    if (int64_t own = opsetOf(model.opset_import(), import.domain()); own != 0 && own != import.version())
      return Status::refusal(flag + ": the teacher has opset " + std::to_string(import.version()) +
                             " and the model has opset " + std::to_string(own) + "; export both with one");
  if (teacher.functions_size() > 0 || teacher.graph().sparse_initializer_size() > 0)
    return Status::refusal(flag + ": the teacher has " +
                           (teacher.functions_size() ? "local functions" : "sparse initializers") +
                           ", which are not merged; export it without");
  return Status();
}

/// Gives every value of a graph, but for the inputs of the outermost one, its new name.
static void renameValues(proto::GraphProto &graph, const Rename &rename) {
  auto change = [&](std::string *name) {
    if (!name->empty())
      *name = rename(*name);
  };
  for (auto *values : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (auto &value : *values)
      change(value.mutable_name());
  for (auto &tensor : *graph.mutable_initializer())
    change(tensor.mutable_name());
  for (auto &node : *graph.mutable_node()) {
    change(node.mutable_name());
    for (auto *names : {node.mutable_input(), node.mutable_output()})
      for (auto &name : *names)
        change(&name);
    for (auto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        renameValues(*attribute.mutable_g(), rename);
      for (auto &body : *attribute.mutable_graphs())
        renameValues(body, rename);
    }
  }
}

/// Data in files beside the teacher become its own: those of the model are looked for elsewhere.
static Status holdData(const Model &teacher, proto::GraphProto &graph) {
  for (auto &tensor : *graph.mutable_initializer()) {
    if (tensor.data_location() != proto::TensorProto::EXTERNAL)
      continue;
    TensorData data;
    ORTC_TRY(teacher.tensor(tensor, data));
    tensor.clear_external_data();
    tensor.clear_data_location();
    tensor.set_raw_data(std::string(data.bytes));
  }
  return Status();
}

Status addTeacher(std::shared_ptr<const Model> &model, const Model &teacher, const std::string &output,
                  const Rename &rename, const std::string &flag, std::vector<std::string> &initializers,
                  std::vector<std::string> &random) {
  ORTC_TRY(checkTeacher(model->getProto(), teacher.getProto(), output, flag));
  proto::ModelProto predicting = teacher.getProto();
  InferenceReport report;
  makeInference(
      predicting,
      [&](const proto::TensorProto &tensor, TensorData &data) { return teacher.tensor(tensor, data); }, {},
      report);
  random = std::move(report.random);
  proto::GraphProto &graph = *predicting.mutable_graph();
  ORTC_TRY(holdData(teacher, graph));
  std::set<std::string> inputs;
  for (const auto &input : graph.input())
    if (!isInitializer(graph, input.name()))
      inputs.insert(input.name());
  renameValues(graph, [&](const std::string &name) { return inputs.count(name) ? name : rename(name); });
  const std::set<std::string> taken = listNames(model->getProto().graph());
  for (const std::string &name : listNames(graph))
    if (!inputs.count(name) && taken.count(name))
      return Status::refusal(flag + ": the model has a value '" + name +
                             "', which is the name of one of the teacher");
  for (const auto &tensor : graph.initializer())
    initializers.push_back(tensor.name());
  std::shared_ptr<const Model> edited;
  ORTC_TRY(model->edit(
      [&](proto::ModelProto &proto) {
        for (const auto &import : teacher.getProto().opset_import())
          if (opsetOf(proto.opset_import(), import.domain()) == 0)
            *proto.add_opset_import() = import;
        proto::GraphProto &both = *proto.mutable_graph();
        both.mutable_node()->MergeFrom(graph.node());
        both.mutable_initializer()->MergeFrom(graph.initializer());
        both.mutable_value_info()->MergeFrom(graph.value_info());
        auto *added = both.add_output();
        for (const auto *values : {&graph.output(), &graph.value_info()})
          for (const auto &value : *values)
            if (value.name() == rename(output))
              *added = value;
        added->set_name(rename(output));
      },
      edited));
  model = std::move(edited);
  return Status();
}

} // namespace ortc::frontend
