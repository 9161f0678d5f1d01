#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "server/processes/instance_command.h"
#include "server/supervisor/process_record.h"

namespace torpor::server {

// What a torpord leaves to the next one about a process, in a file.
struct InstanceRecord {
  ProcessIdentity process;
  std::string fingerprint;  // of the command

  bool operator==(const InstanceRecord&) const = default;
};

// Replaces the file in one step.
absl::Status WriteInstanceRecord(const std::string& path, const InstanceRecord& record);
// Returns nullopt if there is no record, or one that cannot be read.
std::optional<InstanceRecord> ReadInstanceRecord(const std::string& path);

// A function's process, which outlives the daemon that has started it. It leads a session and a
// process group of its own, in the folder /, with an empty standard input, this process's standard
// error as output and no further descriptor. Not thread-safe.
class InstanceProcess {
 public:
  // The program runs only once the record is written, so that no daemon's death can leave a process
  // behind that the next one does not know. The error tells what the process could not do.
  static absl::StatusOr<std::unique_ptr<InstanceProcess>> Start(const InstanceCommand& command,
                                                                const std::string& record_path);
  // Returns nullptr if the process has ended.
  static std::unique_ptr<InstanceProcess> Adopt(const ProcessIdentity& process);

  ~InstanceProcess() = default;  // leaves the process alone

  pid_t pid() const { return identity_.pid; }
  // Becomes readable when the process ends.
  int descriptor() const { return pidfd_.get(); }
  // Sends the signal to the process and its group.
  void Signal(int number) const;
  // Whether the process has ended; `why` then describes the end for logs. What is left of the group
  // is killed: a successor may need its ports.
  bool HasEnded(std::string& why);

 private:
  InstanceProcess(const ProcessIdentity& identity, UniqueFd pidfd, bool is_child)
      : identity_(identity), pidfd_(std::move(pidfd)), is_child_(is_child) {}

  const ProcessIdentity identity_;
  const UniqueFd pidfd_;
  const bool is_child_;
};

}  // namespace torpor::server
