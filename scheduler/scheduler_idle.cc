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
  if (event.is_clean) copy->second.is_unsaved = false;
}

void Scheduler::NoteIdleGpus() {
  const std::set<GpuIndex> swapping = SwappingGpus();
  std::optional<Bytes> smallest_waiting;
  for (const auto& [id, request] : node_.waiting) {
    const Instance& instance = node_.instances.at(request.instance);
    // Others wait for the lease that their instance has, not for a GPU.
    if (instance.phase != Instance::Phase::kIdle) continue;
    smallest_waiting =
        std::min(smallest_waiting.value_or(instance.image_bytes), instance.image_bytes);
  }
  for (auto& [id, gpu] : node_.gpus) {
    const bool is_wanted = smallest_waiting && *smallest_waiting <= gpu.capacity;
    if (!gpu.is_up || gpu.tenant || is_wanted || swapping.count(id) > 0) {
      gpu.idle_since.reset();
    } else if (!gpu.idle_since) {
      gpu.idle_since = now_;
    }
  }
}

std::set<GpuIndex> Scheduler::SwappingGpus() const {
  std::set<GpuIndex> swapping;
  for (const auto& [id, instance] : node_.instances) {
    for (const auto& [gpu, copy] : instance.copies) {
      if (copy.state != Copy::State::kPresent) swapping.insert(gpu);
    }
  }
  return swapping;
}

void Scheduler::SaveIdleImages() {
  if (options_.idle_write_back == Duration::zero()) return;
  NoteIdleGpus();
  for (const auto& [id, gpu] : node_.gpus) {
    if (gpu.idle_since) SaveImageOf(gpu);
  }
}

void Scheduler::SaveImageOf(const Gpu& gpu) {
  std::vector<InstanceId> unsaved;
  for (const auto& [id, instance] : node_.instances) {
    const auto copy = instance.copies.find(gpu.id);
    if (copy == instance.copies.end()) continue;
    if (copy->second.is_saving) return;
    const bool is_idle = instance.phase == Instance::Phase::kIdle;
    if (copy->second.is_unsaved && is_idle) unsaved.push_back(id);
  }
  if (unsaved.empty()) return;
  const TimePoint from = *gpu.idle_since + options_.idle_write_back;
  if (now_ < from) return WakeAt(from);
  // Whose eviction comes first gains first.
  const InstanceId first =
      policies_.eviction->Order(gpu.id, std::move(unsaved), node_, now_).front();
  node_.instances.at(first).copies.at(gpu.id).is_saving = true;
  actions_.emplace_back(WriteBack{first, gpu.id});
}

}  // namespace torpor::scheduler
