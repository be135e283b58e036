// Shared by the dense convolution kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/conv/dense/DenseEmitter.h"

#include "compiler/backends/cpu/contraction/VectorAccess.h"
#include "compiler/kernels/SumOrder.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/NnShapes.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

/// Larger numbers of a choice are not even considered.
static constexpr int64_t kMostWish = 1 << 20;
/// A copied block of the image in the second-level cache.
static constexpr int64_t kBlockBytes = 384 << 10;

int64_t ImageBlock::elements() const { return images * nn::elementCount(sizes) * channels; }

SmallVector<int64_t> ImageBlock::steps() const {
  SmallVector<int64_t> steps(sizes.size());
  int64_t step = copied ? channels : allChannels;
  for (size_t d = sizes.size(); d-- > 0;) {
    steps[d] = step;
    step *= sizes[d];
  }
  return steps;
}

DepthBlocks planDepth(int64_t taps, int64_t tapsInside, int64_t channels) {
  int64_t ofTap = tapsInside * channels;
  if (taps * ofTap <= kWholeConvDepth)
    return {taps, channels};
  if (ofTap <= kConvDepth) {
    int64_t blocks = (taps * ofTap + kConvDepth - 1) / kConvDepth;
    return {(taps + blocks - 1) / blocks, channels};
  }
  int64_t wanted = (ofTap + kConvDepth - 1) / kConvDepth;
  for (int64_t unit : {16, 1})
    for (int64_t blocks = wanted; blocks < 2 * wanted; ++blocks)
      if (channels % (blocks * unit) == 0 && channels / blocks >= 16)
        return {1, channels / blocks};
  return {1, channels};
}

ImageBlock planImages(ArrayRef<SmallVector<Walk, 3>> walks, ArrayRef<int64_t> image, int64_t allChannels,
                      int64_t channels, int64_t furthest) {
  int64_t rank = image.size();
  SmallVector<int64_t, 3> lowest(rank, 0), highest(rank, 0);
  int64_t reach = 0, taps = 1;
  bool any = false;
  for (ArrayRef<Walk> phase : walks) {
    if (llvm::any_of(phase, [](const Walk &walk) { return walk.isEmpty(); }))
      continue;
    int64_t phaseTaps = 1;
    for (int64_t d = 0; d < rank; ++d) {
      lowest[d] = any ? std::min(lowest[d], phase[d].lowest()) : phase[d].lowest();
      highest[d] = any ? std::max(highest[d], phase[d].highest()) : phase[d].highest();
      phaseTaps *= phase[d].taps;
    }
    int64_t last = phase[0].base + (phase[0].taps - 1) * phase[0].tapStep;
    reach = any ? std::max(reach, last) : last;
    taps = std::max(taps, phaseTaps);
    any = true;
  }
  ImageBlock block;
  block.image.assign(image.begin(), image.end());
  block.allChannels = allChannels;
  block.channels = channels;
  block.channelBlocks = allChannels / channels;
  block.rowStep = walks.front()[0].sourceStride;
  block.span = reach - lowest[0] + 1;
  for (int64_t d = 0; d < rank; ++d)
    block.copied |= lowest[d] < 0 || highest[d] >= image[d];
  // Points far apart share few sets of the first-level cache.
  block.copied |= channels < allChannels && (taps > 1 || allChannels >= furthest);
  block.sizes = block.image;
  block.origin.assign(rank, 0);
  if (block.copied) {
    for (int64_t d = 0; d < rank; ++d) {
      int64_t before = std::max<int64_t>(0, -lowest[d]),
              after = std::max<int64_t>(0, highest[d] + 1 - image[d]);
      block.origin[d] = before;
      block.sizes[d] = before + image[d] + after;
    }
    block.origin[0] = -lowest[0]; // rows begin at the lowest one a block needs, inside the image or not
  }
  return block;
}

void cutGroups(ImageBlock &block, int64_t batch, int64_t points, int64_t wanted, int64_t mostImages,
               int64_t unit, int64_t elementBytes) {
  int64_t row = nn::elementCount(ArrayRef(block.sizes).drop_front()) * block.channels * elementBytes;
  int64_t rows = kBlockBytes / std::max<int64_t>(1, row);
  int64_t fitting = std::max<int64_t>(1, (rows - block.span) / block.rowStep + 1);
  wanted = std::min(wanted, fitting);
  if (2 * points <= wanted) {
    block.images = std::max<int64_t>(1, std::min({wanted / points, mostImages, batch}));
    while (batch % block.images)
      --block.images;
    block.blockPoints = points;
  } else {
    int64_t pieces = (points + wanted - 1) / wanted;
    block.blockPoints = (points + pieces - 1) / pieces;
    if (pieces > 1)
      block.blockPoints = (block.blockPoints + unit - 1) / unit * unit;
  }
  block.blocks = (points + block.blockPoints - 1) / block.blockPoints;
  if (block.copied)
    block.sizes[0] = (block.blockPoints - 1) * block.rowStep + block.span;
}

void DenseEmitter::guarded(arith::CmpIPredicate predicate, Value a, Value b,
                           llvm::function_ref<void()> body) {
  auto left = constantOf(a), right = constantOf(b);
  if (left && right) {
    if (arith::applyCmpPredicate(predicate, APInt(64, *left), APInt(64, *right)))
      body();
    return;
  }
  Value condition = arith::CmpIOp::create(*this, predicate, a, b);
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(&branch.getThenRegion().front());
  body();
}

bool DenseEmitter::fits(int64_t rows, int64_t vectors) const {
  return rows * vectors + vectors + 1 + (fma ? 0 : 1) <= target.isa.vectorRegisters &&
         (rows == 1 || !target.isa.forSize);
}

int64_t DenseEmitter::unrollOf(int64_t sums, int64_t steps) const {
  // Vectors of the next step would be loaded early, and sums spilled for them.
  bool full = sums > target.isa.vectorRegisters - 8;
  return full || steps < 2 || target.isa.forSize ? 1 : 2;
}

/// Cycles of one step of the reduction. Vectors come from farther away than what is broadcast, which is always near.
static double stepCycles(int64_t rows, int64_t vectors, const TileModel &model) {
  double arithmetic = rows * vectors / model.macsPerCycle, loads = (rows + vectors) / model.loadsPerCycle;
  return std::max({arithmetic, loads, model.latencyCycles}) + model.vectorCycles * vectors + 0.02 * rows;
}

/// Operation, type and shape, and what else a plan reads.
static std::string makeKey(const ConvSpec &spec, const ConvShape &shape, StringRef algorithm) {
  std::string key;
  llvm::raw_string_ostream text(key);
  auto sizes = [&](StringRef name, ArrayRef<int64_t> values) {
    text << name;
    llvm::interleave(values, text, "x");
  };
  text << algorithm << spec.op->getName().stripDialect() << " "
       << getElementTypeOrSelf(spec.op->getResult(0).getType()) << " batch " << shape.batch;
  if (shape.parts > 1)
    text << " parts " << shape.parts;
  sizes(" input ", shape.input);
  text << " channels " << shape.channels;
  sizes(" filter ", shape.filter);
  text << " features " << shape.features;
  sizes(" output ", shape.output);
  sizes(" strides ", shape.strides);
  sizes(" low ", shape.low);
  sizes(" dilations ", shape.dilations);
  if (spec.epilogue)
    text << (spec.rollEpilogue ? " long epilogue" : " epilogue");
  return key;
}

int64_t DenseEmitter::wish(const KernelChoice *choice, const char *name, int64_t usual) {
  if (!choice)
    return usual;
  auto found = choice->find(name);
  return found == choice->end() ? usual : std::clamp<int64_t>(found->second, 0, kMostWish);
}

int64_t DenseEmitter::wishRows(const KernelChoice *choice, int64_t usual) {
  return std::clamp<int64_t>(wish(choice, "rows", usual), 1, kMostRows);
}

LogicalResult DenseEmitter::choose(StringRef algorithm, Planner plan) {
  KernelBlocking &blocking = info.blocking;
  blocking.key = makeKey(spec, shape, algorithm);
  const KernelChoice *given = findChoice(spec.choices, blocking.key);
  blocking.choice = plan(given);
  if (given && blocking.choice != *given)
    return refuseChoice(getContext(), *spec.choices, blocking.key);
  blocking.isGiven = given != nullptr;
  blocking.imbalance = findImbalance(info.chunks * shape.parts, target.workers);
  if (!spec.choices)
    return success();
  auto add = [&](const KernelChoice &wished) {
    KernelChoice possible = plan(&wished);
    if (possible != blocking.choice && plan(&possible) == possible &&
        !llvm::is_contained(blocking.neighbours, possible))
      blocking.neighbours.push_back(possible);
  };
  for (const auto &[name, value] : blocking.choice)
    if (name != "rows" && name != "vectors")
      for (int64_t other : {value / 2, 2 * value}) {
        KernelChoice wished = blocking.choice;
        wished[name] = other;
        add(wished);
      }
  for (int64_t vectors = 1; vectors <= kMostVectors; ++vectors) {
    int64_t most = kMostRows;
    while (most > 1 && !fits(most, vectors))
      --most;
    for (int64_t rows : {most, most - 1, most - 2}) {
      KernelChoice wished = blocking.choice;
      wished["rows"] = rows, wished["vectors"] = vectors;
      add(wished);
    }
  }
  plan(given);
  return success();
}

int64_t DenseEmitter::possibleVectors(int64_t vectors, int64_t columns, bool mayBeThree) const {
  bool isPossible = vectors > 0 && vectors <= std::min(kMostVectors, (columns + lanes - 1) / lanes) &&
                    (vectors != 3 || mayBeThree);
  return isPossible ? vectors : 0;
}

TileChoice DenseEmitter::pickTile(int64_t count, int64_t images, int64_t columns,
                                  const TileOptions &options) const {
  int64_t all = (columns + lanes - 1) / lanes;
  TileChoice best;
  double bestCost = -1;
  for (int64_t vectors = kMostVectors; vectors > 0; --vectors) {
    if (options.vectors ? vectors != options.vectors
                        : vectors > all || (vectors == 3 && !options.threeVectors))
      continue;
    for (int64_t most = std::min(count, options.mostRows); most > 0; --most) {
      if (options.divisors && 168 % most != 0)
        continue;
      int64_t ofImages = 1;
      if (options.severalImages && most == count)
        for (int64_t more = 2; more * most <= options.mostRows && more <= images; ++more)
          if (images % more == 0 && fits(more * most, vectors))
            ofImages = more;
      if (!fits(ofImages * most, vectors))
        continue;
      SmallVector<std::pair<int64_t, int64_t>, 2> sizes = evenTiles(count, most);
      if (!options.severalImages) {
        sizes = {{most, count / most}};
        if (count % most)
          sizes.push_back({count % most, 1});
      } else if (sizes[0].first != most) {
        continue; // another height has the same tiles
      }
      double cost = 0;
      for (auto [rows, number] : sizes)
        for (auto [panel, panels] : {std::pair{vectors, all / vectors}, std::pair{all % vectors, int64_t(1)}})
          if (panel)
            cost += number * panels * stepCycles(rows * ofImages, panel, target.machine.tiles) / ofImages;
      cost *= sizes.size() > 1 ? 1.03 : 1; // more code
      if (bestCost < 0 || cost < bestCost)
        bestCost = cost, best = {most, ofImages, vectors};
    }
  }
  return best;
}

void DenseEmitter::fillImages(const ImageBlock &block, Value image, Value firstImage, Value blockIndex,
                              Value channelBlock) {
  if (!block.copied)
    return;
  int64_t rank = block.image.size();
  int64_t inner = nn::elementCount(ArrayRef(block.sizes).drop_front()) * block.channels;
  Value channel = mul(channelBlock, block.channels);
  // Block row r is image row first + r.
  Value first = sub(mul(blockIndex, block.blockPoints * block.rowStep), index(block.origin[0]));
  Value rows = index(block.sizes[0]);
  Value begin = minimum(maximum(sub(index(0), first), index(0)), rows);
  Value end = maximum(begin, minimum(sub(index(block.image[0]), first), rows));
  bool whole = block.channels == block.allChannels;
  // Runs of contiguous elements: all of the last dimension, or the channels of a point.
  std::function<void(int64_t, Value, Value)> copy = [&](int64_t d, Value from, Value to) {
    if (d == rank || (whole && d == rank - 1)) {
      int64_t points = d == rank ? 1 : block.image[d];
      if (d != rank) {
        from = mul(from, points);
        to = add(mul(to, block.sizes[d]), block.origin[d]);
      }
      copyRun(image, add(mul(from, block.allChannels), channel), blockBuffer, mul(to, block.channels),
              points * block.channels);
      return;
    }
    loop(0, block.image[d], 1, [&](Value i) {
      copy(d + 1, add(mul(from, block.image[d]), i), add(add(mul(to, block.sizes[d]), i), block.origin[d]));
    });
  };
  loop(0, block.images, 1, [&](Value number) {
    Value top = mul(number, block.sizes[0]);
    auto clear = [&](Value row) { zeroRun(blockBuffer, mul(add(top, row), inner), inner); };
    loop({index(0), begin}, 1, clear);
    loop({end, rows}, 1, clear);
    Value source = add(mul(add(firstImage, number), block.image[0]), first);
    loop({begin, end}, 1, [&](Value row) { copy(1, add(source, row), add(top, row)); });
  });
}

Value DenseEmitter::imagePlace(const ImageBlock &block, Value firstImage, Value image, Value blockIndex,
                               Value channelBlock, ArrayRef<Value> position) {
  Value at = block.copied ? mul(image, block.sizes[0]) : mul(add(firstImage, image), block.image[0]);
  at = add(at, position[0]);
  if (block.copied)
    at = add(sub(at, mul(blockIndex, block.blockPoints * block.rowStep)), block.origin[0]);
  for (size_t d = 1; d < position.size(); ++d)
    at = add(mul(at, block.sizes[d]), add(position[d], block.origin[d]));
  return block.copied ? mul(at, block.channels)
                      : add(mul(at, block.allChannels), mul(channelBlock, block.channels));
}

int64_t DenseEmitter::imageStep(const ImageBlock &block) const { return block.steps()[0] * block.sizes[0]; }

void DenseEmitter::sumRows(ArrayRef<int64_t> live, int64_t vectors, MutableArrayRef<Value> sums,
                           ReductionLoop run, const MicrokernelOperands &operands) {
  SmallVector<Value> own;
  for (int64_t r : live)
    for (int64_t v = 0; v < vectors; ++v)
      own.push_back(sums[r * vectors + v]);
  own = emitMicrokernel(*this, getLoc(), {int64_t(live.size()), vectors, lanes}, {run}, own, operands, fma);
  for (auto [i, r] : llvm::enumerate(live))
    for (int64_t v = 0; v < vectors; ++v)
      sums[r * vectors + v] = own[i * vectors + v];
}

void DenseEmitter::addTo(Value place, int64_t live, Value sum, Value isFirst) {
  LaneRange range{lanes, live};
  if (isFirst) {
    Value old = loadLanes(*this, getLoc(), operandBuffer(2), Offset(place), 1, range);
    old = arith::SelectOp::create(*this, isFirst, splat(element, 0, lanes), old);
    sum = arith::AddFOp::create(*this, old, sum);
  }
  storeLanes(*this, getLoc(), operandBuffer(2), Offset(place), 1, range, sum);
}

void DenseEmitter::overColumns(IndexRange own, int64_t columns, int64_t vectors,
                               llvm::function_ref<void(Value, int64_t, int64_t)> body) {
  int64_t width = vectors * lanes, whole = columns / width * width, rest = columns - whole;
  if (whole)
    loop({own.begin, minimum(own.end, index(whole))}, width,
         [&](Value column) { body(column, vectors, lanes); });
  if (rest)
    guarded(arith::CmpIPredicate::ugt, own.end, index(whole), [&] {
      int64_t count = (rest + lanes - 1) / lanes;
      body(index(whole), count, rest - (count - 1) * lanes);
    });
}

void DenseEmitter::copyPanel(const Panel &panel, Value from, Value base, int64_t step, Value place,
                             Value depth) {
  loop({index(0), depth}, 1, [&](Value k) {
    Value source = add(base, mul(k, step)), at = add(place, mul(k, panel.pitch));
    for (int64_t v = 0; v < panel.vectors; ++v) {
      int64_t live = v + 1 == panel.vectors ? panel.tail : lanes;
      Value value = loadLive(from, Offset(source, v * lanes), {lanes, live});
      store(value, panel.buffer, add(at, v * lanes));
    }
  });
}

void DenseEmitter::transposePanel(const Panel &panel, Value from, Value base, int64_t step, Value place,
                                  int64_t depth) {
  auto square = [&](Value v, int64_t live, Value k, int64_t count) {
    SmallVector<Value> rows;
    Value source = add(add(base, mul(v, lanes * step)), k);
    for (int64_t lane = 0; lane < live; ++lane)
      rows.push_back(loadLive(from, Offset(source, lane * step), {lanes, count}));
    rows.resize(lanes, splat(element, 0, lanes));
    Value at = add(add(place, mul(k, panel.pitch)), mul(v, lanes));
    SmallVector<Value> columns = emitTranspose(*this, getLoc(), rows);
    for (int64_t i = 0; i < count; ++i)
      store(columns[i], panel.buffer, add(at, i * panel.pitch));
  };
  auto overDepth = [&](Value v, int64_t live) {
    tiles(depth, lanes, [&](Value k, int64_t count) { square(v, live, k, count); });
  };
  int64_t whole = panel.tail == lanes ? panel.vectors : panel.vectors - 1;
  loop(0, whole, 1, [&](Value v) { overDepth(v, lanes); });
  if (whole < panel.vectors)
    overDepth(index(whole), panel.tail);
}

} // namespace ortc::cpu
