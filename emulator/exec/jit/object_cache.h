#pragma once

#include <optional>
#include <string>
#include <vector>

namespace torpor::emulator {

// Object code on disk, one file a key. Insert writes a temporary file and renames it, so processes
// may share a folder. A damaged entry reads as a missing entry. Failures to write are ignored: the
// cache only saves time. Thread-safe.
class ObjectCache {
 public:
  // An empty `folder` disables the cache.
  explicit ObjectCache(std::string folder) : folder_(std::move(folder)) {}

  // Uses $TORPOR_EMULATOR_CACHE_DIR, by default ~/.cache/torpor/ptx.
  static ObjectCache FromEnvironment();

  std::optional<std::vector<char>> Find(const std::string& key) const;
  void Insert(const std::string& key, const std::vector<char>& object) const;

 private:
  std::string PathOf(const std::string& key) const;

  std::string folder_;
};

}  // namespace torpor::emulator
