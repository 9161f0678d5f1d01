#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "memory/extent_set.h"

namespace torpor::server {

// A sealed, sparse memory file that processes share. Unwritten bytes cost nothing and read as zero.
// Errors say what failed. Thread-safe.
class MemoryFile {
 public:
  MemoryFile() = default;  // no file
  // `name`: shown by the system in lists of mappings; must outlive the file. Fails if the system
  // refuses memory or descriptors.
  static absl::StatusOr<MemoryFile> Create(const char* name, Bytes bytes);
  // Takes over a file that an earlier process has created. InvalidArgument unless `descriptor` is a
  // sealed file of this size.
  static absl::StatusOr<MemoryFile> Adopt(const char* name, Bytes bytes, UniqueFd descriptor);

  int descriptor() const { return descriptor_.get(); }
  // Size of the file, of which most may be unwritten.
  Bytes size() const { return bytes_; }
  // Host memory that the file really occupies.
  Bytes resident_bytes() const;

  // Read and write bytes, whoever has the file mapped.
  absl::Status Read(Bytes offset, std::span<std::uint8_t> into) const;
  absl::Status Write(Bytes offset, std::span<const std::uint8_t> bytes) const;
  // Writes zeros over the extent and keeps its pages.
  absl::Status Clear(memory::Extent extent) const;
  // Gives the extent's pages back to the system: it reads as zero from now on. Takes about 0.1 s
  // per gigabyte in use.
  absl::Status GiveBack(memory::Extent extent) const;
  // Returns the extents that have pages.
  absl::StatusOr<memory::ExtentSet> Written() const;

 private:
  MemoryFile(const char* name, Bytes bytes, UniqueFd descriptor)
      : name_(name), bytes_(bytes), descriptor_(std::move(descriptor)) {}

  const char* name_ = "";
  Bytes bytes_ = 0;
  UniqueFd descriptor_;
};

}  // namespace torpor::server
