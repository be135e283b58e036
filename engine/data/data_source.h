// Files of named arrays, of every format, as one interface.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/Array.h"
#include "support/Status.h"

namespace ortc::engine {

/// Not zero when somebody asks to stop, such as a handler of Ctrl-C.
using StopFlag = volatile std::sig_atomic_t;

class Shards;

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
  /// Strings beside the arrays, where the kind of file has some.
  const std::map<std::string, std::string> &getMetadata() const { return metadata; }
  /// Name, type, shape and size of an array. Where values are compressed, they stay so: what nobody asks for,
  /// or what cannot be used, is not inflated.
  virtual Status describe(const std::string &name, Array &array) const { return load(name, array); }
  /// Reads an array; a copy is made only where it is compressed, big-endian or in Fortran order.
  virtual Status load(const std::string &name, Array &array) const = 0;
  /// The files whose rows follow each other, where there are several: this source then has the names of the first one,
  /// and no arrays.
  virtual std::shared_ptr<const Shards> getShards() const { return nullptr; }
  /// Samples that change places together when shuffled: 0, all of the file.
  virtual int64_t getRun() const { return 0; }
  /// Whether the values themselves say of which type a column is.
  virtual bool isText() const { return false; }
  /// A hint for the message about an array that is missing; "" if there is none.
  virtual std::string getHint() const { return ""; }
  /// The same for one whose samples have another shape than an input.
  virtual std::string getShapeHint(const Shape &) const { return ""; }

protected:
  explicit DataSource(std::string path) : path(std::move(path)) {}
  std::string path;
  std::vector<std::string> names;
  std::map<std::string, std::string> metadata;
};

/// Opens what --data names: FILE[,FILE...][?key=value&...] (data_spec.h). A file is known by its ending, or else by its
/// first bytes. IDX files come in pairs: `images,labels`, or the file of images alone, whose labels are then looked for
/// beside it under MNIST's names. Other files are shards. What takes long to read fails soon after `stop`; small files
/// are read all the same.
Status openData(const std::string &path, std::unique_ptr<DataSource> &source, const StopFlag *stop = nullptr);

Status openNpz(const std::string &path, std::unique_ptr<DataSource> &source, const StopFlag *stop = nullptr);
Status openSafetensors(const std::string &path, std::unique_ptr<DataSource> &source);
Status openIdx(const std::string &images, const std::string &labels, std::unique_ptr<DataSource> &source,
               const StopFlag *stop = nullptr);

} // namespace ortc::engine
