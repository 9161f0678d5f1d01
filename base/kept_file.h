#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files.h"

namespace torpor {

// A new version of a file, written beside it: on the disk, but not in the file's place before
// Commit. Removed if never committed. A crash, of the machine too, leaves the file as it was before
// or after Commit. Errors are Unavailable, and name the path and the reason.
class KeptFile {
 public:
  struct Options {
    unsigned mode = 0640;
    // Of the new version's name until Commit. Writers at the same time need different ones.
    std::string suffix = ".new";
  };
  // `files` must outlive the object. The file's folder must exist.
  static absl::StatusOr<KeptFile> Write(Files& files, const std::string& path,
                                        std::span<const std::uint8_t> bytes,
                                        const Options& options);

  KeptFile(KeptFile&& other) noexcept
      : files_(other.files_),
        path_(std::exchange(other.path_, {})),
        temporary_(std::move(other.temporary_)) {}
  KeptFile& operator=(KeptFile&&) = delete;
  ~KeptFile();

  // After an error the file is as before, or is new and may be undone by the machine's death.
  absl::Status Commit();

 private:
  KeptFile(Files& files, std::string path, std::string temporary)
      : files_(&files), path_(std::move(path)), temporary_(std::move(temporary)) {}

  Files* files_;
  std::string path_;  // empty once committed or moved from
  std::string temporary_;
};

// Writes and commits.
absl::Status ReplaceFile(Files& files, const std::string& path, std::span<const std::uint8_t> bytes,
                         const KeptFile::Options& options);

}  // namespace torpor
