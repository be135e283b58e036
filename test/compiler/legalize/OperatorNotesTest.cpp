// What the list of operators claims.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A note has to be about an operator that exists, and a claim about gradients has to hold on the cases: each
// is legalised, and either no floating-point input can receive a gradient from an output, or in some case of
// the operator one can.
#include "test/compiler/legalize/Cases.h"

#include "compiler/legalize/Initializers.h"
#include "compiler/legalize/OperatorList.h"
#include "compiler/legalize/Table.h"
#include "compiler/passes/precision/Passes.h"
#include "dialects/onnx/OnnxOperators.h"

#include <map>
#include <set>

using namespace mlir;
using namespace ortc;
using namespace ortc::legalize;

TEST(OperatorNotesTest, AreAboutOperatorsThatExist) {
  std::set<std::pair<std::string, std::string>> known;
  for (const onnx::OperatorDefinition &definition : onnx::listDefinitions())
    known.insert({std::string(definition.domain), std::string(definition.name)});
  for (const Operator &entry : getOperators())
    known.insert({entry.domain.str(), entry.name.str()});
  for (const OperatorNote &note : getOperatorNotes())
    EXPECT_TRUE(known.count({note.domain.str(), note.name.str()})) << note.name.str();
}

TEST(OperatorNotesTest, RefuseNothingThatHasAnEntry) {
  for (const OperatorRow &row : listOperators())
    if (row.supported)
      EXPECT_EQ(getRefusal(row.domain, row.name).str(), "")
          << row.name << " has an entry in Operators.inc: its note is out of date";
}

/// Visits every case whose operator is its only one, legalised, with that operator's name.
static void forEachOperator(llvm::function_ref<void(const std::string &, LegalCase &)> visit) {
  std::string folder = casesFolder("", "cases");
  for (const std::string &name : listCases(folder)) {
    LegalCase subject;
    LegalizeOptions options;
    options.mode = Mode::eval;
    ASSERT_NO_FATAL_FAILURE(subject.load(folder + "/" + name, options)) << name;
    auto nodes =
        llvm::to_vector((*subject.source->getOps<onnx::GraphOp>().begin()).getBlock().getOps<onnx::NodeOp>());
    if (nodes.size() != 1)
      continue;
    visit(nodes.front().getOpType().str(), subject);
  }
}

TEST(OperatorNotesTest, GradientsAreAsTheNotesSay) {
  std::map<std::string, bool> reached; // by operators that are their case's only one
  forEachOperator([&](const std::string &name, LegalCase &subject) {
    Block &body = subject.report.function.front();
    llvm::DenseSet<Value> values =
        reachableArguments(body, llvm::to_vector(body.getTerminator()->getOperands()));
    auto isFloat = [](Value value) {
      return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType());
    };
    if (llvm::none_of(body.getArguments(), isFloat)) // says nothing
      return;
    bool &any = reached[name];
    any |=
        llvm::any_of(body.getArguments(), [&](BlockArgument argument) { return values.contains(argument); });
  });
  EXPECT_EQ(reached.size(), 118u) << "who adds a case counts it";
  for (const OperatorRow &row : listOperators())
    if (auto found = reached.find(row.name); row.domain.empty() && found != reached.end())
      EXPECT_EQ(row.hasGradient, found->second) << row.name << ": see OperatorNotes.inc";
}

/// An operator whose cases hold a product that --precision bf16 makes narrow has the note, and no other.
TEST(OperatorNotesTest, ProductsAreAsTheNotesSay) {
  std::map<std::string, bool> multiplies; // by operators that are their case's only one
  forEachOperator([&](const std::string &name, LegalCase &subject) {
    bool &any = multiplies[name];
    subject.report.function.walk([&](Operation *op) { any |= precision::isNarrowed(op); });
  });
  for (const OperatorRow &row : listOperators())
    if (auto found = multiplies.find(row.name); row.domain.empty() && found != multiplies.end())
      EXPECT_EQ(row.hasProducts, found->second) << row.name << ": see OperatorNotes.inc";
}
