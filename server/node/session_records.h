#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "server/daemon/kept_sessions.h"
#include "server/repository/session_log.h"

namespace torpor::server {

// By what sessions outlive torpord: the log of what they are, and the service manager that keeps
// their memory files. Not thread-safe.
class SessionRecords {
 public:
  // Reads what an earlier torpord has left in `run_dir`, and ends executors that it has left.
  // `kept`: what DescriptorStore::TakeKept has returned. Unavailable if the log cannot be read or
  // written, or an executor does not end: it may still write into sessions' files.
  static absl::StatusOr<std::unique_ptr<SessionRecords>> Open(const std::string& run_dir,
                                                              std::map<std::string, UniqueFd> kept);

  // Null without a service manager that keeps descriptors.
  SessionLog* log() { return log_.get(); }
  SessionKeeper* keeper() { return log_ ? &keeper_ : nullptr; }

  // The sessions are restored: lets go of files that none of them has.
  void Settle() { keeper_.RemoveUntaken(); }

 private:
  explicit SessionRecords(std::map<std::string, UniqueFd> kept) : keeper_(std::move(kept)) {}

  KeptSessions keeper_;
  std::unique_ptr<SessionLog> log_;
};

}  // namespace torpor::server
