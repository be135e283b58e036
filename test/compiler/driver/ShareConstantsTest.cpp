// Programs that were cut in different ways get one table of constants.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "compiler/driver/ShareConstants.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace ortc;

namespace {

class ShareConstantsTest : public testing::Test {
protected:
  ShareConstantsTest() { context.loadDialect<func::FuncDialect, train::TrainDialect>(); }

  /// A program with a weight and with constants of these values, in this order, each read by a function of its value's
  /// name.
  OwningOpRef<ModuleOp> parse(std::vector<std::pair<std::string, int>> constants) {
    std::string text, functions;
    for (auto [name, value] : constants) {
      text += "train.tensor @" + name + " constant \"" + name + "\" initial = dense<[" +
              std::to_string(value) + ", 0]> : tensor<2xi32> : tensor<2xi32>\n";
      functions += "func.func @reads_" + std::to_string(value) + "(%x: tensor<2xi32> {train.tensor = @" +
                   name + "}) { return }\n";
    }
    text +=
        "train.tensor @weight parameter \"weight\" initial = dense<0.0> : tensor<2xf32> : tensor<2xf32>\n";
    return parseSourceString<ModuleOp>(text + functions, &context);
  }
  /// "name value" of all tensors, in order.
  static std::string list(ModuleOp module) {
    std::string text;
    for (auto tensor : module.getOps<train::TensorOp>()) {
      EXPECT_EQ(tensor.getSymName(), tensor.getName());
      text += (text.empty() ? "" : ", ") + tensor.getSymName().str();
      if (tensor.getRole() == train::Role::constant)
        text += " " + std::to_string(*cast<DenseIntElementsAttr>(tensor.getInitialAttr()).value_begin<int>());
    }
    return text;
  }
  /// The value of the constant that the function of this value reads.
  static int valueRead(ModuleOp module, int value) {
    auto function = module.lookupSymbol<func::FuncOp>("reads_" + std::to_string(value));
    auto symbol = function.getArgAttrOfType<FlatSymbolRefAttr>(0, train::kTensor);
    auto tensor = module.lookupSymbol<train::TensorOp>(symbol.getAttr());
    return tensor ? *cast<DenseIntElementsAttr>(tensor.getInitialAttr()).value_begin<int>() : -1;
  }

  MLIRContext context;
  llvm::StringSet<> known = [] {
    llvm::StringSet<> names;
    names.insert("weight");
    return names;
  }();
};

TEST_F(ShareConstantsTest, OneProgramStaysAsItIs) {
  auto one = parse({{"constant_1", 7}, {"constant_0", 5}});
  driver::shareConstants({*one}, known);
  EXPECT_EQ(list(*one), "constant_1 7, constant_0 5, weight");
}

TEST_F(ShareConstantsTest, EqualValuesGetTheNamesOfTheFirstAndOthersComeLast) {
  auto first = parse({{"constant_1", 7}, {"constant_0", 5}}),
       second = parse({{"constant_2", 3}, {"constant_1", 5}, {"constant_0", 7}}),
       third = parse({{"constant_0", 2}});
  driver::shareConstants({*first, *second, *third}, known);
  for (auto *module : {&first, &second, &third})
    EXPECT_EQ(list(**module), "constant_1 7, constant_0 5, weight, constant_2 3, constant_3 2");
  for (auto [module, values] : {std::pair(&first, std::vector{7, 5}),
                                std::pair(&second, std::vector{3, 5, 7}), std::pair(&third, std::vector{2})})
    for (int value : values)
      EXPECT_EQ(valueRead(**module, value), value);
}

} // namespace
