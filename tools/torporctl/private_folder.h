#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace torpor::torporctl {

// A folder of our own (0700) under $TMPDIR or /tmp, removed with this object. Those that killed
// processes of this user left behind are removed when the next one is made.
class PrivateFolder {
 public:
  static absl::StatusOr<PrivateFolder> Create();
  PrivateFolder(PrivateFolder&&) = default;
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  const std::string& path() const { return path_; }

 private:
  PrivateFolder(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;  // moved from: empty
  UniqueFd lock_;     // held while the folder is in use
};

}  // namespace torpor::torporctl
