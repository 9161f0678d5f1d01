#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace torpor::server {

// A process, told apart from later ones that get the same process id.
struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // since the machine's start, as in /proc/PID/stat

  bool operator==(const ProcessIdentity&) const = default;
};

// Returns nullopt if no such process is there.
std::optional<ProcessIdentity> IdentityOf(pid_t pid);

// Returns a descriptor, readable once the process ends; none if the process has ended.
UniqueFd OpenProcess(const ProcessIdentity& process);

// Kills the process and waits for its end, at most for `patience`. Returns whether it has ended;
// true if no such process was there.
bool KillAndAwait(const ProcessIdentity& process, Duration patience);

// What a process leaves to its successor, in a file, about a process that outlives both.
struct ProcessRecord {
  ProcessIdentity process;
  std::string command{};  // a fingerprint of what was started, without blanks; may be empty

  bool operator==(const ProcessRecord&) const = default;
};

// Replaces the file in one step. The folder must exist.
absl::Status WriteProcessRecord(const std::string& path, const ProcessRecord& record);
// Returns nullopt if there is no record, or one that cannot be read.
std::optional<ProcessRecord> ReadProcessRecord(const std::string& path);

}  // namespace torpor::server
