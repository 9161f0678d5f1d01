#include "scheduler/idle_write_back.h"

#include <algorithm>
#include <vector>

namespace torpor::scheduler {

IdleWriteBack::IdleWriteBack(NodeState& node, RequestQueue& queue, GpuImages& images,
                             Duration pause, Outbox& outbox)
    : node_(node), queue_(queue), images_(images), pause_(pause), outbox_(outbox) {}

void IdleWriteBack::Serve() {
  if (pause_ == Duration::zero()) return;
  for (auto& [id, gpu] : node_.gpus) {
    NoteIdle(gpu);
    if (gpu.idle_since) WriteBackOn(gpu);
  }
}

bool IdleWriteBack::IsWanted(const Gpu& gpu) {
  const auto fits = [&](InstanceId id) {
    return node_.instances.at(id).image.bytes <= gpu.capacity;
  };
  // Most often the first in the queue fits.
  for (const std::size_t count : {std::size_t{1}, queue_.size()}) {
    const std::vector<InstanceId> first = queue_.First(count);
    if (std::any_of(first.begin(), first.end(), fits)) return true;
  }
  return false;
}

void IdleWriteBack::NoteIdle(Gpu& gpu) {
  if (!gpu.is_up || gpu.tenant || gpu.swaps > 0 || IsWanted(gpu)) {
    gpu.idle_since.reset();
  } else if (!gpu.idle_since) {
    gpu.idle_since = outbox_.now();
  }
}

void IdleWriteBack::WriteBackOn(Gpu& gpu) {
  if (gpu.saves > 0 || gpu.unsaved.empty()) return;
  const TimePoint from = *gpu.idle_since + pause_;
  if (outbox_.now() < from) return outbox_.WakeAt(from);
  // The image that would be evicted first gains first.
  images_.WriteBackFirst(gpu);
}

}  // namespace torpor::scheduler
