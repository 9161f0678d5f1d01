#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "emulator/node/disk_faults.h"

namespace torpor::server {

// Files on a disk that fails as planned. Operations are counted from the construction on, each by
// all entries of the plan. Every fault is a line of the log. Thread-safe.
class FaultyFiles final : public Files {
 public:
  // `files` outlives the object, and the object outlives all open files.
  FaultyFiles(Files& files, std::vector<emulator::DiskFault> plan);

  absl::StatusOr<std::unique_ptr<OpenFile>> Create(const std::string& path, unsigned mode,
                                                   Caching caching) override;
  // Opening is not counted, but reading.
  absl::StatusOr<std::unique_ptr<InputFile>> Open(const std::string& path,
                                                  Caching caching) override;
  absl::StatusOr<std::vector<std::uint8_t>> Read(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncFolder(const std::string& path) override;

 private:
  class Output;
  class Input;

  // Counts an operation. Returns what it meets: by the first entry, if several have something.
  std::optional<emulator::DiskError> Count(emulator::DiskOperation operation,
                                           const std::string& path);
  // Counts an operation that is done as a whole or not at all. An error: it fails.
  absl::Status Begin(emulator::DiskOperation operation, const std::string& path);

  Files& files_;
  const std::vector<emulator::DiskFault> plan_;
  std::vector<std::atomic<std::uint64_t>> counts_;  // by entry
};

}  // namespace torpor::server
