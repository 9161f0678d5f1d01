#include "scheduler/cold_starts.h"

#include <optional>
#include <vector>

namespace torpor::scheduler {

ColdStarts::ColdStarts(NodeState& node, const BindingPolicy& binding, PlacementPolicy& placement,
                       RequestQueue& queue, GpuImages& images, Outbox& outbox)
    : node_(node),
      binding_(binding),
      placement_(placement),
      queue_(queue),
      images_(images),
      outbox_(outbox) {}

void ColdStarts::Serve() {
  std::erase_if(queue_.cold(), [this](InstanceId id) { return Start(node_.instances.at(id)); });
}

bool ColdStarts::Start(Instance& instance) {
  if (instance.waiting.empty() || !binding_.IsCold(instance)) {
    failures_[instance.id].in_a_row = 0;
    return true;
  }
  if (!instance.image.copies.empty()) return false;
  const TimePoint next_try = failures_[instance.id].next_try;
  if (outbox_.now() < next_try) {
    outbox_.WakeAt(next_try);
    return false;
  }
  std::vector<GpuIndex> candidates;
  bool has_room = false;
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.is_up || gpu.free_bytes() < instance.image.bytes) continue;
    has_room = true;
    if (!instance.unserved_on.contains(id)) candidates.push_back(id);
  }
  if (!has_room) {
    queue_.RefuseAll(instance, Refusal::kNoRoom);
    return true;
  }
  if (candidates.empty()) return false;
  const std::optional<GpuIndex> gpu = placement_.Choose(instance, candidates, node_, outbox_.now());
  if (gpu) images_.SwapIn(instance, node_.gpus.at(*gpu));
  return false;
}

bool ColdStarts::OnSwapInFailed(Instance& instance) {
  if (!binding_.IsCold(instance) || instance.waiting.empty()) return false;
  Failures& failures = failures_[instance.id];
  if (++failures.in_a_row == kMaxTries) {
    failures.in_a_row = 0;
    queue_.RefuseAll(instance, Refusal::kSwapFailed);
  } else {
    failures.next_try = outbox_.now() + kFirstPause * (1 << (failures.in_a_row - 1));
  }
  return true;
}

}  // namespace torpor::scheduler
