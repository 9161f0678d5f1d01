#include "server/controller/images/image_moves.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace torpor::server {

void ImageMoves::Move(const SessionPtr& session, GpuIndex from, GpuIndex to, const OnDone& arrived,
                      const OnDone& left) {
  const std::uint64_t epoch = executors_.At(from).epoch();
  const auto left_it = [this, from, epoch, left](const OperationResult& result) {
    left(executors_.At(from).epoch() == epoch ? result : OperationResult::Lost());
  };
  PrepareSource(session, from);
  swaps_.SwapIn(session, to, [=, this](const OperationResult& result) {
    arrived(result);
    LeaveSource(session, from, to, left_it);
  });
}

void ImageMoves::PrepareSource(const SessionPtr& session, GpuIndex gpu) {
  const auto nothing = [](const OperationResult&) {};
  swaps_.AddStep(session, gpu, nothing, [this, session, gpu](const StepQueue::Finish& finish) {
    if (!session->is_announced || !session->image.IsOn(gpu)) return finish();
    PrepareSourceNow(session, gpu, finish);
  });
}

void ImageMoves::PrepareSourceNow(const SessionPtr& session, GpuIndex gpu,
                                  const StepQueue::Finish& finish) {
  // An opener may change the image at any time.
  const bool may_be_source = !session->shared.was_opened() && sessions_.PeersOf(*session).empty();
  auto outcome = std::make_shared<OperationResult>();
  const auto note = [session, gpu, may_be_source, outcome](const OperationResult& result) {
    *outcome = result;
    if (may_be_source && result.status.ok()) session->image.BecomeSource(gpu);
  };
  const auto done = [this, gpu, outcome, finish] {
    // The executor is ending: unsaved changes are lost before the image goes elsewhere.
    const bool is_ending = !outcome->status.ok() && executors_.At(gpu).is_attached();
    if (!is_ending) return finish();
    executors_.AwaitLoss(gpu, [finish](const OperationResult&) { finish(); });
  };
  if (!may_be_source) return swaps_.Leave(session, gpu, WriteBackReason::kMove, note, done);
  swaps_.WriteBack(session, gpu, WriteBackReason::kMove, /*drop=*/false, note, done);
}

void ImageMoves::LeaveSource(const SessionPtr& session, GpuIndex from, GpuIndex to,
                             const OnDone& left) {
  // The swap-in failed.
  if (session->image.IsOn(from)) {
    const auto forget = [session, left](const OperationResult& result) {
      // After a loss the source is forgotten already.
      if (result.status.ok()) session->image.ForgetSource();
      left(result);
    };
    return swaps_.SwapOut(session, from, WriteBackReason::kMove, forget);
  }
  const auto release = [=, this] { ReleaseSource(session, from, to, left); };
  if (!session->image.is_arriving()) return release();
  session->image.AfterArrival(release);
}

void ImageMoves::ReleaseSource(const SessionPtr& session, GpuIndex from, GpuIndex to,
                               const OnDone& left) {
  // Closing lets go of everything.
  if (!session->is_announced) return left({});
  const auto drop = [=, this](const OperationResult&) { DropSource(session, from, left); };
  v1::DaemonMessage message;
  message.mutable_release_source()->set_session_id(session->id.value);
  // Even if the source has died: its successor gets the memory as soon as nobody maps it.
  executors_.Run(to, std::move(message), [this, to, drop](const OperationResult& result) {
    if (result.status_unless_lost().ok()) return drop(result);
    // The executor would keep reaching memory that soon belongs to another function.
    executors_.KillAndAwait(
        to, absl::StrCat("it does not let go of a copy: ", result.status.ToString()), drop);
  });
}

void ImageMoves::DropSource(const SessionPtr& session, GpuIndex gpu, const OnDone& left) {
  if (!session->is_announced || session->image.source() != gpu) return left({});
  v1::DaemonMessage drop;
  drop.mutable_swap_out()->set_session_id(session->id.value);
  drop.mutable_swap_out()->set_drop(true);
  // The resident image has newer changes than this copy.
  drop.mutable_swap_out()->set_forgets_changes(true);
  executors_.Run(gpu, std::move(drop), [this, session, gpu, left](const OperationResult& result) {
    if (result.status.ok()) session->image.ForgetSource();
    if (!result.status_unless_lost().ok()) {
      executors_.Kill(gpu, absl::StrCat("a copy stays: ", result.status.ToString()));
    }
    left(result);
  });
}

}  // namespace torpor::server
