#include <tuple>

#include "scheduler/keyed_queue.h"
#include "scheduler/required_count.h"

namespace torpor::scheduler {
namespace {

struct LatestStartKey {
  LatestStartOptions options;

  bool IsBeyondRescue(const FunctionState& function) const {
    return RequiredCount(function) > options.rescue_limit;
  }

  // Late, beyond rescue, latest start.
  std::tuple<bool, bool, TimePoint, Turn> operator()(const Instance& instance,
                                                     const NodeState& node) const {
    const Request& first = node.FirstOf(instance);
    const bool is_beyond_rescue = IsBeyondRescue(node.FunctionOf(instance));
    const bool has_deadline = first.deadline != TimePoint::max();
    const TimePoint latest_start =
        has_deadline ? first.deadline - node.ExpectedRun(instance) : first.deadline;
    return {first.turn.is_late, is_beyond_rescue, latest_start, first.turn};
  }
};

}  // namespace

std::unique_ptr<QueuePolicy> MakeLatestStartQueue(LatestStartOptions options) {
  return std::make_unique<KeyedQueue<LatestStartKey>>(LatestStartKey{options});
}

}  // namespace torpor::scheduler
