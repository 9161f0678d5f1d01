#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace torpor::server {

// A new version of a file, written beside it: on the disk, but not in the file's place before
// Commit. Removed if never committed. A crash leaves the file as it was before or after Commit.
class KeptFile {
 public:
  // Unavailable, with the path, if the text cannot be written.
  static absl::StatusOr<KeptFile> Write(const std::string& path, const std::string& text);

  KeptFile(KeptFile&& other) noexcept;
  KeptFile& operator=(KeptFile&&) = delete;
  ~KeptFile();

  absl::Status Commit();

 private:
  explicit KeptFile(std::string path) : path_(std::move(path)) {}
  std::string temporary() const { return path_ + ".new"; }

  std::string path_;  // empty once committed or moved from
};

}  // namespace torpor::server
