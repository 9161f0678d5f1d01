#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace torpor::torporctl {

// A private folder (mode 0700) under $TMPDIR or /tmp. The destructor removes the folder; Create()
// removes folders left behind by killed processes of the same user.
class PrivateFolder {
 public:
  // Returns an error with the path if the folder cannot be made.
  static absl::StatusOr<PrivateFolder> Create();
  PrivateFolder(PrivateFolder&&) = default;
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  const std::string& path() const { return path_; }

 private:
  PrivateFolder(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;  // empty after a move
  UniqueFd lock_;     // held while the folder is in use
};

}  // namespace torpor::torporctl
