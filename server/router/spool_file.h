#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/unique_fd.h"

namespace torpor::server {

// A part of a request's body on the disk: a file without a name (mode 0600), gone with this object
// or with the process. Errors are Unavailable and tell the system's reason. Every call may block;
// one call at a time.
class SpoolFile {
 public:
  // The first Write creates the file, and the folder (mode 0700) if absent. Empty: the system's
  // folder of temporary files.
  explicit SpoolFile(std::string folder) : folder_(std::move(folder)) {}

  // Writes all bytes at `offset`. After an error a part may be there.
  absl::Status Write(std::uint64_t offset, std::string_view bytes);
  // Fills `into`, whole, with the bytes from `offset` on.
  absl::Status Read(std::uint64_t offset, std::string& into) const;

 private:
  absl::Status Open();

  const std::string folder_;
  UniqueFd file_;
};

}  // namespace torpor::server
