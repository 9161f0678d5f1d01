#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "server/executor/session/session.h"

namespace torpor::executor {

// The sessions that torpord has opened on this executor. Thread-safe.
class SessionRegistry {
 public:
  // AlreadyExists if the id is taken.
  absl::Status Add(std::unique_ptr<Session> session);
  // Hands the session to the caller, exclusively once the session's stream has ended. NotFound if
  // the id is unknown.
  absl::StatusOr<std::unique_ptr<Session>> Remove(SessionId id);

  // For torpord's operations, of which a session runs one at a time: the pointer is valid until the
  // operation that removes the session. NotFound if the id is unknown.
  absl::StatusOr<Session*> Find(SessionId id);

  // Returns all sessions; the pointers are as valid as those of Find.
  std::vector<Session*> All();

  // Attaches the stream of `attach`; the pointer is valid until the caller detaches. See
  // Session::Attach for errors.
  absl::StatusOr<Session*> Attach(const wire::Attach& attach, std::function<void()> cancel);

  // Whether any session is active.
  bool any_active();

  // Returns the session whose work may have lost the context: `suspect` if `suspect` has a lease,
  // else any session with a lease, else `suspect`. Reports `cuda_error` to the client of the
  // returned session, but for errors of the hardware: torpord does that, if the work is not
  // repeated.
  SessionId Blame(SessionId suspect, std::uint32_t cuda_error);

 private:
  Mutex mutex_;
  std::map<SessionId, std::unique_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor
