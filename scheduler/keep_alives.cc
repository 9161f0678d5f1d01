#include "scheduler/keep_alives.h"

namespace torpor::scheduler {

KeepAlives::KeepAlives(NodeState& node, GpuImages& images, Outbox& outbox)
    : node_(node), images_(images), outbox_(outbox) {}

void KeepAlives::Forget(const Instance& lead) {
  const auto noted = end_of_.find(lead.id);
  if (noted == end_of_.end()) return;
  ends_.erase({noted->second, lead.id});
  end_of_.erase(noted);
}

void KeepAlives::Note(const Instance& lead) {
  Forget(lead);
  const Duration keep_alive = node_.FunctionOf(lead).keep_alive;
  if (keep_alive == Duration::zero()) return;
  const TimePoint end = lead.image.last_used + keep_alive;
  end_of_[lead.id] = end;
  ends_.emplace(end, lead.id);
}

void KeepAlives::End() {
  while (!ends_.empty()) {
    const auto [when, id] = *ends_.begin();
    if (when > outbox_.now()) return outbox_.WakeAt(when);
    ends_.erase(ends_.begin());
    end_of_.erase(id);
    Instance& lead = node_.instances.at(id);
    // The end of the next lease notes it again.
    const bool is_used = !lead.tenancy.is_idle() || !lead.waiting.empty();
    if (!is_used && !lead.image.is_pinned) images_.SwapOutAll(lead, SwapOutReason::kKeepAliveOver);
  }
}

}  // namespace torpor::scheduler
