#include "scheduler/leases.h"

#include <algorithm>
#include <utility>

namespace torpor::scheduler {

Leases::Leases(NodeState& node, QueuePolicy& policy, RequestQueue& queue, GpuImages& images,
               KeepAlives& keep_alives, Options options, Outbox& outbox)
    : node_(node),
      policy_(policy),
      queue_(queue),
      images_(images),
      keep_alives_(keep_alives),
      options_(options),
      outbox_(outbox) {}

void Leases::SetPhase(Instance& lead, Phase phase) {
  node_.ForEachShard(lead, [&](Instance& shard) {
    shard.tenancy.phase = phase;
    images_.Rank(shard);
  });
  queue_.Update(lead);
}

void Leases::Begin(Instance& lead, const GpuChoice::Chosen& chosen) {
  for (const auto& [shard, gpu] : chosen.gpus) {
    node_.gpus.at(gpu).tenant = shard->id;
    shard->tenancy.gpu = gpu;
  }
  lead.tenancy.image_source = ImageSource::kResident;
  SetPhase(lead, Phase::kPlacing);
  policy_.OnServed(lead, node_, outbox_.now());
  for (const auto& [shard, gpu] : chosen.gpus) {
    if (shard->tenancy.phase == Phase::kPlacing) Advance(*shard);
  }
}

void Leases::Advance() {
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.tenant) continue;
    Instance& tenant = node_.instances.at(gpu.tenant);
    if (tenant.tenancy.phase == Phase::kPlacing) Advance(tenant);
  }
}

void Leases::Advance(Instance& shard) {
  Instance& lead = node_.LeadOf(shard.id);
  const GpuIndex at = shard.tenancy.gpu;
  const auto copy = shard.image.copies.find(at);
  const bool is_coming =
      copy != shard.image.copies.end() && copy->second.state == Copy::State::kComing;
  if (is_coming) return;
  if (lead.waiting.empty()) return End(lead);
  if (!shard.image.is_present_on(at)) {
    Gpu& gpu = node_.gpus.at(at);
    // Another image has taken the room meanwhile, and none is made.
    const bool has_no_room = !images_.evicts() && gpu.free_later() < shard.image.bytes;
    if (has_no_room) return End(lead);
    images_.Bring(shard, gpu);
  } else if (IsComplete(lead)) {
    Grant(lead);
  }
}

bool Leases::IsComplete(const Instance& lead) const {
  bool is_complete = true;
  node_.ForEachShard(lead, [&](const Instance& shard) {
    is_complete = is_complete && shard.image.is_present_on(shard.tenancy.gpu);
  });
  return is_complete;
}

void Leases::Grant(Instance& lead) {
  const Request request = node_.FirstOf(lead);
  queue_.Remove(request);
  SetPhase(lead, Phase::kLeased);
  Tenancy& tenancy = lead.tenancy;
  tenancy.is_implicit = request.is_implicit;
  tenancy.granted_at = outbox_.now();
  if (tenancy.image_source == ImageSource::kResident) tenancy.run_since = outbox_.now();
  if (request.is_implicit) tenancy.run_since.reset();
  tenancy.requests = {request.request};
  scheduler::Grant grant{request.request, lead.id, tenancy.gpu, false, {}};
  node_.ForEachShard(lead, [&](Instance& shard) {
    shard.image.NoteUse(outbox_.now());
    images_.OnGranted(shard);
    if (&shard != &lead) grant.secondary_gpus.push_back(shard.tenancy.gpu);
  });
  outbox_.Add(std::move(grant));
}

void Leases::End(Instance& lead) {
  for (const RequestId request : lead.tenancy.requests) {
    // No RequestGone follows for an implicit request.
    if (lead.tenancy.is_implicit) {
      node_.requests.erase(request);
    } else {
      node_.requests.at(request).is_lost = true;
    }
  }
  lead.tenancy.requests.clear();
  node_.ForEachShard(lead, [&](Instance& shard) {
    Gpu& gpu = node_.gpus.at(shard.tenancy.gpu);
    gpu.tenant = {};
    gpu.free_since = outbox_.now();
    if (gpu.loading == shard.id) gpu.loading = {};
    shard.image.last_used = outbox_.now();
  });
  policy_.OnReleased(lead, node_, outbox_.now());
  const bool had_lease = lead.tenancy.phase != Phase::kPlacing;
  keep_alives_.Note(lead);
  SetPhase(lead, Phase::kIdle);
  if (had_lease && lead.waiting.empty()) queue_.TakeFromSibling(lead);
}

void Leases::Revoke(Instance& lead) {
  if (lead.tenancy.phase != Phase::kLeased) return;
  SetPhase(lead, Phase::kRevoked);
  outbox_.Add(scheduler::Revoke{lead.id});
}

void Leases::ServeTenants() {
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.tenant) continue;
    Instance& lead = node_.LeadOf(gpu.tenant);
    if (lead.tenancy.phase != Phase::kLeased) continue;
    while (!lead.waiting.empty() && Join(lead)) {
    }
    if (lead.tenancy.is_implicit) RevokeForOwnRequests(lead);
  }
}

void Leases::RevokeForOwnRequests(Instance& lead) {
  for (const auto& [turn, request] : lead.waiting) {
    if (MayRevoke(node_.requests.at(request), lead)) return Revoke(lead);
  }
}

bool Leases::Join(Instance& lead) {
  Tenancy& tenancy = lead.tenancy;
  if (tenancy.phase != Phase::kLeased || tenancy.is_implicit ||
      tenancy.requests.size() >= static_cast<std::size_t>(lead.max_in_flight)) {
    return false;
  }
  if (queue_.StepAside(lead)) return true;
  const Request request = node_.FirstOf(lead);
  if (request.is_implicit) return false;
  // Joining while others wait for a GPU could keep the lease for ever.
  if (!queue_.IsBeforeAll(lead)) return false;
  queue_.Remove(request);
  tenancy.requests.insert(request.request);
  tenancy.run_since.reset();
  policy_.OnJoined(lead, node_, outbox_.now());
  outbox_.Add(scheduler::Grant{request.request, lead.id, tenancy.gpu, true, {}});
  return true;
}

void Leases::TakeBack(RequestId id) {
  const auto found = node_.requests.find(id);
  if (found == node_.requests.end()) return;
  const Request request = found->second;
  node_.requests.erase(found);
  if (request.is_lost) return;
  Instance& lead = node_.instances.at(request.instance);
  lead.tenancy.run_since.reset();
  lead.tenancy.requests.erase(id);
  Gpu& gpu = node_.gpus.at(lead.tenancy.gpu);
  if (gpu.loading == lead.id) gpu.loading = {};
  if (lead.tenancy.requests.empty()) Revoke(lead);
}

void Leases::LearnRunTime(const Instance& lead) {
  if (!lead.tenancy.run_since) return;
  FunctionState& function = node_.functions.at(lead.function);
  RecentMedian& time = function.run_times.of(lead.tenancy.image_source);
  const std::optional<Duration> before = time.value();
  time.Add(outbox_.now() - *lead.tenancy.run_since);
  if (time.value() == before) return;
  for (const InstanceId id : function.instances) {
    node_.ForEachShard(node_.instances.at(id), [this](Instance& shard) { images_.Rank(shard); });
  }
  queue_.Reorder(function);
}

bool Leases::MayRevoke(const Request& request, const Instance& holder) {
  if (holder.tenancy.phase != Phase::kLeased || !holder.tenancy.is_implicit) return false;
  const TimePoint from =
      holder.tenancy.granted_at +
      (request.is_implicit ? options_.implicit_quantum : options_.implicit_quantum_for_request);
  if (outbox_.now() >= from) return true;
  outbox_.WakeAt(from);
  return false;
}

}  // namespace torpor::scheduler
