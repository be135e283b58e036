// Sets of bytes, in memory that costs nothing where nobody touches it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/count/TouchedBytes.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>

namespace ortc::emulator {
namespace {

constexpr uint64_t kPage = 4096, kSector = 32, kWords = kPage / kSector;

template <class T> T *reserve(uint64_t bytes) {
  void *memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  return static_cast<T *>(memory);
}

} // namespace

TouchedBytes::~TouchedBytes() { release(); }

void TouchedBytes::release() {
  if (bits) {
    munmap(bits, pages * kPage / 8);
    munmap(isTouched, pages);
  }
  bits = nullptr;
}

void TouchedBytes::open(uint64_t bytes) {
  const uint64_t needed = bytes / kPage + 1;
  if (bits && needed <= pages)
    return clear();
  release();
  touched.clear();
  pages = needed;
  bits = reserve<uint32_t>(pages * kPage / 8);
  isTouched = reserve<uint8_t>(pages);
}

void TouchedBytes::notePage(uint64_t page) {
  isTouched[page] = 1;
  touched.push_back(page);
}

void TouchedBytes::add(uint64_t first, uint32_t bytes) {
  const uint64_t page = first / kPage;
  if (!isTouched[page])
    notePage(page);
  const uint32_t in = uint32_t(first % kSector);
  bits[first / kSector] |= (bytes >= kSector ? ~0u : (1u << bytes) - 1) << in;
}

uint64_t TouchedBytes::count() const {
  uint64_t sum = 0;
  for (uint64_t page : touched)
    for (uint64_t k = 0; k < kWords; ++k)
      sum += uint64_t(__builtin_popcount(bits[page * kWords + k]));
  return sum;
}

uint64_t TouchedBytes::countSectors() const {
  uint64_t sum = 0;
  for (uint64_t page : touched)
    for (uint64_t k = 0; k < kWords; ++k)
      sum += bits[page * kWords + k] != 0;
  return sum;
}

uint64_t TouchedBytes::spread(const std::vector<uint64_t> &bases) const {
  std::vector<uint64_t> first(bases.size() + 1, UINT64_MAX), end(bases.size() + 1, 0);
  for (uint64_t page : touched)
    for (uint64_t k = 0; k < kWords; ++k) {
      const uint32_t word = bits[page * kWords + k];
      if (!word)
        continue;
      const uint64_t at = page * kPage + k * kSector;
      const size_t stretch = size_t(std::upper_bound(bases.begin(), bases.end(), at) - bases.begin());
      first[stretch] = std::min(first[stretch], at + uint64_t(__builtin_ctz(word)));
      end[stretch] = std::max(end[stretch], at + kSector - uint64_t(__builtin_clz(word)));
    }
  uint64_t sum = 0;
  for (size_t k = 0; k < first.size(); ++k)
    sum += end[k] ? end[k] - first[k] : 0;
  return sum;
}

void TouchedBytes::moveTo(TouchedBytes &to) {
  for (uint64_t page : touched) {
    if (!to.isTouched[page])
      to.notePage(page);
    for (uint64_t k = 0; k < kWords; ++k)
      to.bits[page * kWords + k] |= bits[page * kWords + k];
  }
  clear();
}

void TouchedBytes::clear() {
  for (uint64_t page : touched) {
    std::memset(bits + page * kWords, 0, kWords * sizeof *bits);
    isTouched[page] = 0;
  }
  touched.clear();
}

} // namespace ortc::emulator
