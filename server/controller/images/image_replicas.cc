#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/controller/images/image_swaps.h"
#include "server/controller/model/join.h"

// Copies of an image on other GPUs than the one where it is current.
namespace torpor::server {

bool ImageSwaps::MayBeReplica(const ClientSession& session) const {
  // An opener may change the image at any time.
  return !instances_.Of(session).is_sharing && !session.shared.was_opened() &&
         sessions_.PeersOf(session).empty();
}

void ImageSwaps::LeaveOthers(const SessionPtr& session, GpuIndex gpu, const Task& then) {
  if (!MayBeReplica(*session)) return DropOthers(session, gpu, then);
  if (!session->image.gpu() || session->image.IsOn(gpu)) return then();
  MakeReplica(session, then);
}

void ImageSwaps::MakeReplica(const SessionPtr& session, const Task& then) {
  const GpuIndex at = *session->image.gpu();
  auto outcome = std::make_shared<OperationResult>();
  const auto note = [session, outcome](const OperationResult& result) {
    *outcome = result;
    if (result.status.ok()) session->image.BecomeReplica();
  };
  WriteBack(session, at, WriteBackReason::kMove, /*drop=*/false, note,
            [this, session, at, outcome, then] { AwaitEnd(session->On(at), *outcome, then); });
}

void ImageSwaps::AwaitEnd(ExecutorKey executor, const OperationResult& outcome, const Task& then) {
  // The executor is ending: unsaved changes are lost before the image goes elsewhere.
  const bool is_ending = !outcome.status.ok() && executors_.IsAttached(executor);
  if (!is_ending) return then();
  executors_.AwaitLoss(executor, [then](const OperationResult&) { then(); });
}

void ImageSwaps::DropOthers(const SessionPtr& session, GpuIndex gpu, const Task& then) {
  Join join([then](const absl::Status&) { then(); });
  for (const GpuIndex replica : std::set<GpuIndex>(session->image.replicas())) {
    if (replica == gpu) continue;
    join.Add();
    DropReplica(session, replica, [this, session, replica, join](const OperationResult& result) {
      AwaitEnd(session->On(replica), result, [join] { join.Done(); });
    });
  }
  const std::optional<GpuIndex> at = session->image.gpu();
  if (at && *at != gpu) {
    join.Add();
    auto outcome = std::make_shared<OperationResult>();
    Leave(
        session, *at, WriteBackReason::kMove,
        [outcome](const OperationResult& result) { *outcome = result; },
        [this, session, at = *at, outcome, join] {
          AwaitEnd(session->On(at), *outcome, [join] { join.Done(); });
        });
  }
  join.Done();
}

void ImageSwaps::DropReplicas(const SessionPtr& session) {
  session->steps.Add([this, session](const StepQueue::Finish& finish) {
    DropOthers(session, session->image.gpu().value_or(GpuIndex{-1}), finish);
  });
}

void ImageSwaps::PrepareSource(const SessionPtr& session, std::optional<GpuIndex> source,
                               const std::function<void(std::optional<GpuIndex>)>& then) {
  if (!source || !session->image.HasReplicaOn(*source)) return then(std::nullopt);
  if (!session->image.IsReplicaBehind(*source)) return then(source);
  const auto done = [session, source = *source, then](const OperationResult& result) {
    if (result.status.ok()) {
      session->image.NoteReplicaInStep(source);
      return then(source);
    }
    spdlog::warn("GPU {}: session {} comes from the host, as a copy could not be renewed: {}",
                 source.value, session->id.value, result.status.ToString());
    then(std::nullopt);
  };
  v1::DaemonMessage renew = SwapInMessage(*session, *source, std::nullopt);
  executors_.Run(session->On(*source), std::move(renew),
                 [this, session, source = *source, done](const OperationResult& result) {
                   if (!result.status.ok()) return done(result);
                   v1::DaemonMessage message;
                   message.mutable_swap_out()->set_session_id(session->id.value);
                   message.mutable_swap_out()->set_becomes_source(true);
                   executors_.Run(session->On(source), std::move(message), done);
                 });
}

void ImageSwaps::BringAnew(const SessionPtr& session, GpuIndex gpu, std::optional<GpuIndex> source,
                           const OnDone& then, const StepQueue::Finish& finish) {
  // Without the older copy there may be another place.
  DropReplica(session, gpu, [=, this](const OperationResult& dropped) {
    if (dropped.status.ok()) return Bring(session, gpu, source, then, finish);
    then(dropped);
    finish();
  });
}

void ImageSwaps::DropReplica(const SessionPtr& session, GpuIndex gpu, const OnDone& then) {
  ImageState& image = session->image;
  const auto drop = [this, session, gpu, then](const OperationResult&) {
    DropReplicaNow(session, gpu, then);
  };
  if (image.source() != gpu) return drop({});
  const auto release = [this, session, drop] { ReleaseSource(session, drop); };
  if (!image.is_arriving()) return release();
  image.AfterArrival(release);
}

void ImageSwaps::ReleaseSource(const SessionPtr& session, const OnDone& then) {
  // Closing lets go of everything.
  const std::optional<GpuIndex> source = session->image.source();
  const std::optional<GpuIndex> reader = session->image.arrives_at();
  if (!session->is_announced || !source || !reader) return then({});
  v1::DaemonMessage message;
  message.mutable_release_source()->set_session_id(session->id.value);
  // Even if the source has died: its successor gets the memory as soon as nobody maps it.
  executors_.Run(
      session->On(*reader), std::move(message), [=, this](const OperationResult& result) {
        ImageState& image = session->image;
        if (image.source() == source && image.arrives_at() == reader) image.SetSource(std::nullopt);
        if (result.status_unless_lost().ok()) return then(result);
        // The executor would keep reaching memory that soon belongs to another function.
        executors_.KillAndAwait(
            session->On(*reader),
            absl::StrCat("it does not let go of a copy: ", result.status.ToString()), then);
      });
}

void ImageSwaps::DropReplicaNow(const SessionPtr& session, GpuIndex gpu, const OnDone& then) {
  if (!session->is_announced || !session->image.HasReplicaOn(gpu)) return then({});
  v1::DaemonMessage drop;
  drop.mutable_swap_out()->set_session_id(session->id.value);
  drop.mutable_swap_out()->set_drop(true);
  // The host's image has all that counts.
  drop.mutable_swap_out()->set_forgets_changes(true);
  executors_.Run(session->On(gpu), std::move(drop),
                 [this, session, gpu, then](const OperationResult& result) {
                   if (result.status.ok()) session->image.ForgetReplica(gpu);
                   if (!result.status_unless_lost().ok()) {
                     executors_.Kill(session->On(gpu),
                                     absl::StrCat("a copy stays: ", result.status.ToString()));
                   }
                   then(result);
                 });
}

}  // namespace torpor::server
