#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"

namespace torpor::server {

// Waits for several asynchronous operations: calls `then` once, with the first failure, when Done
// was called for every Add and once more by the creator, who so may add while operations end.
// Copies are handles to the same join. Not thread-safe.
class Join {
 public:
  using Then = std::function<void(absl::Status)>;

  explicit Join(Then then) : state_(std::make_shared<State>()) { state_->then = std::move(then); }

  void Add(std::size_t operations = 1) { state_->open += operations; }

  // `then` runs inside of the last call.
  void Done(const absl::Status& status = absl::OkStatus()) const {
    state_->status.Update(status);
    if (--state_->open == 0) state_->then(state_->status);
  }

 private:
  struct State {
    Then then;
    std::size_t open = 1;
    absl::Status status;
  };

  std::shared_ptr<State> state_;
};

}  // namespace torpor::server
