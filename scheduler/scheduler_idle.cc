#include <algorithm>
#include <utility>

#include "scheduler/scheduler.h"

// What is done on GPUs that have nothing to do: images are written back, so that a later eviction
// finds nothing to copy.
namespace torpor::scheduler {

void Scheduler::Handle(const WriteBackDone& event) {
  Instance& instance = node_.instances.at(event.instance);
  const auto copy = instance.copies.find(event.gpu);
  if (copy == instance.copies.end() || !std::exchange(copy->second.is_saving, false)) return;
  --node_.gpus.at(event.gpu).saves;
  if (event.is_clean) copy->second.is_unsaved = false;
  Rank(instance);
}

bool Scheduler::IsWanted(const Gpu& gpu) {
  const auto fits = [&](InstanceId id) {
    return node_.instances.at(id).image_bytes <= gpu.capacity;
  };
  for (const std::size_t count : {std::size_t{1}, queued_}) {
    const std::vector<InstanceId> first = policies_.queue->First(count, {}, node_, now_);
    if (std::any_of(first.begin(), first.end(), fits)) return true;
  }
  return false;
}

void Scheduler::NoteIdleGpus() {
  for (auto& [id, gpu] : node_.gpus) {
    if (!gpu.is_up || gpu.tenant || gpu.swaps > 0 || IsWanted(gpu)) {
      gpu.idle_since.reset();
    } else if (!gpu.idle_since) {
      gpu.idle_since = now_;
    }
  }
}

void Scheduler::SaveIdleImages() {
  if (options_.idle_write_back == Duration::zero()) return;
  NoteIdleGpus();
  for (auto& [id, gpu] : node_.gpus) {
    if (gpu.idle_since) SaveImageOf(gpu);
  }
}

void Scheduler::SaveImageOf(Gpu& gpu) {
  if (gpu.saves > 0 || gpu.unsaved.empty()) return;
  const TimePoint from = *gpu.idle_since + options_.idle_write_back;
  if (now_ < from) return WakeAt(from);
  // Whose eviction comes first gains first.
  const InstanceId first = gpu.unsaved.begin()->second;
  node_.instances.at(first).copies.at(gpu.id).is_saving = true;
  ++gpu.saves;
  actions_.emplace_back(WriteBack{first, gpu.id});
}

}  // namespace torpor::scheduler
