// Files of named arrays: npz, safetensors and IDX behind one interface.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_RUNTIME_HOST_DATA_DATA_SOURCE_H
#define ORTC_RUNTIME_HOST_DATA_DATA_SOURCE_H

#include <memory>
#include <string>
#include <vector>

#include "runtime/host/status.h"
#include "runtime/host/types.h"

namespace ortc::host {

/// A dense, row-major, little-endian array. `owner` keeps the bytes alive; they may be unaligned.
struct Array {
  std::string name;
  DataType type = DataType::None;
  Shape shape;
  const uint8_t *data = nullptr;
  size_t bytes = 0;
  std::shared_ptr<const void> owner;
  bool isMapped = false; ///< the bytes are those of the file
};

/// An open file. The directory is read and checked when it is opened, an array when it is asked for, so that
/// what nobody needs costs nothing and may be of a type nobody reads.
class DataSource {
public:
  virtual ~DataSource() = default;
  /// The arrays, in the order of the file.
  const std::vector<std::string> &getNames() const { return names; }
  const std::string &getPath() const { return path; }
  /// All files that are read.
  virtual std::vector<std::string> getFiles() const { return {path}; }
  bool has(const std::string &name) const;
  /// Reads an array; a copy is made only where it is compressed, big-endian or in Fortran order.
  virtual Status load(const std::string &name, Array &array) const = 0;
  /// A hint for the message about an array that is missing; "" if there is none.
  virtual std::string getHint() const { return ""; }

protected:
  explicit DataSource(std::string path) : path(std::move(path)) {}
  std::string path;
  std::vector<std::string> names;
};

/// Opens a data file by its ending, or else by its first bytes. IDX files come in pairs: `images,labels`, or
/// the file of images alone, whose labels are then looked for beside it under MNIST's names.
Status openData(const std::string &path, std::unique_ptr<DataSource> &source);

Status openNpz(const std::string &path, std::unique_ptr<DataSource> &source);
Status openSafetensors(const std::string &path, std::unique_ptr<DataSource> &source);
Status openIdx(const std::string &images, const std::string &labels, std::unique_ptr<DataSource> &source);

} // namespace ortc::host

#endif // ORTC_RUNTIME_HOST_DATA_DATA_SOURCE_H
