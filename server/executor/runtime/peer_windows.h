#pragma once

#include <memory>
#include <set>

#include "base/ids.h"
#include "server/executor/session_memory/session_memory.h"

namespace torpor::executor {

// Windows of the function's sessions that work in hand waits for or writes to, kept mapped until
// that work is done. Not thread-safe; call on the thread that executes the session's calls.
class PeerWindows {
 public:
  // `memory` must outlive this.
  explicit PeerWindows(const SessionMemory& memory) : memory_(memory) {}

  // Returns the window of a session of the same function, kept until Forget; null if there is no
  // such session.
  SessionWindow* Use(SessionId session) {
    const std::shared_ptr<SessionWindow> window = memory_.WindowOf(session);
    if (window) in_use_.insert(window);
    return window.get();
  }

  // Lets go of all windows; all of the session's work is done.
  void Forget() { in_use_.clear(); }

 private:
  const SessionMemory& memory_;
  std::set<std::shared_ptr<SessionWindow>> in_use_;
};

}  // namespace torpor::executor
