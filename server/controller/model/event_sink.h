#pragma once

#include "scheduler/events.h"

namespace torpor::server {

// Accepts events for the scheduler. Carries out the resulting actions inside of the call, unless an
// action is being carried out already: then they follow it.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void Feed(const scheduler::Event& event) = 0;
};

}  // namespace torpor::server
