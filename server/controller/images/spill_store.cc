#include "server/controller/images/spill_store.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/controller/model/extents.h"
#include "server/controller/model/join.h"
#include "server/controller/model/session_journal.h"
#include "server/repository/spilled_image.h"

namespace torpor::server {
namespace {

using State = ImageSpill::State;

// A disk that is full, or fails, seldom recovers at once.
constexpr Duration kPauseAfterFailure = std::chrono::seconds(30);

constexpr const char* kSuffix = ".image";

}  // namespace

std::string SpillStore::PathOf(SessionId session) const {
  return absl::StrCat(folder_, "/session-", session.value, kSuffix);
}

bool SpillStore::TakesNow(Bytes bytes) const {
  return loop_.Now() >= paused_until_ && figures_.bytes <= figures_.limit &&
         bytes <= figures_.limit - figures_.bytes;
}

void SpillStore::Spill(const SessionPtr& session, const Then& then) {
  session->memory.spill.state = State::kLeaving;
  session->memory.spill.is_wanted = false;
  Write(session, then);
}

void SpillStore::Write(const SessionPtr& session, const Then& then) {
  struct Work {
    absl::StatusOr<SpilledImage> image;
    Duration duration{};
  };
  const auto work = std::make_shared<Work>();
  loop_.OnDisk(
      [this, work, path = PathOf(session->id), files = session->memory.files,
       unused = session->memory.freed.chunks] {
        const TimePoint begin = loop_.Now();
        work->image = WriteSpilledImage(disk_, path, *files, unused);
        work->duration = loop_.Now() - begin;
      },
      [this, work, session, then] {
        if (!work->image.ok()) return OnWriteFailed(session, work->image.status(), then);
        Count(figures_.out, work->image->bytes(), work->duration);
        OnWritten(session, *std::move(work->image), then);
      });
}

void SpillStore::OnWritten(const SessionPtr& session, SpilledImage image, const Then& then) {
  ImageSpill& spill = session->memory.spill;
  spill.image = std::move(image);
  NoteOnDisk(*session);
  if (spill.is_wanted || session->lease.id || session->state != ClientSession::State::kOpen) {
    Drop(*session);
    return then(absl::AbortedError("the image is wanted"));
  }
  // First the record: from here on the next torpord finds the image in the file only.
  if (session->journal) session->journal->NoteSpilled(*session, spill.image);
  GiveBack(session, [this, session, then] {
    Unpin(session, [session, then] {
      session->memory.freed = {};
      session->memory.spill.state = State::kOnDisk;
      then(absl::OkStatus());
    });
  });
}

void SpillStore::GiveBack(const SessionPtr& session, const TaskLoop::Task& then) {
  loop_.InBackground(
      [files = session->memory.files] {
        const absl::Status given = files->GiveBackPages(wire::SharedMemory::kImage);
        if (!given.ok()) spdlog::error("{}", given.ToString());
      },
      then);
}

void SpillStore::Unpin(const SessionPtr& session, const TaskLoop::Task& then) {
  Join join([then](const absl::Status&) { then(); });
  for (const ExecutorKey executor : executors_.AttachedOf(session->domain)) {
    for (const memory::Block& segment : session->memory.device_segments) {
      v1::DaemonMessage message;
      message.mutable_release_image()->set_session_id(session->id.value);
      message.mutable_release_image()->set_places(v1::DaemonMessage::ReleaseImage::ALL);
      SetExtent(*message.mutable_release_image()->mutable_extent(), segment);
      join.Add();
      executors_.Run(
          executor, std::move(message), [this, executor, join](const OperationResult& result) {
            const absl::Status status = result.status_unless_lost();
            if (status.ok()) return join.Done();
            executors_.KillAndAwait(executor,
                                    absl::StrCat("it keeps pages of an image: ", status.ToString()),
                                    [join](const OperationResult&) { join.Done(); });
          });
    }
  }
  join.Done();
}

void SpillStore::OnWriteFailed(const SessionPtr& session, const absl::Status& why,
                               const Then& then) {
  session->memory.spill.state = State::kInMemory;
  ++figures_.out.failures;
  paused_until_ = loop_.Now() + kPauseAfterFailure;
  spdlog::error("images stay in host memory for {} s: {}",
                std::chrono::duration_cast<std::chrono::seconds>(kPauseAfterFailure).count(),
                why.ToString());
  then(why);
}

void SpillStore::BringBack(const SessionPtr& session, const Then& then) {
  session->memory.spill.state = State::kComing;
  const auto status = std::make_shared<absl::Status>();
  const auto duration = std::make_shared<Duration>();
  loop_.OnDisk(
      [this, status, duration, path = PathOf(session->id), files = session->memory.files,
       image = session->memory.spill.image] {
        const TimePoint begin = loop_.Now();
        *status = ReadSpilledImage(disk_, path, image, *files);
        *duration = loop_.Now() - begin;
      },
      [this, session, status, duration, then] {
        if (status->ok()) {
          Count(figures_.back, session->memory.spill.image.bytes(), *duration);
        }
        OnRead(session, *status, then);
      });
}

void SpillStore::OnRead(const SessionPtr& session, const absl::Status& status, const Then& then) {
  if (status.ok()) {
    if (session->journal) session->journal->NoteImageBack(*session);
    Drop(*session);
    return then(absl::OkStatus());
  }
  ++figures_.back.failures;
  session->memory.spill.state = State::kOnDisk;
  GiveBack(session, [status, then] { then(status); });
}

void SpillStore::Remove(ClientSession& session) {
  if (session.memory.spill.is_on_disk()) Drop(session);
}

void SpillStore::Adopt(const ClientSession& session) { NoteOnDisk(session); }

void SpillStore::RemoveUnknown() const {
  std::error_code error;  // no folder, no files
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string path = entry.path();
    if (entry.path().extension() != kSuffix || paths_.count(path) > 0) continue;
    const absl::Status removed = disk_.Remove(path);
    if (!removed.ok()) spdlog::error("{}", removed.ToString());
  }
}

void SpillStore::NoteOnDisk(const ClientSession& session) {
  paths_.insert(PathOf(session.id));
  figures_.images = paths_.size();
  figures_.bytes += session.memory.spill.image.bytes();
}

void SpillStore::Drop(ClientSession& session) {
  const std::string path = PathOf(session.id);
  paths_.erase(path);
  figures_.images = paths_.size();
  figures_.bytes -= session.memory.spill.image.bytes();
  session.memory.spill = {};
  loop_.OnDisk(
      [this, path] {
        const absl::Status removed = disk_.Remove(path);
        if (!removed.ok()) spdlog::error("{}", removed.ToString());
      },
      [] {});
}

void SpillStore::Count(SpillFigures::Moves& moves, Bytes bytes, Duration duration) {
  ++moves.images;
  moves.bytes += bytes;
  moves.duration += duration;
}

}  // namespace torpor::server
