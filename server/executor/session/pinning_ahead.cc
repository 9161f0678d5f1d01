#include "server/executor/session/pinning_ahead.h"

#include <spdlog/spdlog.h>

#include <chrono>

#include "base/status_macros.h"

namespace torpor::executor {

// Short, since an image that is not pinned yet costs a request more than a piece; and longer than
// the pauses between requests of a busy GPU.
Duration PinningAhead::quiet_time() const { return std::chrono::milliseconds(20); }

// Other executors write to images without a word to this one. An image without change costs a
// system call.
std::optional<Duration> PinningAhead::look_again_after() const { return std::chrono::seconds(1); }

absl::StatusOr<bool> PinningAhead::Step(CUstream, const std::atomic<bool>& is_wanted) {
  for (Session* const session : registry_.All()) {
    if (is_wanted.load(std::memory_order_relaxed)) return true;
    TORPOR_ASSIGN_OR_RETURN(const bool has_pinned, session->PinNext());
    if (!has_pinned) continue;
    ++pieces_;
    return true;
  }
  if (pieces_ > 0) spdlog::debug("pinned {} pieces of images ahead of need", pieces_);
  pieces_ = 0;
  return false;
}

}  // namespace torpor::executor
