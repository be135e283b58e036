// Planning problems with the shape of training steps, made from a few numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/planner/TrainingGraphs.h"

namespace ortc::planning::benchmark {

namespace {

class Maker {
public:
  explicit Maker(const TrainingGraph &graph) : graph(graph) {}

  Problem make() {
    BufferId x = buffer("input", graph.activation);
    problem.buffers[x].aliveAtStart = true;
    for (uint32_t b = 0; b < graph.blocks; ++b)
      x = block(b, x);
    BufferId dx = buffer("loss gradient", problem.buffers[x].bytes);
    step("loss", {x}, {dx});
    for (uint32_t b = graph.blocks; b-- > 0;)
      dx = blockBackward(blocks[b], dx);
    for (auto [gradient, reader] : gradients)
      step("update", {gradient}, {}).after = {reader};
    return std::move(problem);
  }

private:
  struct Layer {
    BufferId input, contracted, statistics, output;
    uint64_t weight;
  };
  struct Block {
    std::vector<std::vector<Layer>> paths;
    BufferId input;
  };

  BufferId buffer(const char *name, uint64_t bytes) {
    problem.buffers.push_back(
        {std::string(name) + std::to_string(problem.buffers.size()), bytes, kDefaultAlignment, false, false});
    return BufferId(problem.buffers.size() - 1);
  }

  Step &step(const char *name, std::vector<BufferId> reads, std::vector<BufferId> writes) {
    Step step;
    step.name = name;
    step.reads = std::move(reads);
    step.writes = std::move(writes);
    problem.steps.push_back(std::move(step));
    return problem.steps.back();
  }

  BufferId block(uint32_t index, BufferId input) {
    uint32_t stage = index * 4 / graph.blocks;
    uint64_t bytes = graph.activation >> stage, weight = graph.weight << stage;
    Block block;
    block.input = input;
    block.paths.resize(graph.branches);
    std::vector<BufferId> ends(graph.branches, input);
    auto layer = [&](uint32_t path, uint32_t d) {
      // Paths differ in width, or all would be equal and every order as good.
      uint64_t width = bytes / (1 + (path + d) % 3);
      Layer made{ends[path], buffer("contracted", width), buffer("statistics", 2048), 0, weight};
      step("contraction", {made.input}, {made.contracted});
      step("statistics", {made.contracted}, {made.statistics});
      made.output = buffer("output", width);
      step("normalise", {made.contracted, made.statistics}, {made.output}).inPlace = {
          {made.contracted, made.output}};
      ends[path] = made.output;
      block.paths[path].push_back(made);
    };
    if (graph.interleave) {
      for (uint32_t d = 0; d < graph.depth; ++d)
        for (uint32_t path = 0; path < graph.branches; ++path)
          layer(path, d);
    } else {
      for (uint32_t path = 0; path < graph.branches; ++path)
        for (uint32_t d = 0; d < graph.depth; ++d)
          layer(path, d);
    }
    BufferId sum = buffer("sum", bytes);
    std::vector<BufferId> reads = ends;
    reads.push_back(input);
    step("sum", reads, {sum});
    blocks.push_back(std::move(block));
    return sum;
  }

  BufferId blockBackward(const Block &block, BufferId dy) {
    std::vector<BufferId> parts{dy};
    for (const std::vector<Layer> &path : block.paths) {
      BufferId gradient = dy;
      for (size_t d = path.size(); d-- > 0;) {
        const Layer &layer = path[d];
        uint64_t bytes = problem.buffers[layer.contracted].bytes;
        BufferId inner = buffer("normalise gradient", bytes);
        step("normalise backward", {gradient, layer.contracted, layer.statistics}, {inner}).inPlace = {
            {gradient, inner}, {layer.contracted, inner}};
        BufferId dw = buffer("weight gradient", layer.weight);
        step("weight gradient", {inner, layer.input}, {dw});
        BufferId dx = buffer("input gradient", problem.buffers[layer.input].bytes);
        step("input gradient", {inner}, {dx});
        gradients.push_back({dw, StepId(problem.steps.size() - 1)});
        gradient = dx;
      }
      parts.push_back(gradient);
    }
    BufferId sum = buffer("gradient sum", problem.buffers[block.input].bytes);
    Step &join = step("gradient sum", parts, {sum});
    for (BufferId part : parts)
      join.inPlace.push_back({part, sum});
    return sum;
  }

  const TrainingGraph &graph;
  Problem problem;
  std::vector<Block> blocks;
  std::vector<std::pair<BufferId, StepId>> gradients; ///< and the last reader of the weight
};

} // namespace

Problem makeTrainingGraph(const TrainingGraph &graph) { return Maker(graph).make(); }

} // namespace ortc::planning::benchmark
