#include "server/controller/memory/shared_allocations.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/controller/memory/memory_reply.h"
#include "server/controller/model/cuda_errors.h"

namespace torpor::server {
namespace {

// Replays do not reach other sessions' memory.
void EndWithTorpord(const ClientSession& session) {
  if (session.journal) session.journal->Exclude(session, "its processes share GPU memory");
}

}  // namespace

void SharedAllocations::Share(const SessionPtr& session, const wire::ShareMemory& call) {
  const Bytes offset = call.address - session->memory.device_base;
  if (session->shared.IsFreed(offset) || !session->memory.device->Find(offset)) {
    session->link->Send(
        wire::ShareMemoryReply{call.request_id,
                               kCudaErrorInvalidValue,
                               absl::StrCat("no allocation begins at 0x", absl::Hex(call.address)),
                               {}});
    return;
  }
  EndWithTorpord(*session);
  FunctionInstance& instance = instances_.Of(*session);
  if (!std::exchange(instance.is_sharing, true)) {
    for (const SessionPtr& sharing : sessions_.Of(instance)) swaps_.DropReplicas(sharing);
  }
  session->link->Send(
      wire::ShareMemoryReply{call.request_id, kCudaSuccess, "", session->shared.Share(offset)});
}

std::optional<SharedAllocations::Found> SharedAllocations::Find(
    const ClientSession& session, const wire::OpenMemory& call) const {
  const SessionPtr owner = sessions_.Find(SessionId{call.owner_session});
  if (!owner || owner->instance != session.instance ||
      owner->state != ClientSession::State::kOpen) {
    return std::nullopt;
  }
  const Bytes offset = call.address - owner->memory.device_base;
  if (!owner->shared.Matches(offset, call.token)) return std::nullopt;
  return Found{owner, offset};
}

void SharedAllocations::Open(const SessionPtr& session, const wire::OpenMemory& call) {
  const auto refuse = [session, call](std::int32_t error, std::string why) {
    session->link->Send(wire::OpenMemoryReply{call.request_id, error, std::move(why)});
  };
  const std::optional<Found> found = Find(*session, call);
  if (!session->has_arena() || !found) {
    return refuse(kCudaErrorInvalidResourceHandle,
                  "no open session of this function shares memory by this handle");
  }
  const auto& [owner, offset] = *found;
  if (owner->domain != session->domain) {
    return refuse(kCudaErrorInvalidResourceHandle,
                  "the function's tenant or isolation has changed between the starts of the two "
                  "processes; start both anew");
  }
  if (owner->primary == session->id) {
    return refuse(kCudaErrorDeviceUninitialized, "a process cannot open memory of its own");
  }
  if (!session->opened_blocks.emplace(owner->id, offset).second) {
    return refuse(kCudaErrorInvalidResourceHandle, "the process has this memory open already");
  }
  EndWithTorpord(*session);
  owner->shared.Open(offset, session->id);
  const wire::OpenMemoryReply reply = {call.request_id, kCudaSuccess, "",
                                       owner->memory.device->Find(offset)->bytes,
                                       owner->device_index};
  MakeReachable(owner, [=, this, owner = owner->id, offset = offset](const absl::Status& status) {
    if (status.ok()) return session->link->Send(reply);
    if (session->opened_blocks.erase({owner, offset}) > 0) CloseBlock(owner, offset, session->id);
    refuse(kCudaErrorMemoryAllocation, std::string(status.message()));
  });
}

void SharedAllocations::MakeReachable(const SessionPtr& owner,
                                      const std::function<void(absl::Status)>& then) {
  const std::optional<InstanceLease>& lease = instances_.Of(*owner).lease;
  if (!lease) return then(absl::OkStatus());
  // The opener may be at work.
  owner->image.NoteLease(lease->id, lease->is_explicit);
  swaps_.SwapIn(owner, GpuOf(*lease, *owner), [=, this](const OperationResult& result) {
    if (!result.status.ok()) return then(result.status);
    ShareWhenArrived(owner, then);
  });
}

void SharedAllocations::ShareWhenArrived(const SessionPtr& owner,
                                         const std::function<void(absl::Status)>& then) {
  owner->steps.Add([this, owner, then](const StepQueue::Finish& finish) {
    const auto done = [then, finish](const absl::Status& status) {
      then(status);
      finish();
    };
    const auto share = [this, owner, done] {
      if (!owner->image.gpu() || owner->image.is_leaving()) return done(absl::OkStatus());
      peers_.Share(owner, done);
    };
    if (!owner->image.is_arriving()) return share();
    owner->image.AfterArrival(share);
  });
}

void SharedAllocations::Close(const SessionPtr& session, const wire::CloseMemory& call) {
  const SessionPtr owner = sessions_.Find(SessionId{call.owner_session});
  const Bytes offset = owner ? call.address - owner->memory.device_base : 0;
  if (!owner || session->opened_blocks.erase({owner->id, offset}) == 0) {
    return SendMemoryReply(
        *session, call.request_id, kCudaErrorInvalidValue,
        absl::StrCat("the process has nothing open at 0x", absl::Hex(call.address)), 0);
  }
  CloseBlock(owner->id, offset, session->id);
  SendMemoryReply(*session, call.request_id, kCudaSuccess, "", 0);
}

void SharedAllocations::CloseBlock(SessionId owner, Bytes offset, SessionId opener) {
  const SessionPtr session = sessions_.Find(owner);
  if (!session) return;
  const SharedBlocks::Closed closed = session->shared.Close(offset, opener);
  if (closed == SharedBlocks::Closed::kStillOpen) return;
  const bool is_unused = session->is_kept && !session->shared.is_open();
  if (is_unused) session->is_kept = false;
  session->steps.Add([=, this](const StepQueue::Finish& finish) {
    if (is_unused) return finish_closing_(session, finish);
    if (closed != SharedBlocks::Closed::kFreed) return finish();
    allocations_.FreeNow(session, offset, [finish](bool) { finish(); });
  });
}

void SharedAllocations::CloseAll(ClientSession& opener) {
  for (const auto& [owner, offset] : std::exchange(opener.opened_blocks, {})) {
    CloseBlock(owner, offset, opener.id);
  }
}

}  // namespace torpor::server
