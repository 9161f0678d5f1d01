#pragma once

#include <cuda.h>

#include <vector>

#include "absl/status/statusor.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// Events without times, for marks in streams: creating an event takes longer than recording one.
// Not thread-safe; call with the device current.
class EventPool {
 public:
  // `device` must outlive this.
  explicit EventPool(const Device& device) : device_(device) {}
  // Discards the events that are here.
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  // Returns an event, which is the caller's until Return.
  absl::StatusOr<CUevent> Take();
  void Return(CUevent event) { unused_.push_back(event); }

 private:
  const Device& device_;
  std::vector<CUevent> unused_;
};

}  // namespace torpor::executor
