// The last checkpoints of a training, beside the newest one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/checkpoints/kept_checkpoints.h"

#include <charconv>
#include <filesystem>
#include <map>

namespace ortc::engine {

namespace fs = std::filesystem;

static constexpr const char *kMark = ".step-";

std::string nameKept(const std::string &path, int64_t step) {
  fs::path file(path);
  std::string name = file.stem().string() + kMark + std::to_string(step) + file.extension().string();
  return (file.parent_path() / name).string();
}

/// The step of a name that nameKept() has made of `path`; -1 for others.
static int64_t readStep(const std::string &path, const std::string &name) {
  std::string front = fs::path(path).stem().string() + kMark, back = fs::path(path).extension().string();
  if (name.size() <= front.size() + back.size() || !name.starts_with(front) || !name.ends_with(back))
    return -1;
  const char *begin = name.data() + front.size(), *end = name.data() + name.size() - back.size();
  int64_t step = -1;
  auto [rest, error] = std::from_chars(begin, end, step);
  return error == std::errc() && rest == end && std::to_string(step) == std::string(begin, end) ? step : -1;
}

/// Whether `file` has a name that nameKept() may make of `path`.
static bool isKeptName(const std::string &path, const std::string &file) {
  auto folderOf = [](const std::string &of) { return fs::absolute(of).lexically_normal().parent_path(); };
  return readStep(path, fs::path(file).filename().string()) >= 0 && folderOf(path) == folderOf(file);
}

Status checkKeptNames(const std::string &path, const std::vector<NamedFile> &files) {
  for (const NamedFile &file : files)
    if (isKeptName(path, file.path))
      return Status::refusal(file.flag + " " + file.path +
                             ": --keep gives such names to checkpoints, and removes them; " +
                             "rename the file, or give --save another name");
  return Status();
}

Status keepCheckpoint(const std::string &path, int64_t step, int64_t most, const std::string &spared) {
  std::error_code error;
  const std::string name = nameKept(path, step), making = name + ".new";
  fs::remove(making, error);
  fs::create_hard_link(fs::canonical(path, error), making, error);
  if (error)
    fs::copy_file(path, making, error);
  if (!error)
    fs::rename(making, name, error);
  if (error) {
    std::error_code ignored;
    fs::remove(making, ignored);
    return Status::failure(name + ": cannot be written: " + error.message());
  }
  std::map<int64_t, fs::path> kept; // by step
  fs::path folder = fs::path(path).parent_path();
  for (const fs::directory_entry &entry : fs::directory_iterator(folder.empty() ? "." : folder, error))
    if (int64_t of = readStep(path, entry.path().filename().string()); of >= 0 && of <= step)
      kept[of] = entry.path();
  for (auto oldest = kept.begin(); int64_t(kept.size()) > most && oldest != kept.end();) {
    bool isSpared = !spared.empty() && fs::equivalent(oldest->second, spared, error);
    if (!isSpared)
      fs::remove(oldest->second, error);
    oldest = kept.erase(oldest);
  }
  return Status();
}

} // namespace ortc::engine
