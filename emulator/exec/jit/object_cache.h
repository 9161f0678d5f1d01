#pragma once

#include <optional>
#include <string>
#include <vector>

namespace torpor::emulator {

// Object code on disk, one file a key. Entries are written to a temporary file and renamed, so
// processes may share a folder; a damaged entry reads as none. Failures to write are ignored: the
// cache only saves time.
class ObjectCache {
 public:
  // "" keeps nothing.
  explicit ObjectCache(std::string folder) : folder_(std::move(folder)) {}

  // $TORPOR_EMULATOR_CACHE_DIR, else ~/.cache/torpor/ptx.
  static ObjectCache FromEnvironment();

  std::optional<std::vector<char>> Find(const std::string& key) const;
  void Insert(const std::string& key, const std::vector<char>& object) const;

 private:
  std::string PathOf(const std::string& key) const;

  std::string folder_;
};

}  // namespace torpor::emulator
