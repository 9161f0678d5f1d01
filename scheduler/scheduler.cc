#include "scheduler/scheduler.h"

#include <algorithm>
#include <utility>

namespace torpor::scheduler {

Scheduler::Scheduler(Policies policies, Options options)
    : policies_(std::move(policies)), options_(options) {}

Actions Scheduler::OnEvent(const Event& event, TimePoint now) {
  now_ = std::max(now_, now);
  if (wake_up_ && *wake_up_ <= now_) wake_up_.reset();
  actions_.clear();
  std::visit([this](const auto& e) { Handle(e); }, event);
  RetryGrowths();
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.tenant) continue;
    Instance& tenant = node_.instances.at(gpu.tenant);
    if (tenant.phase == Instance::Phase::kPlacing) Advance(tenant);
  }
  ServeQueue();
  return std::exchange(actions_, {});
}

void Scheduler::Handle(const ExecutorUp& event) {
  Handle(ExecutorDown{event.gpu});
  Gpu& gpu = node_.gpus[event.gpu];
  gpu.id = event.gpu;
  gpu.is_up = true;
  gpu.capacity = event.capacity;
}

void Scheduler::Handle(const ExecutorDown& event) {
  const auto gpu = node_.gpus.find(event.gpu);
  if (gpu == node_.gpus.end()) return;
  gpu->second.is_up = false;
  for (auto& [id, instance] : node_.instances) {
    Drop(instance, event.gpu);
    if (instance.phase != Instance::Phase::kIdle && instance.gpu == event.gpu) EndTenancy(instance);
  }
}

void Scheduler::Handle(const InstanceAdded& event) {
  Instance& instance = node_.instances[event.instance];
  instance.id = event.instance;
  instance.max_in_flight = event.max_in_flight;
}

void Scheduler::Handle(const RequestArrived& event) {
  node_.waiting[event.request] = Request{.request = event.request,
                                         .instance = event.instance,
                                         .arrival = now_,
                                         .deadline = event.deadline,
                                         .is_implicit = event.is_implicit,
                                         .sequence = next_sequence_++};
}

void Scheduler::Handle(const RequestGone& event) {
  // A tenant that is left with nobody to run for is noticed by Advance.
  if (node_.waiting.erase(event.request) > 0) return;
  for (auto& [id, instance] : node_.instances) {
    if (instance.in_flight.erase(event.request) == 0) continue;
    if (instance.in_flight.empty()) EmitRevoke(instance);
    return;
  }
}

void Scheduler::Handle(const SwapInDone& event) {
  Instance& instance = node_.instances.at(event.instance);
  const auto copy = instance.copies.find(event.gpu);
  if (copy == instance.copies.end() || copy->second.state != Copy::State::kComing) return;
  if (event.ok) {
    copy->second.state = Copy::State::kPresent;
    return;
  }
  Drop(instance, event.gpu);
  if (const Request* request = FirstWaiting(instance.id)) {
    actions_.emplace_back(Refuse{request->request, Refusal::kSwapFailed});
    node_.waiting.erase(request->request);
  }
  EndTenancy(instance);
}

void Scheduler::Handle(const SwapOutDone& event) {
  Instance& instance = node_.instances.at(event.instance);
  const auto copy = instance.copies.find(event.gpu);
  if (copy == instance.copies.end() || copy->second.state != Copy::State::kLeaving) return;
  Drop(instance, event.gpu);
}

void Scheduler::Handle(const LeaseEnded& event) {
  Instance& instance = node_.instances.at(event.instance);
  if (instance.phase == Instance::Phase::kLeased || instance.phase == Instance::Phase::kRevoked) {
    EndTenancy(instance);
  }
}

void Scheduler::Handle(const GrowthWanted& event) {
  growths_.push_back({event.growth, event.instance, event.bytes});
}

void Scheduler::Handle(const ImageShrunk& event) {
  Instance& instance = node_.instances.at(event.instance);
  instance.image_bytes -= std::min(instance.image_bytes, event.bytes);
  for (auto& [gpu, copy] : instance.copies) {
    const Bytes bytes = std::min(copy.bytes, event.bytes);
    copy.bytes -= bytes;
    node_.gpus.at(gpu).used -= bytes;
  }
}

void Scheduler::Handle(const TimePassed&) {}

void Scheduler::ServeQueue() {
  std::set<GpuIndex> claimed;
  bool is_somebody_blocked = false;
  for (const RequestId id : policies_.queue->Order(node_, now_)) {
    const auto waiting = node_.waiting.find(id);
    if (waiting == node_.waiting.end()) continue;
    const Request request = waiting->second;
    Instance& instance = node_.instances.at(request.instance);
    if (RefuseIfTooLarge(request, instance)) continue;
    if (instance.phase != Instance::Phase::kIdle) {
      // Joining while others wait for a GPU could keep the lease for ever.
      if (!is_somebody_blocked && Join(request, instance)) continue;
      if (MayRevoke(request, instance)) EmitRevoke(instance);
      continue;
    }
    if (Place(instance)) continue;
    is_somebody_blocked = true;
    RevokeFor(request, instance, claimed);
  }
}

bool Scheduler::RefuseIfTooLarge(const Request& request, const Instance& instance) {
  const Bytes largest = LargestCapacity();
  if (largest == 0 || instance.image_bytes <= largest) return false;
  actions_.emplace_back(Refuse{request.request, Refusal::kTooLarge});
  node_.waiting.erase(request.request);
  return true;
}

bool Scheduler::Place(Instance& instance) {
  std::vector<GpuIndex> candidates;
  for (const auto& [id, gpu] : node_.gpus) {
    if (gpu.is_up && !gpu.tenant && gpu.capacity >= instance.image_bytes) candidates.push_back(id);
  }
  if (candidates.empty()) return false;
  const std::optional<GpuIndex> gpu =
      policies_.placement->Choose(instance, candidates, node_, now_);
  if (!gpu) return false;
  node_.gpus.at(*gpu).tenant = instance.id;
  instance.gpu = *gpu;
  instance.phase = Instance::Phase::kPlacing;
  Advance(instance);
  return true;
}

bool Scheduler::Join(const Request& request, Instance& instance) {
  if (request.is_implicit || instance.phase != Instance::Phase::kLeased ||
      instance.lease_is_implicit ||
      instance.in_flight.size() >= static_cast<std::size_t>(instance.max_in_flight)) {
    return false;
  }
  instance.in_flight.insert(request.request);
  actions_.emplace_back(Grant{request.request, instance.id, instance.gpu, true});
  node_.waiting.erase(request.request);
  return true;
}

void Scheduler::RevokeFor(const Request& request, const Instance& instance,
                          std::set<GpuIndex>& claimed) {
  Instance* holder = nullptr;
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.tenant || gpu.capacity < instance.image_bytes || claimed.count(id)) continue;
    Instance& tenant = node_.instances.at(gpu.tenant);
    if (tenant.phase == Instance::Phase::kRevoked) {
      claimed.insert(id);
      return;
    }
    const bool is_better =
        !holder || (instance.copies.count(id) && !instance.copies.count(holder->gpu));
    if (is_better && MayRevoke(request, tenant)) holder = &tenant;
  }
  if (!holder) return;
  claimed.insert(holder->gpu);
  EmitRevoke(*holder);
}

bool Scheduler::MayRevoke(const Request& request, const Instance& holder) {
  if (holder.phase != Instance::Phase::kLeased || !holder.lease_is_implicit) return false;
  const TimePoint from =
      holder.leased_at +
      (request.is_implicit ? options_.implicit_quantum : options_.implicit_quantum_for_request);
  if (now_ >= from) return true;
  if (!wake_up_ || from < *wake_up_) {
    wake_up_ = from;
    actions_.emplace_back(WakeUp{from});
  }
  return false;
}

void Scheduler::EmitRevoke(Instance& instance) {
  if (instance.phase != Instance::Phase::kLeased) return;
  instance.phase = Instance::Phase::kRevoked;
  actions_.emplace_back(Revoke{instance.id});
}

void Scheduler::Advance(Instance& instance) {
  const auto copy = instance.copies.find(instance.gpu);
  const bool is_coming =
      copy != instance.copies.end() && copy->second.state == Copy::State::kComing;
  if (is_coming) return;
  if (!FirstWaiting(instance.id)) return EndTenancy(instance);
  if (copy != instance.copies.end() && copy->second.state == Copy::State::kPresent) {
    return GrantFirstWaiting(instance);
  }
  // Room is made while the image still leaves another GPU.
  const bool has_room = MakeRoom(node_.gpus.at(instance.gpu), instance.image_bytes);
  for (auto& [gpu, other] : instance.copies) {
    if (other.state == Copy::State::kPresent) EmitSwapOut(instance, gpu, SwapOutReason::kMove);
  }
  if (!has_room || !instance.copies.empty()) return;
  instance.copies[instance.gpu] = Copy{};
  Charge(instance, instance.gpu, instance.image_bytes);
  actions_.emplace_back(SwapIn{instance.id, instance.gpu});
}

void Scheduler::GrantFirstWaiting(Instance& instance) {
  const Request request = *FirstWaiting(instance.id);
  node_.waiting.erase(request.request);
  instance.phase = Instance::Phase::kLeased;
  instance.lease_is_implicit = request.is_implicit;
  instance.leased_at = now_;
  instance.last_used = now_;
  instance.in_flight = {request.request};
  actions_.emplace_back(Grant{request.request, instance.id, instance.gpu, false});
}

const Request* Scheduler::FirstWaiting(InstanceId instance) {
  for (const RequestId id : policies_.queue->Order(node_, now_)) {
    const Request& request = node_.waiting.at(id);
    if (request.instance == instance) return &request;
  }
  return nullptr;
}

void Scheduler::EndTenancy(Instance& instance) {
  node_.gpus.at(instance.gpu).tenant = {};
  instance.phase = Instance::Phase::kIdle;
  instance.in_flight.clear();
  instance.last_used = now_;
}

bool Scheduler::MakeRoom(Gpu& gpu, Bytes bytes) {
  if (gpu.free_bytes() >= bytes) return true;
  Bytes free_later = gpu.free_bytes();
  std::vector<InstanceId> candidates;
  for (const auto& [id, instance] : node_.instances) {
    const auto copy = instance.copies.find(gpu.id);
    if (copy == instance.copies.end() || copy->second.bytes == 0) continue;
    if (copy->second.state == Copy::State::kLeaving) free_later += copy->second.bytes;
    const bool is_idle = instance.phase == Instance::Phase::kIdle;
    if (copy->second.state == Copy::State::kPresent && is_idle) candidates.push_back(id);
  }
  if (free_later >= bytes) return false;
  for (const InstanceId id :
       policies_.eviction->Order(gpu.id, std::move(candidates), node_, now_)) {
    if (free_later >= bytes) break;
    Instance& victim = node_.instances.at(id);
    free_later += victim.copies.at(gpu.id).bytes;
    EmitSwapOut(victim, gpu.id, SwapOutReason::kMemoryFull);
  }
  return false;
}

void Scheduler::EmitSwapOut(Instance& instance, GpuIndex gpu, SwapOutReason reason) {
  instance.copies.at(gpu).state = Copy::State::kLeaving;
  actions_.emplace_back(SwapOut{instance.id, gpu, reason});
}

void Scheduler::Drop(Instance& instance, GpuIndex gpu) {
  const auto copy = instance.copies.find(gpu);
  if (copy == instance.copies.end()) return;
  node_.gpus.at(gpu).used -= copy->second.bytes;
  instance.copies.erase(copy);
}

void Scheduler::Charge(Instance& instance, GpuIndex gpu, Bytes bytes) {
  instance.copies.at(gpu).bytes += bytes;
  node_.gpus.at(gpu).used += bytes;
}

void Scheduler::RetryGrowths() {
  std::erase_if(growths_, [this](const Growth& growth) { return TryGrow(growth); });
}

bool Scheduler::TryGrow(const Growth& growth) {
  Instance& instance = node_.instances.at(growth.instance);
  const bool is_tenant = instance.phase != Instance::Phase::kIdle;
  const Bytes limit = is_tenant ? node_.gpus.at(instance.gpu).capacity : LargestCapacity();
  if (instance.image_bytes + growth.bytes > limit) {
    actions_.emplace_back(RefuseGrowth{growth.id});
    return true;
  }
  for (auto& [gpu, copy] : instance.copies) {
    if (copy.state == Copy::State::kLeaving) continue;
    const bool is_needed = is_tenant && gpu == instance.gpu;
    if (is_needed && !MakeRoom(node_.gpus.at(gpu), growth.bytes)) return false;
    // A copy that nobody runs on is not worth another's eviction: it comes back when it is needed.
    if (!is_needed && node_.gpus.at(gpu).free_bytes() < growth.bytes) {
      EmitSwapOut(instance, gpu, SwapOutReason::kMemoryFull);
    }
  }
  instance.image_bytes += growth.bytes;
  for (auto& [gpu, copy] : instance.copies) {
    if (copy.state != Copy::State::kLeaving) Charge(instance, gpu, growth.bytes);
  }
  actions_.emplace_back(AllowGrowth{growth.id});
  return true;
}

Bytes Scheduler::LargestCapacity() const {
  Bytes largest = 0;
  for (const auto& [id, gpu] : node_.gpus) largest = std::max(largest, gpu.capacity);
  return largest;
}

}  // namespace torpor::scheduler
