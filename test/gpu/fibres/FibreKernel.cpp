// A kernel that is generated for an AMD GPU, with its lanes as fibres.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/fibres/FibreKernel.h"

#include "compiler/backends/KernelJobs.h"
#include "compiler/backends/gpu/object/DeviceCode.h"

#include "ortc/device.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

using namespace mlir;

namespace ortc::fibres {

static std::unique_ptr<MLIRContext> createContext() {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  backends::loadKernelDialects(*context);
  return context;
}

FibreKernel::FibreKernel(StringRef text, plan::KernelKind kind, StringRef name, Numerics numerics)
    : processor(*gpu::findProcessor(name)), context(createContext()), program(*context, text) {
  program.function->setAttr(plan::kKind, plan::KernelKindAttr::get(context.get(), kind));
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context.get()));
  gpu::GeneratorOptions options;
  options.numerics = numerics;
  auto generated = gpu::generateKernel(*module, program.function, processor, options);
  if (failed(generated)) {
    ADD_FAILURE() << "no kernel: " << program.text;
    return;
  }
  kernel = std::move(*generated);
  Status status = gpu::emitDeviceCode(*module, processor, options.numerics).moveTo(bitcode);
  if (status.isOk())
    status = HostCode::load(bitcode).moveTo(code);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
}

std::vector<Fault> FibreKernel::listFaults() const {
  std::vector<Fault> faults;
  Status status = HostCode::listFaults(bitcode).moveTo(faults);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  return faults;
}

void FibreKernel::breakCode(const Fault &fault) {
  Status status = HostCode::load(bitcode, &fault).moveTo(code);
  EXPECT_TRUE(status.isOk()) << fault.name() << ": " << status.getMessage();
}

std::vector<char> FibreKernel::run(Order order) {
  std::string failure;
  std::vector<char> outputs = run(order, failure);
  EXPECT_EQ(failure, "") << program.text;
  return outputs;
}

std::vector<char> FibreKernel::run(Order order, std::string &failure) {
  failure.clear();
  auto expect = [&](bool isTrue, const std::string &otherwise) {
    if (!isTrue && failure.empty())
      failure = otherwise;
  };
  constexpr size_t kGuard = 64;
  constexpr char kNobodys = char(0xff); // NaN in every type of floating point
  std::vector<std::vector<char>> memory;
  for (const evaluator::HostTensor &input : program.inputs)
    memory.push_back(program.bytesOf(input));
  for (Type type : program.function.getResultTypes())
    memory.emplace_back(program.sizeOf(type) + kGuard, kNobodys);
  if (kernel.scratchBytes)
    memory.emplace_back(kernel.scratchBytes, kNobodys);
  memory.emplace_back(sizeof(ortc_device_status), 0);
  const std::vector<std::vector<char>> given = memory;
  size_t inputs = program.inputs.size();
  std::vector<size_t> places(memory.size()); // of each argument among the arrays
  std::iota(places.begin(), places.end(), size_t(0));
  if (auto pairs = program.function->getAttrOfType<DenseI64ArrayAttr>(plan::kInPlace))
    for (int64_t i = 0; i < pairs.size(); i += 2)
      places[inputs + size_t(pairs[i + 1])] = size_t(pairs[i]);
  std::vector<void *> arguments;
  for (size_t place : places)
    arguments.push_back(memory[place].data());

  for (const gpu::Launch &launch : kernel.launches) {
    HostCode::Lane lane = code.find(launch.symbol);
    if (!lane) {
      failure = "no function " + launch.symbol;
      return {};
    }
    Grid grid{launch.blocks, launch.threads, processor.subgroup, order};
    std::string wrong = fibres::run(grid, [&] { code.spoilShared(); }, [&] { lane(arguments.data()); });
    expect(wrong.empty(), launch.symbol + ": " + wrong);
    expect(code.sharesAtMost(size_t(launch.sharedBytes)), launch.symbol + " shares more than it says");
  }

  std::vector<char> outputs;
  for (auto [number, type] : llvm::enumerate(program.function.getResultTypes())) {
    const std::vector<char> &array = memory[places[inputs + number]];
    auto end = array.begin() + ptrdiff_t(program.sizeOf(type));
    outputs.insert(outputs.end(), array.begin(), end);
    expect(std::count(end, array.end(), kNobodys) == array.end() - end, "wrote beyond the end of an output");
  }
  for (size_t i = 0; i < inputs; ++i)
    if (std::find(places.begin() + ptrdiff_t(inputs), places.end(), i) == places.end())
      expect(memory[i] == given[i], "wrote input " + std::to_string(i));
  return outputs;
}

void checkProducts(const std::string &text, plan::KernelKind kind, const std::vector<Wanted> &wanted) {
  for (const Wanted &want : wanted) {
    FibreKernel kernel(text, kind, want.processor, Numerics::Fast);
    EXPECT_TRUE(kernel.multipliesMatrices())
        << want.processor.str() << " has no products of matrices in " << text;
    auto results = kernel.program.evaluate();
    ASSERT_TRUE(succeeded(results)) << text;
    std::vector<char> first;
    for (Order order : {Order::Forward, Order::Reverse, Order::Shuffled}) {
      std::vector<char> outputs = kernel.run(order);
      kernel.program.compare(outputs, *results, want.tolerance, want.processor.str());
      if (testing::Test::HasFailure())
        return;
      if (first.empty())
        first = outputs;
      ASSERT_TRUE(first == outputs) << "other bits in another order on " << want.processor.str() << ": "
                                    << text;
    }
  }
}

void check(const std::string &text, plan::KernelKind kind, double tolerance) {
  std::unique_ptr<FibreKernel> evaluated; // whose context the wanted results are of
  SmallVector<evaluator::HostTensor> want;
  for (Numerics numerics : {Numerics::Fast, Numerics::Portable}) {
    std::vector<char> first;
    for (StringRef name : {"gfx90a", "gfx1100"}) {
      auto kernel = std::make_unique<FibreKernel>(text, kind, name, numerics);
      if (!evaluated) {
        auto results = kernel->program.evaluate();
        ASSERT_TRUE(succeeded(results)) << text;
        want = std::move(*results);
      }
      for (Order order : {Order::Forward, Order::Reverse, Order::Shuffled}) {
        std::vector<char> outputs = kernel->run(order);
        kernel->program.compare(outputs, want, tolerance, name.str());
        if (testing::Test::HasFailure())
          return;
        if (first.empty())
          first = outputs;
        ASSERT_TRUE(first == outputs) << "other bits on " << name.str() << ": " << text;
      }
      if (!evaluated)
        evaluated = std::move(kernel);
    }
  }
}

void checkFaults(FibreKernel &kernel, const std::vector<Fault::Kind> &kinds) {
  static constexpr Order kOrders[] = {Order::Forward, Order::Reverse, Order::Shuffled, Order::Ahead,
                                      Order::Behind};
  ASSERT_TRUE(kernel.multipliesMatrices());
  const std::vector<char> wanted = kernel.run(Order::Forward);
  for (Order order : kOrders)
    ASSERT_TRUE(kernel.run(order) == wanted);
  const std::vector<Fault> faults = kernel.listFaults();
  for (const Fault &fault : faults) {
    kernel.breakCode(fault);
    bool isNoticed = std::any_of(std::begin(kOrders), std::end(kOrders), [&](Order order) {
      std::string failure;
      return kernel.run(order, failure) != wanted || !failure.empty();
    });
    EXPECT_TRUE(isNoticed) << fault.name();
  }
  for (Fault::Kind kind : kinds)
    EXPECT_TRUE(std::any_of(faults.begin(), faults.end(), [&](const Fault &f) { return f.kind == kind; }))
        << "no " << Fault{kind, 0}.name();
  std::printf("%zu faults\n", faults.size());
}

} // namespace ortc::fibres
