#include "server/controller/images/image_swaps.h"

#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/controller/model/join.h"
#include "server/controller/model/session_journal.h"

namespace torpor::server {
namespace {

// Bytes written back at a time on an idle GPU. A request waits for such a part at most: about a
// third of a millisecond on a link of 25 GB/s, and another third if host memory must be pinned
// first.
constexpr Bytes kPartBytes = 8 * kMiB;

bool IsDrop(WriteBackReason reason) {
  return reason == WriteBackReason::kEviction || reason == WriteBackReason::kMove;
}

}  // namespace

GpuIndex GpuOf(const InstanceLease& lease, const ClientSession& session) {
  return lease.gpus.at(static_cast<std::size_t>(session.device_index));
}

void ImageSwaps::AddStep(const SessionPtr& session, GpuIndex gpu, const OnDone& then,
                         const StepQueue::Step& step) {
  const std::uint64_t epoch = executors_.EpochOf(session->On(gpu));
  session->steps.Add([this, session, gpu, epoch, then, step](const StepQueue::Finish& finish) {
    // 0: there was none yet.
    if (epoch == 0 || executors_.EpochOf(session->On(gpu)) == epoch) return step(finish);
    then(OperationResult::Lost());
    finish();
  });
}

void ImageSwaps::SwapIn(const SessionPtr& session, GpuIndex gpu, const OnDone& then,
                        std::optional<GpuIndex> source) {
  AddStep(session, gpu, then, [this, session, gpu, source, then](const StepQueue::Finish& finish) {
    SwapInNow(session, gpu, source, then, finish);
  });
}

bool ImageSwaps::IsNeededOn(const ClientSession& session, GpuIndex gpu) const {
  const bool is_used = !session.is_lost || session.shared.is_open();
  return session.is_announced && is_used && !session.image.IsOn(gpu);
}

void ImageSwaps::SwapInNow(const SessionPtr& session, GpuIndex gpu, std::optional<GpuIndex> source,
                           const OnDone& then, const StepQueue::Finish& finish) {
  ImageState& image = session->image;
  // Openers of the image's memory cannot tell on which copies their work depends.
  if (image.IsOn(gpu) && image.is_arriving() && !sessions_.PeersOf(*session).empty()) {
    return image.AfterArrival([session, gpu, then, finish] {
      then(session->image.IsOn(gpu) ? OperationResult() : OperationResult::Lost());
      finish();
    });
  }
  if (!IsNeededOn(*session, gpu)) {
    then({});
    return finish();
  }
  const std::uint64_t epoch = executors_.EpochOf(session->On(gpu));
  const auto bring = [=, this](std::optional<GpuIndex> ready) {
    // The executor may have died meanwhile, or the session have lost its state with another one.
    const bool is_same = executors_.EpochOf(session->On(gpu)) == epoch;
    if (is_same && IsNeededOn(*session, gpu)) return Bring(session, gpu, ready, then, finish);
    then(is_same ? OperationResult() : OperationResult::Lost());
    finish();
  };
  returns_.BringBack(session, [=, this](const absl::Status& here) {
    if (!here.ok()) {
      OperationResult failed;
      failed.status = here;
      then(failed);
      return finish();
    }
    LeaveOthers(session, gpu, [=, this] {
      // Of the swap-in before, in case that its end is not known yet.
      ReleaseSource(session,
                    [=, this](const OperationResult&) { PrepareSource(session, source, bring); });
    });
  });
}

void ImageSwaps::Bring(const SessionPtr& session, GpuIndex gpu, std::optional<GpuIndex> source,
                       const OnDone& then, const StepQueue::Finish& finish) {
  session->image.SetSource(source);
  v1::DaemonMessage message = SwapInMessage(*session, gpu, source);
  session->image.BeginArrival(gpu);
  executors_.Run(session->On(gpu), std::move(message), [=, this](const OperationResult& result) {
    if (!result.status.ok()) {
      EndArrival(*session);
      if (!result.is_executor_lost && session->image.HasReplicaOn(gpu)) {
        return BringAnew(session, gpu, source, then, finish);
      }
      session->image.SetSource(std::nullopt);
      then(result);
      return finish();
    }
    session->image.Land(gpu);
    peers_.Share(session, [result, then, finish](const absl::Status& status) {
      OperationResult shared = result;
      shared.status = status;
      then(shared);
      finish();
    });
  });
}

v1::DaemonMessage ImageSwaps::SwapInMessage(ClientSession& session, GpuIndex gpu,
                                            std::optional<GpuIndex> source) const {
  v1::DaemonMessage message;
  auto& what = *message.mutable_swap_in();
  what.set_session_id(session.id.value);
  session.learning.Plan(*session.memory.device, session.memory.growth, *what.mutable_live());
  if (source) {
    what.set_source_socket_path(executors_.RegistrationOf(session.On(*source)).peer_socket_path());
  }
  // Work of peers cannot tell which copies to wait for.
  what.set_is_whole(!sessions_.PeersOf(session).empty());
  what.set_refreshes(session.image.HasReplicaOn(gpu));
  return message;
}

void ImageSwaps::SwapInWithPeers(const SessionPtr& session, const InstanceLease& lease,
                                 const Task& then) {
  Join join([then](const absl::Status&) { then(); });
  std::vector<SessionPtr> peers = sessions_.PeersOf(*session);
  peers.push_back(session);
  for (const SessionPtr& peer : peers) {
    join.Add();
    SwapIn(peer, GpuOf(lease, *peer),
           [join](const OperationResult& result) { join.Done(result.status); });
  }
  join.Done();
}

void ImageSwaps::EndArrival(ClientSession& session) {
  // Posted, because the scheduler may not have heard yet of a loss in progress.
  for (Task& task : session.image.EndArrival()) loop_.Post(std::move(task));
  loop_.Post(arrived_);
}

void ImageSwaps::SwapOut(const SessionPtr& session, GpuIndex gpu, WriteBackReason reason,
                         const OnDone& then) {
  // Other steps of the session need not wait for the copies from a replica.
  if (IsDrop(reason) && session->image.source() == gpu && session->image.is_arriving()) {
    const std::uint64_t epoch = executors_.EpochOf(session->On(gpu));
    session->image.NoteReplicaGoing(gpu);
    return session->image.AfterArrival([=, this] {
      if (executors_.EpochOf(session->On(gpu)) != epoch) return then(OperationResult::Lost());
      SwapOut(session, gpu, reason, then);
    });
  }
  AddStep(session, gpu, then, [this, session, gpu, reason, then](const StepQueue::Finish& finish) {
    if (session->is_announced && session->image.HasReplicaOn(gpu) && IsDrop(reason)) {
      return DropReplica(session, gpu, [then, finish](const OperationResult& result) {
        then(result);
        finish();
      });
    }
    if (!session->is_announced || !session->image.IsOn(gpu)) {
      then({});
      return finish();
    }
    if (!IsDrop(reason)) return WriteBack(session, gpu, reason, /*drop=*/false, then, finish);
    Leave(session, gpu, reason, then, finish);
  });
}

void ImageSwaps::Leave(const SessionPtr& session, GpuIndex gpu, WriteBackReason reason,
                       const OnDone& then, const StepQueue::Finish& finish) {
  session->image.BeginLeaving();
  peers_.Withdraw(session, PeerAccess::Keep::kNothing, [=, this] {
    peers_.ForgetPeersAt(
        session, gpu, [=, this] { WriteBack(session, gpu, reason, /*drop=*/true, then, finish); });
  });
}

v1::DaemonMessage ImageSwaps::SwapOutMessage(const ClientSession& session, WriteBackReason reason,
                                             bool drop) const {
  const bool is_part = reason == WriteBackReason::kIdle;
  v1::DaemonMessage message;
  auto& what = *message.mutable_swap_out();
  what.set_session_id(session.id.value);
  what.set_drop(drop);
  what.set_is_shared(session.shared.was_opened());
  what.set_becomes_source(reason == WriteBackReason::kMove && !drop);
  what.set_forgets_changes(IsDrop(reason) && ForgetsChanges(session));
  // Looking at the whole image takes longer than a newcomer may have to wait.
  what.set_search_whole_image(!is_part && session.learning.should_search_whole_image());
  if (is_part) what.set_max_bytes(kPartBytes);
  return message;
}

void ImageSwaps::WriteBack(const SessionPtr& session, GpuIndex gpu, WriteBackReason reason,
                           bool drop, const OnDone& then, const StepQueue::Finish& finish) {
  const LeaseId saved = session->image.unsaved_lease();
  executors_.Run(session->On(gpu), SwapOutMessage(*session, reason, drop),
                 [=, this](const OperationResult& result) {
                   if (drop) session->image.EndLeaving(/*is_dropped=*/result.status.ok());
                   if (result.status.ok()) {
                     session->learning.OnSwapOut(result.learned);
                     if (!result.has_more) {
                       session->image.NoteSaved(saved);
                       if (session->journal) session->journal->NoteUnsaved(*session);
                       TellSaved(*session);
                     }
                     telemetry_.OnSwapOut({instances_.Of(*session).config().name, gpu,
                                           SwapPath::kPcie, result.to_host, result.duration},
                                          reason);
                   } else if (reason == WriteBackReason::kIdle) {
                     spdlog::warn("GPU {}: not written back while idle: {}", gpu.value,
                                  result.status.ToString());
                   } else if (!result.is_executor_lost) {
                     // The GPU's copy can be neither kept nor trusted; the host's image remains.
                     executors_.Kill(session->On(gpu),
                                     absl::StrCat("swap-out failed: ", result.status.ToString()));
                   }
                   then(result);
                   finish();
                 });
}

void ImageSwaps::TellSaved(const ClientSession& session) const {
  if (!session.is_able() || !instances_.Of(session).config().survives()) return;
  session.link->Send(wire::MemorySaved{session.memory.files->checkpoint().saved_command()});
}

bool ImageSwaps::ForgetsChanges(const ClientSession& session) const {
  return instances_.Of(session).config().is_stateless && !session.image.unsaved_lease() &&
         !session.shared.was_opened();
}

SessionPtr ImageSwaps::UnsavedSessionOf(const Shard& shard, GpuIndex gpu) const {
  for (const SessionPtr& session : sessions_.Of(shard)) {
    const ImageState& image = session->image;
    // Memory reached by other sessions may change unseen.
    const bool is_alone = !session->shared.was_opened() && sessions_.PeersOf(*session).empty();
    const bool is_here = session->is_able() && image.IsOn(gpu) && !image.is_leaving();
    if (is_here && is_alone && image.has_changes() && !ForgetsChanges(*session)) return session;
  }
  return nullptr;
}

}  // namespace torpor::server
