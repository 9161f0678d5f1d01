#pragma once

#include <atomic>
#include <optional>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "server/executor/gpu/idle_task.h"
#include "server/executor/session/session_registry.h"

namespace torpor::executor {

// Registers the written host memory of all sessions' images with the driver before the first copy,
// which would otherwise wait 0.1 s for each GiB: of images that this executor has had on its GPU,
// and of images written by others. A step registers a piece, and so takes 6 ms.
class PinningAhead final : public IdleTask {
 public:
  // `registry` must outlive the task.
  explicit PinningAhead(SessionRegistry& registry) : registry_(registry) {}

  const char* name() const override { return "pinning host memory"; }
  Duration quiet_time() const override;
  std::optional<Duration> look_again_after() const override;
  absl::StatusOr<bool> Step(CUstream stream, const std::atomic<bool>& is_wanted) override;

 private:
  SessionRegistry& registry_;
  int pieces_ = 0;  // pinned since nothing was left to pin
};

}  // namespace torpor::executor
