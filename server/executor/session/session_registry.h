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
  // NotFound if there is none. The session is the caller's alone once its stream has ended.
  absl::StatusOr<std::unique_ptr<Session>> Remove(SessionId id);

  // For torpord's operations, of which one a session runs at a time: the pointer stays good until
  // the operation that removes the session. NotFound if there is none.
  absl::StatusOr<Session*> Find(SessionId id);

  // All, each as good as from Find.
  std::vector<Session*> All();

  // For the stream of `attach`; good until the caller detaches. See Session::Attach.
  absl::StatusOr<Session*> Attach(const wire::Attach& attach, std::function<void()> cancel);

  // Whether one is active.
  bool any_active();

  // Whose work may have cost the context: `suspect` if it has a lease, else any session that has
  // one, else `suspect`. The client of that session learns of `cuda_error`.
  SessionId Blame(SessionId suspect, std::uint32_t cuda_error);

 private:
  Mutex mutex_;
  std::map<SessionId, std::unique_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor
