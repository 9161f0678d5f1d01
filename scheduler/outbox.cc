#include "scheduler/outbox.h"

#include <algorithm>

namespace torpor::scheduler {

void Outbox::Begin(TimePoint now) {
  now_ = std::max(now_, now);
  if (wake_up_ && *wake_up_ <= now_) wake_up_.reset();
  actions_.clear();
}

void Outbox::WakeAt(TimePoint when) {
  if (wake_up_ && *wake_up_ <= when) return;
  wake_up_ = when;
  Add(WakeUp{when});
}

}  // namespace torpor::scheduler
