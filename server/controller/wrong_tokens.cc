#include "server/controller/wrong_tokens.h"

#include <utility>

namespace torpor::server {

void WrongTokens::Add(const SessionPtr& session) {
  session->state = ClientSession::State::kRefused;
  telemetry_.OnWrongToken();
  waiting_.push_back(session);
  if (!is_pausing_) RefuseNext();
}

void WrongTokens::RefuseNext() {
  while (!waiting_.empty()) {
    const SessionPtr session = std::move(waiting_.front());
    waiting_.pop_front();
    if (session->state != ClientSession::State::kRefused) continue;
    is_pausing_ = true;
    loop_.RunAt(loop_.Now() + kPause, [this] {
      is_pausing_ = false;
      RefuseNext();
    });
    return refuse_(session);
  }
}

}  // namespace torpor::server
