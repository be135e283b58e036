// Files of masks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/Masks.h"

#include "engine/data/data_source.h"
#include "support/Elements.h"
#include "support/Text.h"

namespace ortc::tool {

/// One array, of which every value is 0 or 1.
static Status readMask(const Array &array, const std::string &where, Mask &mask) {
  size_t element = getElementBytes(array.type), count = element ? array.bytes / element : 0;
  if (element == 0)
    return Status::refusal(where + " has elements of a type that no mask has");
  bool isWhole = !isFloat(array.type);
  mask.shape = array.shape;
  mask.keeps.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const uint8_t *from = array.data + i * element;
    double value = isWhole ? double(loadAsInteger(array.type, from)) : loadAsDouble(array.type, from);
    if (value != 0 && value != 1)
      return Status::refusal(where + " has " + formatNumber(value) + " as its element " + std::to_string(i) +
                             ", and a mask has only zeros and ones");
    mask.keeps.push_back(value == 1);
  }
  return Status();
}

Expected<std::shared_ptr<const Masks>> readMasks(std::string_view path) {
  std::unique_ptr<engine::DataSource> source;
  if (Status opened = engine::openData(std::string(path), source); !opened.isOk())
    return Status::refusal(opened.getMessage());
  auto masks = std::make_shared<Masks>();
  for (const std::string &name : source->getNames()) {
    Array array;
    ORTC_TRY(source->load(name, array));
    ORTC_TRY(readMask(array, source->getPath() + ": '" + name + "'", (*masks)[name]));
  }
  if (masks->empty())
    return Status::refusal(source->getPath() + ": has no arrays, and so no mask");
  return std::shared_ptr<const Masks>(std::move(masks));
}

} // namespace ortc::tool
