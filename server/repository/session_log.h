#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files.h"
#include "server/repository/logged_sessions.h"

namespace torpor::server {

// The file of records by which a torpord's sessions are found again. It outlives the process, not
// the machine: nothing is synced to a disk, and sessions' memory would be gone, too. Not
// thread-safe.
class SessionLog {
 public:
  // Reads the file, if there is one, and begins a new one in its place with what it says. A record
  // that is torn, or damaged, ends the file. Unavailable, with the path, if the file cannot be read
  // or written.
  // `files` must outlive the object.
  static absl::StatusOr<std::unique_ptr<SessionLog>> Open(const std::string& path,
                                                          Files& files = SystemFiles());

  // A record that this returns from outlives the process. After a failure, which is logged, the
  // file is empty, and stays so: no session outlives this torpord.
  void Append(const SessionRecord& record);

  // Of earlier torpords' processes only these live.
  void RetainProcesses(std::vector<GpuProcessRan> living) {
    state_.RetainProcesses(std::move(living));
  }

  // All records so far.
  const LoggedSessions& state() const { return state_; }

 private:
  SessionLog(std::string path, Files& files) : path_(std::move(path)), files_(files) {}

  // Writes what matters of all records into a new file, which takes the old one's place.
  absl::Status Compact();
  absl::Status Write(std::span<const std::uint8_t> bytes);
  void GiveUp(const absl::Status& why);

  const std::string path_;
  Files& files_;
  LoggedSessions state_;
  std::unique_ptr<OpenFile> file_;  // none after a failure
  std::uint64_t bytes_ = 0;
  std::uint64_t compact_at_ = 0;  // size in bytes
};

// Adds up records in the file's format, up to one that is torn or damaged.
LoggedSessions ReadSessionLog(std::span<const std::uint8_t> bytes);
// Returns a record as the file has it.
std::vector<std::uint8_t> LogEntryOf(const SessionRecord& record);

}  // namespace torpor::server
