#include "server/node/host_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace torpor::server {
namespace {

constexpr std::size_t kMaxDepth = 64;  // of cgroups within each other

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Takes what is before the next `separator`, or all, off the text.
std::string_view TakeField(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return field;
}

bool HasWord(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    if (TakeField(list, ',') == word) return true;
  }
  return false;
}

std::optional<Bytes> ParseNumber(std::string_view text) {
  Bytes number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

// Adds `file` of the cgroup `path` and of its parents, up to the root of the hierarchy at `mount`.
void AddUpwards(std::string_view mount, std::string_view path, std::string_view file,
                std::vector<std::string>& files) {
  for (std::size_t depth = 0; depth < kMaxDepth; ++depth) {
    while (path.ends_with('/')) path.remove_suffix(1);
    files.push_back(std::string(mount) + std::string(path) + std::string(file));
    if (path.empty()) return;
    path = path.substr(0, path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/'));
  }
}

}  // namespace

std::vector<std::string> CgroupLimitFiles(std::string_view cgroups) {
  std::vector<std::string> files;
  while (!cgroups.empty()) {
    // Number, controllers, path; version 2 has the number 0 and no controllers.
    std::string_view path = TakeField(cgroups, '\n');
    const std::string_view number = TakeField(path, ':');
    const std::string_view controllers = TakeField(path, ':');
    if (!path.starts_with('/')) continue;
    // A process outside of its cgroup namespace's root sees parents that it cannot look into.
    if (path.find("..") != std::string_view::npos) path = "";
    if (HasWord(controllers, "memory")) {
      AddUpwards("/sys/fs/cgroup/memory", path, "/memory.limit_in_bytes", files);
    } else if (number == "0" && controllers.empty()) {
      AddUpwards("/sys/fs/cgroup", path, "/memory.max", files);
      AddUpwards("/sys/fs/cgroup/unified", path, "/memory.max", files);
    }
  }
  return files;
}

std::optional<Bytes> ParseCgroupLimit(std::string_view text) {
  return ParseNumber(text);  // "max" is no number
}

std::optional<Bytes> ParseTotalMemory(std::string_view meminfo) {
  constexpr std::string_view kKey = "MemTotal:";
  while (!meminfo.empty()) {
    std::string_view line = TakeField(meminfo, '\n');
    if (!line.starts_with(kKey)) continue;
    line.remove_prefix(kKey.size());
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::optional<Bytes> kibibytes = ParseNumber(line);
    if (!kibibytes || *kibibytes > ~Bytes{0} / kKiB) return std::nullopt;
    return *kibibytes * kKiB;
  }
  return std::nullopt;
}

std::optional<Bytes> AvailableHostMemory(const std::string& root) {
  std::optional<Bytes> available = ParseTotalMemory(ReadText(root + "/proc/meminfo"));
  for (const std::string& file : CgroupLimitFiles(ReadText(root + "/proc/self/cgroup"))) {
    const std::optional<Bytes> limit = ParseCgroupLimit(ReadText(root + file));
    if (limit) available = std::min(*limit, available.value_or(*limit));
  }
  return available;
}

}  // namespace torpor::server
