#include "server/controller/images/image_moves.h"

#include <utility>

namespace torpor::server {
namespace {

// Runs `task` when no copy of the image is under way.
void WhenArrived(ClientSession& session, ImageState::Task task) {
  if (!session.image.is_arriving()) return task();
  session.image.AfterArrival(std::move(task));
}

}  // namespace

void ImageMoves::Move(const SessionPtr& session, GpuIndex from, GpuIndex to, const OnDone& arrived,
                      const OnDone& left) {
  const std::uint64_t epoch = executors_.EpochOf(session->On(from));
  const auto left_it = [this, session, from, epoch, left](const OperationResult& result) {
    left(executors_.EpochOf(session->On(from)) == epoch ? result : OperationResult::Lost());
  };
  const auto leave = [=, this](const OperationResult& result) {
    if (session->image.HasReplicaOn(from)) session->image.NoteReplicaGoing(from);
    arrived(result);
    WhenArrived(*session, [=, this] {
      swaps_.ReleaseSource(session, [=, this](const OperationResult&) {
        swaps_.SwapOut(session, from, WriteBackReason::kMove, left_it);
      });
    });
  };
  swaps_.SwapIn(session, to, leave, from);
}

void ImageMoves::Copy(const SessionPtr& session, GpuIndex from, GpuIndex to,
                      const OnDone& arrived) {
  const auto release = [=, this](const OperationResult& result) {
    arrived(result);
    WhenArrived(*session,
                [=, this] { swaps_.ReleaseSource(session, [](const OperationResult&) {}); });
  };
  swaps_.SwapIn(session, to, release, from);
}

}  // namespace torpor::server
