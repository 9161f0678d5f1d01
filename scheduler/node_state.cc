#include "scheduler/node_state.h"

#include <cmath>

namespace torpor::scheduler {

void Image::NoteUse(TimePoint now) {
  last_used = now;
  // log(e^old + e^now) without an overflow.
  const double added = ToSeconds(now.time_since_epoch()) / ToSeconds(kUseDecay);
  const double larger = std::max(log_use, added);
  log_use = larger + std::log(std::exp(log_use - larger) + std::exp(added - larger));
}

Bytes NodeState::LargestCapacity() const {
  Bytes largest = 0;
  for (const auto& [id, gpu] : gpus) largest = std::max(largest, gpu.capacity);
  return largest;
}

bool NodeState::IsTooLarge(const Instance& lead) const {
  const Bytes largest = LargestCapacity();
  bool is_too_large = false;
  ForEachShard(lead, [&](const Instance& shard) {
    is_too_large = is_too_large || shard.image.bytes > largest;
  });
  return largest > 0 && is_too_large;
}

}  // namespace torpor::scheduler
