// RUN: ortc-opt %s --ortc-build-update="optimizer=sgd:lr=0.1,momentum=0.9 flush-state=true" | FileCheck %s --check-prefixes=CHECK,FLUSH
// RUN: ortc-opt %s --ortc-build-update="optimizer=sgd:lr=0.1,momentum=0.9" | FileCheck %s --check-prefixes=CHECK,LEAVE
// Breaks when an average stays below the smallest normal number for ever, or when the parameter is flushed, too.

// CHECK: func.func private @update
// CHECK: %[[BUFFER:.*]] = arith.addf
// CHECK: %[[NEW:.*]] = arith.addf
// FLUSH: %[[LEAST:.*]] = arith.constant dense<1.17549435E-38> : tensor<3xf32>
// FLUSH: %[[SIZE:.*]] = math.absf %[[BUFFER]]
// FLUSH: %[[SMALL:.*]] = arith.cmpf olt, %[[SIZE]], %[[LEAST]]
// FLUSH: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<3xf32>
// FLUSH: %[[STATE:.*]] = arith.select %[[SMALL]], %[[ZERO]], %[[BUFFER]]
// FLUSH: return %{{.*}}, %[[NEW]], %[[STATE]]
// LEAVE: return %{{.*}}, %[[NEW]], %[[BUFFER]]
train.tensor @w parameter "fc.weight" : tensor<3xf32>
func.func private @backward_0(%0: tensor<3xf32> {train.tensor = @w}) -> (tensor<3xf32> {train.gradient = @w}) {
  return %0 : tensor<3xf32>
}
