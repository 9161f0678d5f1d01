#include <tuple>

#include "scheduler/keyed_queue.h"

namespace torpor::scheduler {
namespace {

struct DeadlineKey {
  // Late, deadline.
  std::tuple<bool, TimePoint, Turn> operator()(const Instance& instance,
                                               const NodeState& node) const {
    const Request& first = node.FirstOf(instance);
    return {first.turn.is_late, first.deadline, first.turn};
  }
};

}  // namespace

std::unique_ptr<QueuePolicy> MakeDeadlineQueue() {
  return std::make_unique<KeyedQueue<DeadlineKey>>(DeadlineKey());
}

}  // namespace torpor::scheduler
