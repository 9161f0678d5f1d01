#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/secret.h"
#include "server/controller/controller.h"
#include "server/controller/cuda_errors.h"

// Memory that processes of a function share: one names an allocation by a token, others open it.
// It stays where its owner has it, in the owner's image and at its address.
namespace torpor::server {
void Controller::Handle(const SessionPtr& session, const wire::ShareMemory& call) {
  const Bytes offset = call.address - session->device_base;
  const auto known = session->shared_blocks.find(offset);
  const bool is_freed = known != session->shared_blocks.end() && known->second.is_freed;
  if (is_freed || !session->device->Find(offset)) {
    session->link->Send(
        wire::ShareMemoryReply{call.request_id,
                               kCudaErrorInvalidValue,
                               absl::StrCat("no allocation begins at 0x", absl::Hex(call.address)),
                               {}});
    return;
  }
  instances_.at(session->instance).is_sharing = true;
  const auto [shared, is_new] = session->shared_blocks.try_emplace(offset);
  if (is_new) shared->second.token = NewSessionKey();
  session->link->Send(
      wire::ShareMemoryReply{call.request_id, kCudaSuccess, "", shared->second.token});
}

std::optional<Controller::Shared> Controller::FindShared(const Session& session,
                                                         const wire::OpenMemory& call) const {
  const SessionPtr owner = FindSession(SessionId{call.owner_session});
  if (!owner || owner->instance != session.instance || owner->state != Session::State::kOpen) {
    return std::nullopt;
  }
  const Bytes offset = call.address - owner->device_base;
  const auto block = owner->shared_blocks.find(offset);
  const bool is_it = block != owner->shared_blocks.end() && !block->second.is_freed &&
                     SecretsEqual(block->second.token, call.token);
  return is_it ? std::optional(Shared{owner, offset}) : std::nullopt;
}

void Controller::Handle(const SessionPtr& session, const wire::OpenMemory& call) {
  const auto refuse = [session, call](std::int32_t error, std::string why) {
    session->link->Send(wire::OpenMemoryReply{call.request_id, error, std::move(why)});
  };
  const std::optional<Shared> found = FindShared(*session, call);
  if (!session->has_arena() || !found) {
    return refuse(kCudaErrorInvalidResourceHandle,
                  "no open session of this function shares memory by this handle");
  }
  const auto& [owner, offset] = *found;
  if (owner->first == session->id) {
    return refuse(kCudaErrorDeviceUninitialized, "a process cannot open memory of its own");
  }
  if (!session->opened_blocks.emplace(owner->id, offset).second) {
    return refuse(kCudaErrorInvalidResourceHandle, "the process has this memory open already");
  }
  owner->shared_blocks.at(offset).openers.insert(session->id);
  owner->was_opened = true;
  const wire::OpenMemoryReply reply = {call.request_id,
                                       kCudaSuccess,
                                       "",
                                       owner->device->Find(offset)->bytes,
                                       owner->device_index,
                                       owner->device_base,
                                       owner->device_bytes};
  MakeReachable(owner, [=, this, owner = owner->id, offset = offset](const absl::Status& status) {
    if (status.ok()) return session->link->Send(reply);
    if (session->opened_blocks.erase({owner, offset}) > 0) CloseShared(owner, offset, session->id);
    refuse(kCudaErrorMemoryAllocation, std::string(status.message()));
  });
}

void Controller::MakeReachable(const SessionPtr& owner,
                               const std::function<void(absl::Status)>& then) {
  const std::optional<Lease>& lease = instances_.at(owner->instance).lease;
  // Whoever gets the next lease gets it with all that is shared.
  if (!lease) return then(absl::OkStatus());
  // The opener may be at work.
  NoteChanges(*owner, *lease);
  SwapInSession(owner, GpuOf(*lease, *owner), [=, this](const OperationResult& result) {
    if (!result.status.ok()) return then(result.status);
    owner->steps.Add([this, owner, then](const StepQueue::Finish& finish) {
      const auto done = [then, finish](const absl::Status& status) {
        then(status);
        finish();
      };
      const auto share = [this, owner, done] {
        if (!owner->resident || owner->is_leaving) return done(absl::OkStatus());
        ShareWithPeers(owner, done);
      };
      if (!owner->is_arriving) return share();
      owner->on_arrival.push_back(share);
    });
  });
}

void Controller::Handle(const SessionPtr& session, const wire::CloseMemory& call) {
  const SessionPtr owner = FindSession(SessionId{call.owner_session});
  const Bytes offset = owner ? call.address - owner->device_base : 0;
  if (!owner || session->opened_blocks.erase({owner->id, offset}) == 0) {
    return Reply(*session, call.request_id, kCudaErrorInvalidValue,
                 absl::StrCat("the process has nothing open at 0x", absl::Hex(call.address)), 0);
  }
  CloseShared(owner->id, offset, session->id);
  Reply(*session, call.request_id, kCudaSuccess, "", 0);
}

bool Controller::IsOpenedByOthers(const Session& session) {
  return std::any_of(session.shared_blocks.begin(), session.shared_blocks.end(),
                     [](const auto& shared) { return !shared.second.openers.empty(); });
}

Controller::FreeTime Controller::NoteFree(Session& session, Bytes offset) {
  const auto shared = session.shared_blocks.find(offset);
  if (shared == session.shared_blocks.end()) return FreeTime::kNow;
  if (std::exchange(shared->second.is_freed, true)) return FreeTime::kFreedAlready;
  if (!shared->second.openers.empty()) return FreeTime::kWhenClosed;
  session.shared_blocks.erase(shared);
  return FreeTime::kNow;
}

void Controller::CloseShared(SessionId owner, Bytes offset, SessionId opener) {
  const SessionPtr session = FindSession(owner);
  if (!session) return;
  SharedBlock& block = session->shared_blocks.at(offset);
  block.openers.erase(opener);
  if (!block.openers.empty()) return;
  const bool is_freed = block.is_freed;
  if (is_freed) session->shared_blocks.erase(offset);
  const bool is_unused = session->is_kept && !IsOpenedByOthers(*session);
  if (is_unused) session->is_kept = false;
  session->steps.Add([=, this](const StepQueue::Finish& finish) {
    if (is_unused) return FinishClosing(session, finish);
    if (!is_freed) return finish();
    FreeNow(session, offset, [finish](bool) { finish(); });
  });
}

void Controller::CloseAllShared(Session& opener) {
  for (const auto& [owner, offset] : std::exchange(opener.opened_blocks, {})) {
    CloseShared(owner, offset, opener.id);
  }
}

std::vector<Controller::SessionPtr> Controller::OwnersOpenedBy(const Session& session) const {
  std::vector<SessionPtr> owners;
  const SessionPtr first = FindSession(session.first);
  if (!first) return owners;
  for (const auto& [owner, offset] : first->opened_blocks) owners.push_back(FindSession(owner));
  return owners;
}

}  // namespace torpor::server
