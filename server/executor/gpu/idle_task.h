#pragma once

#include <atomic>
#include <optional>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "server/executor/gpu/cuda_driver.h"

namespace torpor::executor {

// Work that an executor puts off until idle: until there is no operation, lease or swap-in. Done in
// steps, on any worker. Neither an operation nor another task's step runs beside a step.
class IdleTask {
 public:
  virtual ~IdleTask() = default;

  // What the task does, for the log, as in "moving memory".
  virtual const char* name() const = 0;
  // How long the executor must have been idle before a step.
  virtual Duration quiet_time() const = 0;
  // How long after a step without more to gain the task is asked again, where other processes may
  // give it work; nullopt: not before torpord's next operation.
  virtual std::optional<Duration> look_again_after() const { return std::nullopt; }

  // Takes a step of a few milliseconds at most, for an operation that arrives meanwhile waits; ends
  // earlier, where possible, once `is_wanted`. Returns whether there is more to gain. `stream`
  // belongs to the calling thread, with the device current. An error that costs the context ends
  // the executor; any other is logged, and counts as nothing to gain.
  virtual absl::StatusOr<bool> Step(CUstream stream, const std::atomic<bool>& is_wanted) = 0;
};

}  // namespace torpor::executor
