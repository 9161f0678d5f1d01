#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "server/daemon/kept_sessions.h"
#include "server/repository/session_log.h"
#include "server/supervisor/gpu_processes.h"
#include "server/supervisor/process_record.h"

namespace torpor::server {

// Kills a GPU's process of an earlier torpord and waits for its end. Unavailable if it does not
// end.
absl::Status EndGpuProcess(const ProcessIdentity& process);

// Lets sessions outlive torpord: the log of all sessions, and the service manager that keeps their
// memory files. Not thread-safe.
class SessionRecords {
 public:
  // Reads what an earlier torpord has left in `run_dir`. `kept`: what DescriptorStore::TakeKept has
  // returned. `disk`: of the log; outlives the object. Unavailable if the log cannot be read or
  // written.
  static absl::StatusOr<std::unique_ptr<SessionRecords>> Open(const std::string& run_dir,
                                                              std::map<std::string, UniqueFd> kept,
                                                              Files& disk = SystemFiles());

  // Null without a service manager that keeps descriptors.
  SessionLog* log() { return log_.get(); }
  SessionKeeper* keeper() { return log_ ? &keeper_ : nullptr; }

  // Whether a GPU's process of an earlier torpord lives.
  bool HasGpuProcesses() const { return !Living().empty(); }
  // Returns GPUs' processes of earlier torpords to go on with, and ends all others. `kind` says
  // with what processes of this torpord are started: one that was started otherwise is of no use.
  // Unavailable if a process does not end: it may still write into sessions' files.
  absl::StatusOr<std::map<GpuIndex, GpuProcesses>> TakeGpuProcesses(
      const std::vector<GpuIndex>& gpus, const std::string& kind);

  // The sessions are restored: lets go of files that none of them has.
  void Settle() { keeper_.RemoveUntaken(); }

 private:
  explicit SessionRecords(std::map<std::string, UniqueFd> kept) : keeper_(std::move(kept)) {}

  // In the order in which they have registered.
  std::vector<GpuProcessRan> Living() const;

  KeptSessions keeper_;
  std::unique_ptr<SessionLog> log_;
};

}  // namespace torpor::server
