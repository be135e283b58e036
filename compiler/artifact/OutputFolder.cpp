// An artifact's folder, written whole or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/OutputFolder.h"

#include "support/Lists.h"
#include "support/OutputPaths.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace ortc::artifact {

/// The files of an artifact.
static constexpr const char *kModel = "model.ortc", *kManifest = "manifest.json";
/// Of a model that is linked into programs.
static constexpr const char *kLinked[] = {"model.a", "model.h", "model_data.c", "model.wasm"};
static constexpr const char *kAll[] = {kModel, kManifest, kLinked[0], kLinked[1], kLinked[2], kLinked[3]};

static std::string trim(std::string path) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  return path;
}

OutputFolder::OutputFolder(std::string given)
    : target(std::move(given)), place(trim(target)), model(place + "/" + kModel),
      manifest(place + "/" + kManifest) {}

OutputFolder::~OutputFolder() {
  model.drop();
  manifest.drop();
  for (auto &file : others)
    file->drop();
  for (size_t i = made.size(); i-- > 0;)
    rmdir(made[i]->path.c_str()); // which says no where something is in it
}

/// A folder with nothing else may be written to. What a compilation that was killed has left is nobody's. Files for
/// linking are an artifact's where one is beside them: their names are no rare ones.
static bool isOwn(const std::string &name, bool hasModel) {
  for (const char *own : kAll)
    if (AtomicFile::isTemporary(name, own))
      return true;
  bool isLinked = std::find(std::begin(kLinked), std::end(kLinked), name) != std::end(kLinked);
  return name == kModel || name == kManifest || (isLinked && hasModel);
}

std::vector<std::string> OutputFolder::listFiles() const {
  std::vector<std::string> files;
  for (const char *name : kAll)
    files.push_back(place + "/" + name);
  return files;
}

Status OutputFolder::check() const {
  std::error_code code;
  fs::file_status status = fs::status(place, code);
  bool isThere = fs::exists(status);
  if (isThere && !fs::is_directory(status))
    return Status::refusal("output '" + target + "' is a file; name a folder");
  if (!isThere && fs::is_symlink(fs::symlink_status(place, code)))
    return Status::refusal("output '" + target + "' is a link that leads nowhere; name a folder");
  std::vector<std::string> others;
  bool hasModel = fs::exists(fs::symlink_status(place + "/" + kModel, code));
  for (const fs::directory_entry &item : fs::directory_iterator(place, code))
    if (std::string name = item.path().filename().string(); !isOwn(name, hasModel))
      others.push_back(name);
  if (!others.empty()) {
    std::sort(others.begin(), others.end());
    return Status::refusal(
        "output folder '" + target + "' holds " + quoteSome(others, 4) +
        ": it is replaced whole, so only files of an artifact may be in it; move the others or name "
        "another folder");
  }
  for (const char *name : kAll) {
    std::string file;
    if (!resolveOutput(place + "/" + name, file).isOk())
      return Status::refusal("output folder '" + target + "' holds '" + name +
                             "', which is no regular file; remove it or name another folder");
  }
  if (isThere)
    return access(place.c_str(), W_OK | X_OK) == 0
               ? Status()
               : Status::failure("cannot write to output folder '" + target + "': " + std::strerror(errno));
  // The closest folder that is there must take a new entry.
  fs::path parent = fs::absolute(place, code).parent_path();
  while (!fs::exists(fs::symlink_status(parent, code)) && parent.has_relative_path())
    parent = parent.parent_path();
  if (!fs::is_directory(parent, code))
    return Status::refusal("cannot create output folder '" + target + "': '" + parent.string() +
                           "' is no folder");
  if (access(parent.c_str(), W_OK | X_OK) != 0)
    return Status::failure("cannot create output folder '" + target + "' in '" + parent.string() +
                           "': " + std::strerror(errno));
  return Status();
}

/// Those that are not there yet; they are removed again where there is no commit.
Status OutputFolder::makeFolders() {
  fs::path way;
  for (const fs::path &part : fs::path(place)) {
    way /= part;
    auto folder = std::make_unique<Made>();
    folder->path = way.string();
    SignalsWait signals;
    if (mkdir(folder->path.c_str(), 0777) == 0) {
      folder->guard.remember(folder->path.c_str(), -1);
      made.push_back(std::move(folder));
    } else if (std::error_code code; !fs::is_directory(way, code)) {
      return Status::failure("cannot create output folder '" + target + "': " + std::strerror(errno));
    }
  }
  return Status();
}

static Status writeWhole(AtomicFile &file, std::string_view contents) {
  ORTC_TRY(file.open());
  ORTC_TRY(file.write(contents.data(), contents.size()));
  return file.flush();
}

/// Writes to a file.
class FileSink : public ByteSink {
public:
  explicit FileSink(AtomicFile &file) : file(file) {}
  Status write(std::span<const uint8_t> bytes) override { return file.write(bytes.data(), bytes.size()); }
  Status rewrite(uint64_t offset, std::span<const uint8_t> bytes) override {
    return file.rewrite(offset, bytes.data(), bytes.size());
  }

private:
  AtomicFile &file;
};

Status OutputFolder::write(const std::function<Status(ByteSink &)> &writeModel, std::string_view manifestText,
                           const std::vector<OutputFile> &more) {
  ORTC_TRY(check());
  ORTC_TRY(makeFolders());
  ORTC_TRY(model.open());
  FileSink sink(model);
  ORTC_TRY(writeModel(sink));
  ORTC_TRY(model.flush());
  ORTC_TRY(writeWhole(manifest, manifestText));
  for (const OutputFile &file : more) {
    others.push_back(std::make_unique<AtomicFile>(place + "/" + file.name));
    ORTC_TRY(writeWhole(*others.back(), file.contents));
  }
  return Status();
}

Status OutputFolder::commit() {
  // Two that write to one folder must not mix their files. Where there are no locks they are quick, at least.
  int folder = ::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (flock(folder, LOCK_EX) != 0 && errno == EINTR) {
  }
  Status status = swap();
  ::close(folder);
  return status;
}

/// The old copy goes before the old artifact, so that no manifest is ever beside an artifact that is not its own.
Status OutputFolder::swap() {
  SignalsWait signals;
  // Of what goes, nothing is ever beside another artifact; a link stays one.
  for (const char *name : kLinked)
    if (std::string file = place + "/" + name;
        !fs::is_symlink(file) && unlink(file.c_str()) != 0 && errno != ENOENT)
      return Status::failure(file + ": cannot be replaced: " + std::strerror(errno));
  std::ostringstream old;
  bool wasThere = bool(old << std::ifstream(manifest.getPlace(), std::ios::binary).rdbuf());
  if (unlink(manifest.getPlace().c_str()) != 0 && errno != ENOENT)
    return Status::failure(manifest.getPlace() + ": cannot be replaced: " + std::strerror(errno));
  if (Status status = model.commit(); !status.isOk()) {
    AtomicFile again(manifest.getPlace());
    if (wasThere && again.open().isOk() && again.write(old.str()).isOk())
      (void)again.commit();
    return status;
  }
  made.clear(); // the artifact is there
  for (auto &file : others)
    ORTC_TRY(file->commit());
  return manifest.commit();
}

} // namespace ortc::artifact
