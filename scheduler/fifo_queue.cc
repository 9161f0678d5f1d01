#include "scheduler/policies.h"
#include "scheduler/turn_queue.h"

namespace torpor::scheduler {
namespace {

class FifoQueue final : public QueuePolicy {
 public:
  void Add(const Instance& instance, const NodeState&, TimePoint) override {
    waiting_.Add(instance, *instance.queued_as);
  }
  void Remove(const Instance& instance, const NodeState&, TimePoint) override {
    waiting_.Remove(instance, *instance.queued_as);
  }
  bool is_empty() const override { return waiting_.is_empty(); }

  std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>& open,
                                const NodeState&, TimePoint) override {
    return waiting_.First(count, open);
  }

  bool IsBefore(const Instance& a, const Instance& b, const NodeState&, TimePoint) const override {
    return a.waiting.begin()->first < b.waiting.begin()->first;
  }

 private:
  TurnQueue<Turn> waiting_;
};

}  // namespace

std::unique_ptr<QueuePolicy> MakeFifoQueue() { return std::make_unique<FifoQueue>(); }

}  // namespace torpor::scheduler
