// Gradients that go where the metadata of a model says: the gradients of small formulas, by hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>

#include "test/e2e/Marks.h"

using namespace ortc;
using namespace ortc::test;

namespace {

TEST_F(MarksTest, NoGradientGoesThroughADetachedValue) {
  proto::ModelProto model = sineModel();
  expectFactor(gradients(model)["w"], [](double y) { return 1 + std::cos(y); });
  EXPECT_EQ(outcome.errors, "");
  mark(model, "ortc.detached", "t\r\nlost\n");
  expectFactor(gradients(model)["w"], [](double) { return 1; });
  expectSaid("note: ortc.detached of the model names 1 value that no gradient goes back through: 't'");
  expectSaid("ortc.detached of the model has 1 name that is no value: 'lost'; closest: ");
}

/// Its readers read a detached value, outputs among them.
TEST_F(MarksTest, ADetachedValueIsDetachedForTheLoss) {
  proto::ModelProto model = sineModel();
  mark(model, "ortc.detached", "t");
  Outcome refused = train(model, {"--loss", "mse", "--loss-input", "t"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.errors.find("there is nothing to train"), std::string::npos) << refused.errors;
  model = sineModel();
  mark(model, "ortc.straight_through", "t=y");
  auto w = gradients(model, {"--loss", "mse", "--loss-input", "t"})["w"];
  expectFactor(w, [](double y) { return 2.0 / 6 * std::sin(y); });
}

/// An initializer is not trained through any use, whatever reads it.
TEST_F(MarksTest, ADetachedInitializerIsNotTrained) {
  proto::ModelProto model = sineModel();
  addInitializer(model.mutable_graph(), "v", proto::TensorProto::FLOAT, {3}, kW);
  model.mutable_graph()->mutable_node(2)->set_input(1, "u");
  addNode(model.mutable_graph()->mutable_node(), "Mul", {"t", "v"}, {"u"});
  mark(model, "ortc.detached", "v");
  auto got = gradients(model);
  EXPECT_EQ(got.count("v"), 0u);
  EXPECT_NE(outcome.text.find("frozen by ortc.detached of the model"), std::string::npos) << outcome.text;
  EXPECT_EQ(gradients(model, {"--loss", "output:loss", "--train", "w|v"}).count("v"), 1u); // flags win
}

TEST_F(MarksTest, AGradientGoesStraightThrough) {
  proto::ModelProto model = sineModel();
  mark(model, "ortc.straight_through", "t=y");
  expectFactor(gradients(model)["w"], [](double) { return 2; });
  expectSaid("ortc.straight_through of the model names 1 value whose gradient goes to another as it is: 't' "
             "(to 'y')");
  mark(model, "ortc.detached", "t"); // what reads it gives none
  expectFactor(gradients(model)["w"], [](double) { return 1; });
}

/// The value that takes the gradient may come later in the graph, or be an input.
TEST_F(MarksTest, AGradientGoesToAValueThatComesLater) {
  proto::ModelProto model = sineModel();
  addNode(model.mutable_graph()->mutable_node(), "Mul", {"y", "y"}, {"late"});
  mark(model, "ortc.straight_through", "t=late");
  expectFactor(gradients(model)["w"], [](double y) { return 1 + 2 * y; });
  model = sineModel();
  mark(model, "ortc.straight_through", "t=x");
  expectFactor(gradients(model)["w"], [](double) { return 1; });
}

TEST_F(MarksTest, AValueOfAnotherIsNoCircle) {
  proto::ModelProto model = sineModel();
  addNode(model.mutable_graph()->mutable_node(), "Exp", {"t"}, {"e"});
  mark(model, "ortc.straight_through", "t=e");
  expectRefusal(model,
                "the gradient of a value would go to what is computed of it, by ortc.straight_through of the "
                "model: ");
  model = sineModel();
  mark(model, "ortc.straight_through", "t=y\ny=t");
  expectRefusal(model, "the gradient of a value would go to what is computed of it");
}

/// Inside of branches and loops, names are those of the file.
TEST_F(MarksTest, ValuesOfBranchesAndLoops) {
  proto::ModelProto model = sineModel();
  proto::GraphProto *graph = model.mutable_graph();
  addInitializer(graph, "yes", proto::TensorProto::BOOL, {}, std::vector<char>{1});
  addInitializer(graph, "twice", proto::TensorProto::INT64, {}, std::vector<int64_t>{2});
  graph->mutable_node()->DeleteSubrange(1, 3);
  graph->clear_output();
  auto *choice = addNode(graph->mutable_node(), "If", {"yes"}, {"t"});
  for (const char *name : {"then_branch", "else_branch"}) {
    proto::GraphProto *body = addAttribute(choice, name, proto::AttributeProto::GRAPH)->mutable_g();
    body->set_name(name);
    addNode(body->mutable_node(), "Sin", {"y"}, {"inner"}); // the same name in both
    addNode(body->mutable_node(), "Add", {"inner", "y"}, {std::string(name) + "_out"});
    body->add_output()->set_name(std::string(name) + "_out");
  }
  auto *loop = addNode(graph->mutable_node(), "Loop", {"twice", "", "t"}, {"out"});
  proto::GraphProto *body = addAttribute(loop, "body", proto::AttributeProto::GRAPH)->mutable_g();
  body->set_name("body");
  describe(body->add_input(), "i", proto::TensorProto::INT64, {});
  describe(body->add_input(), "go", proto::TensorProto::BOOL, {});
  describe(body->add_input(), "state", proto::TensorProto::FLOAT, {2, 3});
  addNode(body->mutable_node(), "Identity", {"go"}, {"go_on"});
  addNode(body->mutable_node(), "Cos", {"state"}, {"turn"});
  addNode(body->mutable_node(), "Add", {"state", "turn"}, {"next"});
  for (const char *name : {"go_on", "next"})
    body->add_output()->set_name(name);
  addLoss(graph, "out");
  auto plain = [](double y) {
    double t = y + std::sin(y), factor = 1 + std::cos(y);
    for (int i = 0; i < 2; ++i) {
      factor *= 1 - std::sin(t);
      t += std::cos(t);
    }
    return factor;
  };
  expectFactor(gradients(model)["w"], plain);
  proto::ModelProto marked = model;
  mark(marked, "ortc.detached", "inner\nturn");
  expectFactor(gradients(marked)["w"], [](double) { return 1; });
  marked = model;
  mark(marked, "ortc.straight_through", "inner=y\nturn=state"); // of the graph around, of the body's input
  expectFactor(gradients(marked)["w"], [](double) { return 2 * 2 * 2; });
  marked = model;
  mark(marked, "ortc.detached", "state"); // what a body is given
  expectFactor(gradients(marked)["w"], [](double) { return 0; });
  marked = model;
  mark(marked, "ortc.straight_through", "y=inner");
  expectRefusal(marked, "but 'inner' is inside of a branch, loop body or function, where 'y' is not");
}

/// In every call; a value of the graph of that name is meant first.
TEST_F(MarksTest, ValuesOfFunctions) {
  proto::ModelProto model = sineModel();
  proto::GraphProto *graph = model.mutable_graph();
  auto *import = model.add_opset_import();
  import->set_domain("here");
  import->set_version(1);
  proto::FunctionProto *function = model.add_functions();
  function->set_name("Bend");
  function->set_domain("here");
  function->add_input("a");
  function->add_output("r");
  function->add_opset_import()->set_version(18);
  addNode(function->mutable_node(), "Sin", {"a"}, {"s"});
  addNode(function->mutable_node(), "Add", {"a", "s"}, {"r"});
  graph->mutable_node()->DeleteSubrange(1, 3);
  graph->clear_output();
  addNode(graph->mutable_node(), "Bend", {"y"}, {"once"}, "here");
  addNode(graph->mutable_node(), "Bend", {"once"}, {"out"}, "here");
  addLoss(graph, "out");
  proto::ModelProto marked = model;
  mark(marked, "ortc.detached", "s");
  expectFactor(gradients(marked)["w"], [](double) { return 1; });
  marked = model;
  mark(marked, "ortc.straight_through", "s=a");
  expectFactor(gradients(marked)["w"], [](double) { return 4; });
  addNode(graph->mutable_node(), "Neg", {"y"}, {"s"});
  mark(model, "ortc.detached", "s");
  expectFactor(gradients(model)["w"],
               [](double y) { return (1 + std::cos(y)) * (1 + std::cos(y + std::sin(y))); });
}

TEST_F(MarksTest, LinesThatAreMalformed) {
  auto expect = [&](const char *key, const std::string &line, const std::string &text) {
    proto::ModelProto model = sineModel();
    mark(model, key, "\n" + line);
    expectRefusal(model, text);
  };
  const char *padding = "ortc.padding", *straight = "ortc.straight_through";
  expect(padding, "t", "ortc.padding of the model has the line 't', which is not VALUE=ROW");
  expect(padding, "t=1.5", "has the line 't=1.5', which is not VALUE=ROW, ROW a whole number");
  expect(padding, "=1", "which is not VALUE=ROW");
  expect(padding, "t=1=2", "which is not VALUE=ROW");
  expect(padding, "t=1",
         "but node 'node_t' (Sin) gives 't'; padding rows are of what a Gather along the first axis");
  expect(padding, "x=1", "but no node gives 'x'");
  expect(straight, "t", "ortc.straight_through of the model has the line 't', which is not OUTPUT=INPUT");
  expect(straight, "t=t", "whose gradient goes to it anyway");
  expect(straight, "t=y\nt=x", "has the line 't=x', and another with the input 'y'");
  expect(straight, "t=w", "which its gradient goes to, is 3 of f32; both have one shape and type");
}

} // namespace
