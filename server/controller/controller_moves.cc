#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/controller/controller.h"

// An image's way from one GPU to another that has a fast link to it: it is written back where it
// is, copied from there, and dropped there when all has arrived.
namespace torpor::server {

void Controller::MoveSession(const SessionPtr& session, GpuIndex from, GpuIndex to,
                             const Executor::OnDone& arrived, const Executor::OnDone& left) {
  const std::uint64_t epoch = ExecutorOf(from)->epoch();
  const auto left_it = [this, from, epoch, left](const OperationResult& result) {
    left(ExecutorOf(from)->epoch() == epoch ? result : OperationResult::Lost());
  };
  PrepareSource(session, from);
  SwapInSession(session, to, [=, this](const OperationResult& result) {
    arrived(result);
    LeaveSource(session, from, to, left_it);
  });
}

void Controller::PrepareSource(const SessionPtr& session, GpuIndex gpu) {
  const auto nothing = [](const OperationResult&) {};
  AddSwap(session, gpu, nothing, [this, session, gpu](const StepQueue::Finish& finish) {
    if (!session->is_announced || session->resident != gpu) return finish();
    // What others have open of it may be changed at any time.
    const bool may_be_source = !session->was_opened && PeersOf(*session).empty();
    auto outcome = std::make_shared<OperationResult>();
    const auto note = [session, gpu, may_be_source, outcome](const OperationResult& result) {
      *outcome = result;
      if (may_be_source && result.status.ok()) session->source = gpu;
    };
    const auto done = [this, gpu, outcome, finish] {
      // The executor is ended: what was in it alone is lost before the image goes elsewhere.
      const bool is_ending = !outcome->status.ok() && ExecutorOf(gpu)->is_attached();
      if (!is_ending) return finish();
      ExecutorOf(gpu)->AwaitLoss(loop_.Now(), [finish](const OperationResult&) { finish(); });
    };
    if (!may_be_source) return Leave(session, gpu, WriteBackReason::kMove, note, done);
    WriteBack(session, gpu, WriteBackReason::kMove, /*drop=*/false, note, done);
  });
}

void Controller::LeaveSource(const SessionPtr& session, GpuIndex from, GpuIndex to,
                             const Executor::OnDone& left) {
  // It did not get away from there.
  if (session->resident == from) {
    const auto forget = [session, left](const OperationResult& result) {
      // A loss has seen to it.
      if (result.status.ok()) session->source.reset();
      left(result);
    };
    return SwapOutSession(session, from, WriteBackReason::kMove, forget);
  }
  const auto release = [=, this] { ReleaseSource(session, from, to, left); };
  if (!session->is_arriving) return release();
  session->on_arrival.push_back(release);
}

void Controller::ReleaseSource(const SessionPtr& session, GpuIndex from, GpuIndex to,
                               const Executor::OnDone& left) {
  // Closing it lets go of everything.
  if (!session->is_announced) return left({});
  const auto drop = [=, this](const OperationResult&) { DropSource(session, from, left); };
  v1::DaemonMessage message;
  message.mutable_release_source()->set_session_id(session->id.value);
  // Also where the source has died: its memory is its successor's as soon as nobody maps it.
  Run(to, std::move(message), [this, to, drop](const OperationResult& result) {
    if (result.status.ok() || result.is_executor_lost) return drop(result);
    // It would go on to reach memory that is another function's soon.
    Executor& stuck = *ExecutorOf(to);
    Condemn(stuck, absl::StrCat("it does not let go of a copy: ", result.status.ToString()));
    stuck.AwaitLoss(loop_.Now(), drop);
  });
}

void Controller::DropSource(const SessionPtr& session, GpuIndex gpu, const Executor::OnDone& left) {
  if (!session->is_announced || session->source != gpu) return left({});
  v1::DaemonMessage drop;
  drop.mutable_swap_out()->set_session_id(session->id.value);
  drop.mutable_swap_out()->set_drop(true);
  // The image has changes by now that this copy does not have.
  drop.mutable_swap_out()->set_forgets_changes(true);
  Run(gpu, std::move(drop), [this, session, gpu, left](const OperationResult& result) {
    if (result.status.ok()) session->source.reset();
    if (!result.status.ok() && !result.is_executor_lost) {
      Condemn(*ExecutorOf(gpu), absl::StrCat("a copy stays: ", result.status.ToString()));
    }
    left(result);
  });
}

std::vector<GpuIndex> Controller::ImageSourcesOf(const Executor& executor) const {
  std::vector<GpuIndex> sources;
  if (!options_.config.scheduling.swap_from_peers) return sources;
  for (const int gpu : executor.registration().image_sources()) {
    if (executors_.count(GpuIndex{gpu}) > 0) sources.push_back(GpuIndex{gpu});
  }
  return sources;
}

}  // namespace torpor::server
