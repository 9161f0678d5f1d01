#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files.h"
#include "base/sha256.h"

namespace torpor::executor {

// The node's modules by content: one file for each module, named by the SHA-256 of the content in
// hexadecimal; and an empty file for each tenant that has shown the content, which may know the
// hash alone. Processes may share the directory. Thread-safe.
class ModuleStore {
 public:
  // `files` must outlive the object.
  explicit ModuleStore(std::string directory, Files& files = SystemFiles())
      : directory_(std::move(directory)), files_(files) {}

  // NotFound if the node lacks the module, or has a broken copy, which is then removed.
  absl::StatusOr<std::vector<std::uint8_t>> Read(const Sha256Digest& digest) const;
  // Whether the tenant has shown the module's content. Unavailable if that cannot be read.
  absl::StatusOr<bool> IsHeldBy(const Sha256Digest& digest, const std::string& tenant) const;
  // The tenant has shown the content. Unavailable if that cannot be written.
  absl::Status NoteHolder(const Sha256Digest& digest, const std::string& tenant) const;
  // InvalidArgument if the bytes have another digest, Unavailable if they cannot be stored.
  absl::Status Write(const Sha256Digest& digest, std::span<const std::uint8_t> bytes) const;

 private:
  std::string PathOf(const Sha256Digest& digest) const;
  std::string HolderPathOf(const Sha256Digest& digest, const std::string& tenant) const;

  const std::string directory_;
  Files& files_;
};

// Assembles a module that a client uploads in consecutive pieces. Not thread-safe.
class ModuleUploadBuffer {
 public:
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{2} << 30;

  // Adds a piece; returns true once bytes() is the whole module. InvalidArgument if the piece does
  // not continue the earlier pieces; a piece at 0 starts anew.
  absl::StatusOr<bool> Add(const Sha256Digest& digest, std::uint64_t total_bytes, std::uint64_t at,
                           std::span<const std::uint8_t> piece);
  std::span<const std::uint8_t> bytes() const { return bytes_; }
  void Clear() { *this = {}; }

 private:
  Sha256Digest digest_{};
  std::uint64_t total_bytes_ = 0;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace torpor::executor
