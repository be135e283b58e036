// Operations with a gradient rule.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_COMPILER_AUTODIFF_DIFFERENTIABLEOPINTERFACE_TD
#define ORTC_COMPILER_AUTODIFF_DIFFERENTIABLEOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::ortc::autodiff";
  let description = [{
    An operation that knows the vector-Jacobian product of its results with respect to its operands.
    Implemented by external models: the rules in compiler/autodiff/rules, attached by `registerGradientRules`.
  }];
  let methods = [
    InterfaceMethod<[{
      One entry per operand: the gradient, of the operand's type, or `noGradient(reason)`. New operations are created
      with the request's builder and may use operands and results of this operation.
    }], "::ortc::autodiff::Gradients", "differentiate", (ins "::ortc::autodiff::GradientRequest &":$request)>
  ];
}

#endif
