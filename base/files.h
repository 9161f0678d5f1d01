#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace torpor {

// A file that is being written. Closed on destruction, without an error. Not thread-safe.
class OpenFile {
 public:
  virtual ~OpenFile() = default;

  // Writes all bytes at `offset`. After an error a part of the bytes may be there.
  virtual absl::Status Write(std::uint64_t offset, std::span<const std::uint8_t> bytes) = 0;
  // Returns once the contents survive the machine's death. After an error they may be lost, even if
  // a later Sync succeeds.
  virtual absl::Status Sync() = 0;
};

// A file that is read in parts. Closed on destruction. Thread-safe.
class InputFile {
 public:
  virtual ~InputFile() = default;

  // Fills `into` with the bytes from `offset` on. Unavailable also if the file ends before.
  virtual absl::Status Read(std::uint64_t offset, std::span<std::uint8_t> into) const = 0;
};

// kDirect: past the page cache, where the file system can. Offsets, sizes and addresses of memory
// are then multiples of kDirectBytes.
enum class Caching { kPageCache, kDirect };
inline constexpr std::uint64_t kDirectBytes = 4096;

// The operations by which state is kept in files: the system's, or a test's with faults. All block.
// Errors are Unavailable but for Read's and Open's NotFound, and name the path and the reason.
// Thread-safe.
class Files {
 public:
  virtual ~Files() = default;

  // Creates an empty file, or empties the file of that name. `mode`: permissions.
  virtual absl::StatusOr<std::unique_ptr<OpenFile>> Create(const std::string& path, unsigned mode,
                                                           Caching caching) = 0;
  // NotFound if there is no such file.
  virtual absl::StatusOr<std::unique_ptr<InputFile>> Open(const std::string& path,
                                                          Caching caching) = 0;
  // The whole contents. NotFound if there is no such file.
  virtual absl::StatusOr<std::vector<std::uint8_t>> Read(const std::string& path) = 0;
  // Replaces `to`, in the same folder. Survives the machine's death after SyncFolder.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // OK if there is no such file.
  virtual absl::Status Remove(const std::string& path) = 0;
  // Returns once names created, replaced and removed in the folder survive the machine's death.
  virtual absl::Status SyncFolder(const std::string& path) = 0;
};

// The system's files.
Files& SystemFiles();

inline std::span<const std::uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace torpor
