#pragma once

#include <chrono>
#include <deque>
#include <functional>

#include "base/clock.h"
#include "server/controller/model/client_session.h"
#include "server/controller/model/task_loop.h"
#include "server/controller/model/telemetry.h"

namespace torpor::server {

// Tells clients that their token is wrong, ten a second in all: who guesses waits, and who hangs up
// has not guessed. A right token never waits. On the controller's thread.
class WrongTokens {
 public:
  static constexpr Duration kPause = std::chrono::milliseconds(100);

  using Refuse = std::function<void(const SessionPtr&)>;

  // The references must outlive the object.
  WrongTokens(TaskLoop& loop, Telemetry& telemetry, Refuse refuse)
      : loop_(loop), telemetry_(telemetry), refuse_(std::move(refuse)) {}

  // The session has shown a wrong token, and is refused in its turn.
  void Add(const SessionPtr& session);

 private:
  // Refuses the first whose client still waits, and the others after pauses.
  void RefuseNext();

  TaskLoop& loop_;
  Telemetry& telemetry_;
  const Refuse refuse_;
  std::deque<SessionPtr> waiting_;
  bool is_pausing_ = false;
};

}  // namespace torpor::server
