#include "server/controller/memory/freed_pages.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "server/controller/memory/file_pages.h"
#include "server/controller/model/extents.h"

namespace torpor::server {
namespace {

constexpr auto kImage = wire::SharedMemory::kImage;

// Executors pin in pieces within aligned parts of this size (PinnedMemory::kSlotBytes), and so
// unpin one at a time.
constexpr Bytes kPieceBytes = 64 * kMiB;

// After so long without idle executors the pages are wanted back all the same.
constexpr Duration kBusyPatience = std::chrono::seconds(30);

memory::Block FirstPiece(const memory::ExtentSet& chunks) {
  const memory::Extent first = chunks.extents().front();
  const Bytes end = std::min(first.end, RoundDown(first.begin, kPieceBytes) + kPieceBytes);
  return {first.begin, end - first.begin};
}

}  // namespace

void FreedPages::Add(ClientSession& session, memory::Block chunks) const {
  FreedChunks& freed = session.memory.freed;
  if (freed.chunks.empty()) freed.since = loop_.Now();
  freed.chunks.Add({chunks.offset, chunks.offset + chunks.bytes});
}

void FreedPages::Reuse(ClientSession& session, memory::Block block,
                       const TaskLoop::Task& then) const {
  const Bytes unit = session.memory.device->chunk_bytes();
  const memory::Extent touched{RoundDown(block.offset, unit),
                               RoundUp(block.offset + block.bytes, unit)};
  const std::vector<memory::Extent> used = session.memory.freed.chunks.Within(touched);
  if (used.empty()) return then();
  session.memory.freed.chunks.Remove(touched);
  loop_.InBackground(
      [files = session.memory.files, used] {
        for (const memory::Extent& extent : used) {
          const absl::Status status = files->Clear(kImage, extent.begin, extent.bytes());
          if (!status.ok()) spdlog::error("{}", status.ToString());
        }
      },
      then);
}

void FreedPages::GiveBack() {
  for (const auto& [id, session] : sessions_.all()) {
    const FreedChunks& freed = session->memory.freed;
    if (freed.chunks.empty() || freed.is_going) continue;
    const bool is_overdue = loop_.Now() - freed.since >= kBusyPatience;
    if (!session->lease.id || is_overdue) AddStep(session);
  }
}

void FreedPages::AddStep(const SessionPtr& session) {
  session->memory.freed.is_going = true;
  session->steps.Add(
      [this, session](const StepQueue::Finish& finish) { GiveBackPiece(session, finish); });
}

void FreedPages::GiveBackPiece(const SessionPtr& session, const StepQueue::Finish& finish) {
  FreedChunks& freed = session->memory.freed;
  if (freed.chunks.empty() || !session->is_announced) {
    freed.is_going = false;
    return finish();
  }
  const memory::Block piece = FirstPiece(freed.chunks);
  v1::DaemonMessage message;
  message.mutable_release_image()->set_session_id(session->id.value);
  SetExtent(*message.mutable_release_image()->mutable_extent(), piece);
  message.mutable_release_image()->set_only_when_idle(loop_.Now() - freed.since < kBusyPatience);
  executors_.RunOnAll(session->domain, message, [=, this](const absl::Status& status) {
    OnUnpinned(session, piece, status, finish);
  });
}

void FreedPages::OnUnpinned(const SessionPtr& session, memory::Block piece,
                            const absl::Status& status, const StepQueue::Finish& finish) {
  FreedChunks& freed = session->memory.freed;
  freed.is_going = false;
  if (!status.ok()) {
    // Pages kept by an executor must stay the file's, or later copies would miss the file.
    if (!absl::IsAborted(status)) {
      spdlog::warn("freed host memory stays in use: {}", status.ToString());
      freed.since = loop_.Now();
    }
    return finish();
  }
  freed.chunks.Remove({piece.offset, piece.offset + piece.bytes});
  freed.since = loop_.Now();
  // A request that waits for the session comes before the next piece.
  if (!freed.chunks.empty()) AddStep(session);
  DiscardPages(loop_, *session, kImage, piece, piece, finish);
}

}  // namespace torpor::server
