#include "server/controller/memory/host_room.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/settings/value_text.h"

namespace torpor::server {
namespace {

using State = ImageSpill::State;

// One part in so many of the budget is kept free.
constexpr Bytes kFreeShare = 16;

// Within this time leases of other sessions end, and disks write.
constexpr Duration kPatience = std::chrono::seconds(30);

// As long as somebody waits.
constexpr Duration kPeriod = std::chrono::milliseconds(5);
constexpr Duration kEvictionPatience = std::chrono::seconds(1);

}  // namespace

void HostRoom::AwaitFor(const memory::RangeAllocator& allocator, Bytes bytes, Task then) {
  const Bytes budget = segments_.host_memory().budget;
  if (!store_.is_on() || bytes > budget) return then();
  // An allocation may begin a chunk, and end in another one.
  const Bytes chunk = allocator.chunk_bytes();
  const Bytes needed = std::min(budget, RoundUp(bytes, chunk) + chunk);
  if (HasRoom(needed)) return then();
  allocations_.push_back({needed, std::nullopt, [then = std::move(then)](bool) { then(); }});
  Advance();
}

void HostRoom::BringBack(const SessionPtr& session, const Then& then) {
  BringBackUntil(loop_.Now() + kPatience, session, then);
}

void HostRoom::BringBackUntil(TimePoint until, const SessionPtr& session, const Then& then) {
  if (!session->memory.spill.is_on_disk()) return then(absl::OkStatus());
  const Bytes bytes = session->memory.device->occupied_bytes();
  const auto read = [this, session, bytes, then](bool has_room) {
    if (has_room) return Read(session, then);
    then(absl::ResourceExhaustedError(absl::StrCat(
        "host memory has no room for ", FormatBytes(bytes),
        " that come from the disk; raise host_memory, or run fewer functions on the node")));
  };
  returns_.push_back({bytes, until, read});
  Advance();
}

void HostRoom::Read(const SessionPtr& session, const Then& then) {
  store_.BringBack(session, [this, session, then](const absl::Status& status) {
    NoteMoved(*session);
    if (!status.ok()) {
      on_lost_(session, absl::StrCat("its memory could not be read from the disk: ",
                                     std::string(status.message())));
    }
    then(status);
  });
  segments_.Settle(*session);
}

void HostRoom::NoteMoved(ClientSession& session) {
  segments_.Settle(session);
  events_.Feed(
      scheduler::ImageSpilled{instances_.ShardOf(session), session.memory.spill.is_on_disk()});
}

void HostRoom::OnArrival(const scheduler::RequestArrived& request) {
  if (!store_.is_on()) return;
  if (request.instance) return ReturnAhead(request.instance);
  const std::vector<InstanceId>& instances =
      scheduler_.node().functions.at(request.function).instances;
  if (instances.size() == 1) ReturnAhead(instances.front());
}

void HostRoom::ReturnAhead(InstanceId instance) {
  for (const SessionPtr& session : sessions_.Of(instances_.At(instance))) {
    SpillStore::NoteWanted(*session);
    if (!session->memory.spill.is_on_disk()) continue;
    session->steps.Add([this, session](const StepQueue::Finish& finish) {
      const bool is_on_disk = session->memory.spill.is_on_disk();
      if (!is_on_disk || !HasRoom(session->memory.device->occupied_bytes())) return finish();
      Read(session, [finish](const absl::Status&) { finish(); });
    });
  }
}

void HostRoom::Advance() {
  if (std::exchange(is_advancing_, true)) return;
  Serve(allocations_);
  if (allocations_.empty()) Serve(returns_);
  is_advancing_ = false;
  if (!allocations_.empty() || !returns_.empty()) AdvanceLater();
}

// Leases, evictions and steps of sessions end without a word to this object.
void HostRoom::AdvanceLater() {
  if (std::exchange(is_timer_set_, true)) return;
  loop_.RunAt(loop_.Now() + kPeriod, [this] {
    is_timer_set_ = false;
    Advance();
  });
}

void HostRoom::KeepFree() {
  if (!store_.is_on()) return;
  Advance();
  if (is_spilling_ || HasRoom(segments_.host_memory().budget / kFreeShare)) return;
  if (const SessionPtr idle = Choose(Demand::kNone, /*is_on_gpu=*/false)) Spill(idle);
}

void HostRoom::Serve(std::deque<Waiter>& waiters) {
  while (!waiters.empty()) {
    const bool has_room = HasRoom(waiters.front().bytes);
    const std::optional<TimePoint> until = waiters.front().until;
    const bool has_given_up = until && loop_.Now() >= *until;
    if (!has_room && !has_given_up && (IsMakingRoom() || until)) return;
    const Waiter waiter = std::move(waiters.front());
    waiters.pop_front();
    waiter.then(has_room);
  }
}

bool HostRoom::IsMakingRoom() {
  if (is_spilling_ || IsEvicting()) return true;
  for (const Demand demand : {Demand::kNone, Demand::kWaiting}) {
    if (const SessionPtr here = Choose(demand, /*is_on_gpu=*/false)) {
      Spill(here);
      return true;
    }
    if (const SessionPtr resident = Choose(demand, /*is_on_gpu=*/true)) {
      Evict(resident);
      return true;
    }
  }
  return IsAnyBusy();
}

bool HostRoom::IsAnyBusy() const {
  const auto& all = sessions_.all();
  return std::any_of(all.begin(), all.end(), [this](const auto& entry) {
    const ClientSession& session = *entry.second;
    return session.memory.files && !session.steps.idle() && MaySpill(session);
  });
}

bool HostRoom::IsEvicting() const {
  const SessionPtr session = sessions_.Find(evicted_);
  // The scheduler may decide otherwise.
  if (!session || loop_.Now() - evicted_at_ >= kEvictionPatience) return false;
  const scheduler::Instance& known = scheduler_.node().instances.at(session->instance);
  return known.tenancy.is_idle() && !known.image.copies.empty();
}

void HostRoom::Evict(const SessionPtr& session) {
  evicted_ = session->id;
  evicted_at_ = loop_.Now();
  // Posted: this may be within another decision.
  loop_.Post([this, session] {
    if (!MaySpill(*session)) return;
    events_.Feed(scheduler::EvictionWanted{instances_.ShardOf(*session)});
  });
}

void HostRoom::Spill(const SessionPtr& session) {
  is_spilling_ = true;
  session->steps.Add([this, session](const StepQueue::Finish& finish) {
    const auto done = [this, session, finish](const absl::Status& status) {
      is_spilling_ = false;
      if (status.ok()) NoteMoved(*session);
      finish();
      // An image in use is not chosen again before something changes.
      if (!absl::IsAborted(status)) loop_.Post([this] { KeepFree(); });
    };
    // Earlier steps may have brought the image to a GPU.
    const bool is_here = session->is_announced && session->memory.spill.state == State::kInMemory;
    const bool is_idle = !session->image.gpu() && session->image.replicas().empty();
    if (is_here && is_idle && MaySpill(*session)) return store_.Spill(session, done);
    done(absl::AbortedError("the image is in use"));
  });
}

bool HostRoom::MaySpill(const ClientSession& session) const {
  if (!session.is_able() || session.lease.id) return false;
  const FunctionInstance& instance = instances_.Of(session);
  const bool is_alone = instance.shards.size() == 1 && !instance.is_sharing &&
                        !session.shared.was_opened() && sessions_.PeersOf(session).empty();
  // Shared blocks stay.
  const Bytes occupied = session.memory.device->occupied_bytes();
  const Bytes bytes = occupied - std::min(occupied, session.memory.tenant_blocks.bytes());
  const bool has_image = bytes > 0 && session.memory.spill.state == State::kInMemory;
  if (!is_alone || !has_image || !store_.TakesNow(bytes)) return false;
  const scheduler::Instance& known = scheduler_.node().instances.at(instance.id);
  return known.tenancy.is_idle() && !known.image.is_pinned;
}

SessionPtr HostRoom::Choose(Demand demand, bool is_on_gpu) const {
  SessionPtr least;
  double least_use = 0;
  for (const auto& [id, session] : sessions_.all()) {
    if (!session->memory.files || !session->steps.idle() || !MaySpill(*session)) continue;
    const scheduler::Instance& known = scheduler_.node().instances.at(session->instance);
    const bool is_of_kind = known.waiting.empty() == (demand == Demand::kNone) &&
                            known.image.copies.empty() != is_on_gpu;
    if (!is_of_kind || (least && known.image.log_use >= least_use)) continue;
    least = session;
    least_use = known.image.log_use;
  }
  return least;
}

}  // namespace torpor::server
