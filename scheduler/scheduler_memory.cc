#include <algorithm>
#include <utility>

#include "scheduler/scheduler.h"

// Images on GPUs.
namespace torpor::scheduler {
namespace {

// Moves an image in an order of evictions, if its place is another one.
template <typename Order>
void Reorder(InstanceId instance, const std::optional<EvictionRank>& rank,
             std::optional<EvictionRank>* place, Order* order) {
  if (rank == *place) return;
  if (*place) order->erase({**place, instance});
  if (rank) order->emplace(*rank, instance);
  *place = rank;
}

}  // namespace

void Scheduler::Handle(const SwapInDone& event) {
  Instance& instance = node_.instances.at(event.instance);
  const auto copy = instance.copies.find(event.gpu);
  if (copy == instance.copies.end() || copy->second.state != Copy::State::kComing) return;
  EndReading(instance, event.gpu);
  const bool was_for_load = std::exchange(copy->second.is_for_load, false);
  if (event.ok) {
    // Else it would be the first to leave again.
    if (was_for_load) NoteUse(instance);
    SetCopyState(instance, event.gpu, Copy::State::kPresent);
    if (was_for_load) NoteKeepAlive(LeaderOf(instance.id));
    return UpdateQueue(LeaderOf(instance.id));
  }
  Drop(instance, event.gpu);
  if (was_for_load) EmitRefuseLoad(LeaderOf(instance.id), LoadRefusal::kSwapFailed);
  if (IsCold(instance) && !instance.waiting.empty()) return OnColdStartFailed(instance);
  // Only a request that waits for it there: the image of a companion may have come for a lease that
  // was given up, another for a load.
  if (instance.phase != Instance::Phase::kPlacing || instance.gpu != event.gpu) return;
  Instance& leader = LeaderOf(instance.id);
  if (!leader.waiting.empty()) {
    RefuseWaiting(leader.waiting.begin()->second, Refusal::kSwapFailed);
  }
  EndTenancy(leader);
}

void Scheduler::Handle(const ImageArrived& event) {
  const auto gpu = node_.gpus.find(event.gpu);
  if (gpu == node_.gpus.end() || gpu->second.loading != event.instance) return;
  Function& function = node_.functions.at(node_.instances.at(event.instance).function);
  function.run_times.transfer.Add(now_ - gpu->second.loading_since);
  gpu->second.loading = {};
}

void Scheduler::Handle(const SwapOutDone& event) {
  Instance& instance = node_.instances.at(event.instance);
  const auto copy = instance.copies.find(event.gpu);
  if (copy == instance.copies.end() || copy->second.state != Copy::State::kLeaving) return;
  Drop(instance, event.gpu);
}

void Scheduler::Handle(const GrowthWanted& event) {
  growths_.push_back({event.growth, event.instance, event.bytes});
}

void Scheduler::Handle(const ImageShrunk& event) {
  Instance& instance = node_.instances.at(event.instance);
  const Bytes less = std::min(instance.image_bytes, event.bytes);
  instance.image_bytes -= less;
  const bool is_bound = options_.binding == Binding::kEarly && instance.bound_gpu;
  if (is_bound) node_.gpus.at(*instance.bound_gpu).bound -= less;
  for (const auto& [gpu, copy] : instance.copies) {
    // What leaves may be as large as it was until it has left.
    if (copy.state == Copy::State::kLeaving) continue;
    Discharge(instance, gpu, std::min(copy.bytes, event.bytes));
  }
  Rank(instance);
}

bool Scheduler::MakeRoom(Gpu& gpu, Bytes bytes) {
  if (gpu.free_bytes() >= bytes) return true;
  if (!options_.evicts) return false;
  while (gpu.free_later() < bytes && !gpu.evictable.empty()) {
    Instance& victim = node_.instances.at(gpu.evictable.begin()->second);
    EmitSwapOut(victim, gpu.id, SwapOutReason::kMemoryFull);
  }
  return false;
}

bool Scheduler::Bring(Instance& member, Gpu& gpu) {
  // Room is made while the image still leaves another GPU.
  const bool has_room = MakeRoom(gpu, member.image_bytes);
  // Where the room depends on another that waits, too, it is given up, or both would for ever.
  const bool will_have_room = gpu.free_later() >= member.image_bytes;
  const std::optional<GpuIndex> source = will_have_room ? SourceOf(member, gpu) : std::nullopt;
  if (!member.keeps_replicas) {
    for (const auto& [at, other] : member.copies) {
      if (other.state == Copy::State::kPresent && at != source) {
        EmitSwapOut(member, at, SwapOutReason::kMove);
      }
    }
    if (member.copies.size() > (source ? 1 : 0)) return false;
  }
  if (!has_room || member.copies.count(gpu.id) > 0) return false;
  EmitSwapIn(member, gpu, source);
  return true;
}

std::optional<GpuIndex> Scheduler::SourceOf(const Instance& member, const Gpu& gpu) const {
  if (!options_.swaps_from_peers || !member.is_alone()) return std::nullopt;
  for (const GpuIndex source : gpu.sources) {
    if (member.is_present_on(source)) return source;
  }
  return std::nullopt;
}

void Scheduler::EmitSwapIn(Instance& member, Gpu& gpu, std::optional<GpuIndex> source) {
  const bool keeps_source = source && member.keeps_replicas;
  if (keeps_source) {
    ++member.copies.at(*source).readers;
  } else if (source) {
    SetCopyState(member, *source, Copy::State::kLeaving);
  } else {
    gpu.loading = member.id;
    gpu.loading_since = now_;
  }
  Copy& copy = member.copies[gpu.id];
  if (keeps_source) copy.source = source;
  ++gpu.swaps;
  Charge(member, gpu.id, member.image_bytes);
  Rank(member);
  if (options_.binding == Binding::kWhileResident && member.is_alone()) Bind(member, gpu.id);
  const bool is_for_lease = member.phase == Instance::Phase::kPlacing && member.gpu == gpu.id;
  if (is_for_lease) {
    Instance& leader = LeaderOf(member.id);
    leader.image_source = source ? ImageSource::kPeer : ImageSource::kHost;
    leader.run_since = now_;
  }
  actions_.emplace_back(SwapIn{member.id, gpu.id, source, keeps_source});
}

void Scheduler::EmitSwapOut(Instance& instance, GpuIndex gpu, SwapOutReason reason) {
  SetCopyState(instance, gpu, Copy::State::kLeaving);
  actions_.emplace_back(SwapOut{instance.id, gpu, reason});
}

void Scheduler::SetCopyState(Instance& instance, GpuIndex at, Copy::State state) {
  Copy& copy = instance.copies.at(at);
  Gpu& gpu = node_.gpus.at(at);
  copy.state = state;
  if (state == Copy::State::kPresent) {
    --gpu.swaps;
  } else {
    ++gpu.swaps;
    gpu.leaving += copy.bytes;
  }
  Rank(instance);
  UpdateTurn(instance);
}

void Scheduler::Drop(Instance& instance, GpuIndex at) {
  const auto found = instance.copies.find(at);
  if (found == instance.copies.end()) return;
  Gpu& gpu = node_.gpus.at(at);
  Copy& copy = found->second;
  if (copy.state == Copy::State::kComing) EndReading(instance, at);
  if (copy.state != Copy::State::kPresent) --gpu.swaps;
  if (copy.state == Copy::State::kLeaving) gpu.leaving -= copy.bytes;
  if (copy.is_saving) --gpu.saves;
  gpu.used -= copy.bytes;
  copy.state = Copy::State::kLeaving;  // ranked no more
  Rank(instance);
  instance.copies.erase(found);
  for (auto& [gpu_of_other, other] : instance.copies) {
    if (other.source == at) other.source.reset();
  }
  if (gpu.loading == instance.id) gpu.loading = {};
  Rank(instance);
  if (options_.binding == Binding::kWhileResident) Bind(instance, std::nullopt);
  UpdateTurn(instance);
  UpdateQueue(LeaderOf(instance.id));
}

void Scheduler::Charge(Instance& instance, GpuIndex gpu, Bytes bytes) {
  instance.copies.at(gpu).bytes += bytes;
  node_.gpus.at(gpu).used += bytes;
}

void Scheduler::Discharge(Instance& instance, GpuIndex gpu, Bytes bytes) {
  instance.copies.at(gpu).bytes -= bytes;
  node_.gpus.at(gpu).used -= bytes;
}

void Scheduler::EndReading(Instance& instance, GpuIndex reader) {
  Copy& coming = instance.copies.at(reader);
  if (!coming.source) return;
  const auto source = instance.copies.find(*std::exchange(coming.source, std::nullopt));
  if (source == instance.copies.end()) return;
  --source->second.readers;
  Rank(instance);
}

void Scheduler::Rank(Instance& instance) {
  for (auto& [at, copy] : instance.copies) {
    Gpu& gpu = node_.gpus.at(at);
    // Of an image that nothing changes further copies may go while it runs.
    const bool is_in_use = instance.phase != Instance::Phase::kIdle &&
                           (instance.gpu == at || !instance.keeps_replicas);
    const bool may_go = !is_in_use && copy.state == Copy::State::kPresent && copy.readers == 0;
    std::optional<EvictionRank> rank;
    if (may_go) {
      rank = policies_.eviction->Rank(instance, at, node_);
      rank->is_pinned = instance.is_pinned;
    }
    Reorder(instance.id, copy.bytes > 0 ? rank : std::nullopt, &copy.evictable_rank,
            &gpu.evictable);
    Reorder(instance.id, copy.is_unsaved ? rank : std::nullopt, &copy.unsaved_rank, &gpu.unsaved);
  }
}

void Scheduler::RetryGrowths() {
  std::erase_if(growths_, [this](const Growth& growth) { return TryGrow(growth); });
}

bool Scheduler::TryGrow(const Growth& growth) {
  Instance& instance = node_.instances.at(growth.instance);
  const bool is_tenant = instance.phase != Instance::Phase::kIdle;
  const Bytes limit = is_tenant ? node_.gpus.at(instance.gpu).capacity : LargestCapacity();
  if (instance.image_bytes + growth.bytes > limit || !HasBoundRoom(instance, growth.bytes)) {
    actions_.emplace_back(RefuseGrowth{growth.id});
    return true;
  }
  for (auto& [gpu, copy] : instance.copies) {
    if (copy.state == Copy::State::kLeaving) continue;
    const bool has_room = instance.image_bytes + growth.bytes <= node_.gpus.at(gpu).capacity;
    const bool is_needed = (is_tenant && gpu == instance.gpu) || (instance.is_pinned && has_room);
    if (is_needed && !MakeRoom(node_.gpus.at(gpu), growth.bytes)) {
      if (options_.evicts) return false;
      // Nobody makes room for it.
      actions_.emplace_back(RefuseGrowth{growth.id});
      return true;
    }
    // A copy that nobody runs on or has pinned is not worth another's eviction: it comes back when
    // it is needed.
    if (!is_needed && node_.gpus.at(gpu).free_bytes() < growth.bytes) {
      if (copy.state == Copy::State::kComing || copy.readers > 0) return false;
      EmitSwapOut(instance, gpu, SwapOutReason::kMemoryFull);
    }
  }
  if (options_.binding == Binding::kEarly) BindEarly(instance, growth.bytes);
  instance.image_bytes += growth.bytes;
  for (auto& [gpu, copy] : instance.copies) {
    if (copy.state != Copy::State::kLeaving) Charge(instance, gpu, growth.bytes);
  }
  Rank(instance);
  actions_.emplace_back(AllowGrowth{growth.id});
  return true;
}

bool Scheduler::HasBoundRoom(const Instance& instance, Bytes bytes) const {
  if (options_.binding != Binding::kEarly) return true;
  // Who is on a GPU already can be bound to no other.
  const bool is_on_gpu =
      instance.bound_gpu || !instance.copies.empty() || instance.phase != Instance::Phase::kIdle;
  const Bytes more = instance.bound_gpu ? bytes : instance.image_bytes + bytes;
  return !is_on_gpu || RoomiestFor(instance, more).has_value();
}

void Scheduler::BindEarly(Instance& instance, Bytes bytes) {
  if (!instance.bound_gpu) {
    bytes += instance.image_bytes;
    const std::optional<GpuIndex> gpu = RoomiestFor(instance, bytes);
    if (!gpu) return;
    Bind(instance, gpu);
  }
  node_.gpus.at(*instance.bound_gpu).bound += bytes;
}

void Scheduler::Bind(Instance& instance, std::optional<GpuIndex> gpu) {
  if (instance.queued_as) policies_.queue->Remove(instance, node_, now_);
  instance.bound_gpu = gpu;
  if (instance.queued_as) policies_.queue->Add(instance, node_, now_);
}

std::optional<GpuIndex> Scheduler::RoomiestFor(const Instance& instance, Bytes bytes) const {
  std::optional<GpuIndex> only = instance.bound_gpu;
  if (!only && !instance.copies.empty()) only = instance.copies.begin()->first;
  if (!only && instance.phase != Instance::Phase::kIdle) only = instance.gpu;
  const Instance& leader = node_.instances.at(instance.leader);
  const auto is_others = [&](InstanceId member, GpuIndex gpu) {
    return member != instance.id && node_.instances.at(member).bound_gpu == gpu;
  };
  const Gpu* best = nullptr;
  for (const auto& [id, gpu] : node_.gpus) {
    // Members of one instance run at the same time.
    const bool is_free_of_others =
        !is_others(leader.id, id) &&
        std::none_of(leader.companions.begin(), leader.companions.end(),
                     [&, at = id](InstanceId member) { return is_others(member, at); });
    const bool may_be =
        (!only || *only == id) && is_free_of_others && gpu.capacity >= gpu.bound + bytes;
    const bool is_better = !best || gpu.capacity - gpu.bound > best->capacity - best->bound;
    if (may_be && is_better) best = &gpu;
  }
  return best ? std::optional(best->id) : std::nullopt;
}

Bytes Scheduler::LargestCapacity() const {
  Bytes largest = 0;
  for (const auto& [id, gpu] : node_.gpus) largest = std::max(largest, gpu.capacity);
  return largest;
}

void Scheduler::NoteKeepAlive(Instance& leader) {
  if (leader.keep_alive_end) keep_alive_ends_.erase({*leader.keep_alive_end, leader.id});
  leader.keep_alive_end.reset();
  const Duration keep_alive = node_.FunctionOf(leader).keep_alive;
  if (keep_alive == Duration::zero()) return;
  leader.keep_alive_end = leader.last_used + keep_alive;
  keep_alive_ends_.emplace(*leader.keep_alive_end, leader.id);
}

void Scheduler::EndKeepAlives() {
  while (!keep_alive_ends_.empty()) {
    const auto [when, id] = *keep_alive_ends_.begin();
    if (when > now_) return WakeAt(when);
    keep_alive_ends_.erase(keep_alive_ends_.begin());
    Instance& leader = node_.instances.at(id);
    leader.keep_alive_end.reset();
    // The next lease's end notes it again.
    const bool is_used = leader.phase != Instance::Phase::kIdle || !leader.waiting.empty();
    if (is_used || leader.is_pinned) continue;
    ForEachMember(leader, [this](Instance& member) {
      for (const auto& [gpu, copy] : member.copies) {
        if (copy.state == Copy::State::kPresent && copy.readers == 0) {
          EmitSwapOut(member, gpu, SwapOutReason::kKeepAliveOver);
        }
      }
    });
  }
}

}  // namespace torpor::scheduler
