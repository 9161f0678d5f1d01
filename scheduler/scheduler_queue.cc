#include <algorithm>

#include "scheduler/scheduler.h"

// Who gets which GPU.
namespace torpor::scheduler {

void Scheduler::ServeQueue() {
  std::set<GpuIndex> claimed;
  std::set<InstanceId> unserved;
  int passed_over = 0;
  while (queue_.size() > unserved.size()) {
    const std::vector<GpuIndex> open = choice_.OpenGpus(claimed);
    if (open.empty()) return;
    const std::size_t claimed_before = claimed.size();
    bool is_any_new = false;
    // Twice as many each time: together they cost no more than the last.
    const std::size_t count = 2 * unserved.size() + open.size();
    for (const InstanceId id : queue_.First(count, open)) {
      if (unserved.count(id) > 0) continue;
      is_any_new = true;
      Instance& lead = node_.instances.at(id);
      // The order may be another one then.
      if (queue_.StepAside(lead) || Serve(lead, claimed)) break;
      unserved.insert(id);
      if (claimed.size() > claimed_before) break;
      if (choice_.MayRunOnAny(lead, open) && ++passed_over == kMaxPassedOver) return;
    }
    if (!is_any_new) return;
  }
}

bool Scheduler::Serve(Instance& lead, std::set<GpuIndex>& claimed) {
  if (node_.IsTooLarge(lead)) {
    queue_.RefuseAll(lead, Refusal::kTooLarge);
    return true;
  }
  if (!choice_.MayRunAnywhere(lead)) {
    queue_.RefuseAll(lead, Refusal::kNoRoom);
    return true;
  }
  const GpuChoice::Chosen chosen = choice_.Choose(lead, claimed, outbox_.now());
  if (!chosen.gpus.empty()) {
    leases_.Begin(lead, chosen);
    // Where nothing is evicted, the room may have gone to another image: that would be found again
    // and again.
    return !lead.tenancy.is_idle();
  }
  if (chosen.is_waiting_better) {
    NoteChoice(lead);
  } else {
    RevokeFor(lead, claimed);
  }
  return false;
}

void Scheduler::NoteChoice(Instance& lead) {
  choosing_.insert(lead.id);
  lead.wait.chosen_at = outbox_.now();
  for (const auto& [gpu, copy] : lead.image.copies) {
    if (copy.state == Copy::State::kPresent) lead.wait.awaited = gpu;
  }
  // To be asked again while the instance can still be in time.
  const TimePoint latest_start = node_.FirstOf(lead).deadline - node_.ExpectedRun(lead);
  const Duration half = (latest_start - outbox_.now()) / 2;
  outbox_.WakeAt(outbox_.now() + std::max<Duration>(half, std::chrono::milliseconds(1)));
}

void Scheduler::EndChoices() {
  for (const InstanceId id : choosing_) {
    Wait& wait = node_.instances.at(id).wait;
    wait.by_choice = wait.by_choice_until(outbox_.now());
    wait.chosen_at.reset();
  }
  choosing_.clear();
}

void Scheduler::RevokeFor(Instance& lead, std::set<GpuIndex>& claimed) {
  const Request& request = node_.FirstOf(lead);
  node_.ForEachShard(lead, [&](const Instance& shard) { ClaimGpu(request, shard, claimed); });
}

void Scheduler::ClaimGpu(const Request& request, const Instance& shard,
                         std::set<GpuIndex>& claimed) {
  const auto& copies = shard.image.copies;
  std::optional<GpuIndex> held;
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.is_up || !choice_.MayRunOn(shard, gpu) || claimed.count(id) > 0) continue;
    // Free, but not as many as the instance needs: kept for it, or it would wait for ever.
    const bool is_free_soon =
        !gpu.tenant || node_.instances.at(gpu.tenant).tenancy.phase == Phase::kRevoked;
    if (is_free_soon) {
      claimed.insert(id);
      return;
    }
    const bool is_better = !held || (copies.count(id) > 0 && copies.count(*held) == 0);
    if (is_better && leases_.MayRevoke(request, node_.LeadOf(gpu.tenant))) held = id;
  }
  if (!held) return;
  claimed.insert(*held);
  node_.LeadOf(shard.id).wait.has_revoked = true;
  leases_.Revoke(node_.LeadOf(node_.gpus.at(*held).tenant));
}

}  // namespace torpor::scheduler
