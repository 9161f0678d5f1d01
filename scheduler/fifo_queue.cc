#include <algorithm>

#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

class FifoQueue final : public QueuePolicy {
 public:
  std::vector<RequestId> Order(const NodeState& node, TimePoint) override {
    std::vector<const Request*> requests;
    requests.reserve(node.waiting.size());
    for (const auto& [id, request] : node.waiting) requests.push_back(&request);
    std::sort(requests.begin(), requests.end(),
              [](const Request* a, const Request* b) { return a->sequence < b->sequence; });
    std::vector<RequestId> order;
    order.reserve(requests.size());
    for (const Request* request : requests) order.push_back(request->request);
    return order;
  }
};

}  // namespace

std::unique_ptr<QueuePolicy> MakeFifoQueue() { return std::make_unique<FifoQueue>(); }

}  // namespace torpor::scheduler
