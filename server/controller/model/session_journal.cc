#include "server/controller/model/session_journal.h"

#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

#include "server/supervisor/process_record.h"

namespace torpor::server {
namespace {

const std::vector<memory::Block>& SegmentsOf(const ClientSession& session, MemoryKind kind) {
  return kind == MemoryKind::kDevice ? session.memory.device_segments
                                     : session.memory.host_segments;
}

}  // namespace

const LoggedSession* SessionJournal::LoggedOf(const ClientSession& session) const {
  return log_ ? log_->state().Find(session.id) : nullptr;
}

void SessionJournal::Begin(ClientSession& session, const FunctionInstance& instance,
                           const SessionFiles::Sizes& sizes) {
  if (!log_) return;
  const SessionAllocations& memory = session.memory;
  session.journal = this;
  log_->Append(
      SessionOpened{.session = session.id.value,
                    .key = memory.key,
                    .instance = instance.full_name,
                    .process_id = session.process_id,
                    .program = session.program,
                    .device_base = memory.device_base,
                    .host_base = memory.host_base,
                    .chunk_bytes = memory.device->chunk_bytes(),
                    .is_apart = memory.device->layout() == memory::RangeAllocator::Layout::kApart,
                    .image_bytes = sizes.image,
                    .host_arena_bytes = sizes.host_arena,
                    .window_bytes = sizes.window,
                    .address_limit = memory.address_limit,
                    .replays = instance.replays()});
  NoteSegments(session, MemoryKind::kDevice);
  if (memory.files->descriptor(wire::SharedMemory::kTenantFile) >= 0) {
    log_->Append(TenantFileHeld{session.id.value, memory.tenant_blocks.tenant});
  }
  if (instance.shards.size() > 1) return Exclude(session, "its program has several devices");
  const absl::Status kept = keeper_->Keep(session.id, *memory.files);
  if (kept.ok()) return;
  Exclude(session, "its memory files could not be kept");
  if (std::exchange(has_warned_, true)) return;
  spdlog::warn("session {} and perhaps others end with this torpord: {}", session.id.value,
               std::string(kept.message()));
}

void SessionJournal::NoteSegments(const ClientSession& session, MemoryKind kind) {
  const LoggedSession& logged = *LoggedOf(session);
  const std::vector<memory::Block>& segments = SegmentsOf(session, kind);
  const LoggedMemory& memory = kind == MemoryKind::kDevice ? logged.device : logged.host;
  if (memory.segments == segments) return;
  log_->Append(SegmentsHeld::Of(session.id.value, kind, segments));
}

void SessionJournal::NoteAllocated(const ClientSession& session, MemoryKind kind,
                                   std::uint64_t request, memory::Block block) {
  if (!LoggedOf(session)) return;
  NoteSegments(session, kind);
  log_->Append(Allocated{session.id.value, kind, request, block.offset, block.bytes});
}

void SessionJournal::NoteFreed(const ClientSession& session, MemoryKind kind, std::uint64_t request,
                               Bytes offset) {
  if (LoggedOf(session)) log_->Append(Freed{session.id.value, kind, request, offset});
}

void SessionJournal::NoteUnsaved(const ClientSession& session) {
  const LoggedSession* const logged = LoggedOf(session);
  const bool is_unsaved = static_cast<bool>(session.image.unsaved_lease());
  if (!logged || logged->opened.replays || logged->is_unsaved == is_unsaved) return;
  log_->Append(WorkUnsaved{session.id.value, is_unsaved});
}

void SessionJournal::NoteAway(const ClientSession& session, std::optional<TimePoint> since) {
  const LoggedSession* const logged = LoggedOf(session);
  const std::int64_t since_ns = since ? since->time_since_epoch().count() : 0;
  if (!logged || logged->client_away_since == since_ns) return;
  log_->Append(ClientAway{session.id.value, since_ns});
}

void SessionJournal::NoteSpilled(const ClientSession& session, const SpilledImage& image) {
  if (LoggedOf(session)) log_->Append(ImageSpilled::Of(session.id.value, image.pieces));
}

void SessionJournal::NoteImageBack(const ClientSession& session) {
  if (LoggedOf(session)) log_->Append(ImageBack{session.id.value});
}

void SessionJournal::Exclude(const ClientSession& session, const std::string& why) {
  const LoggedSession* const logged = LoggedOf(session);
  if (!logged || !logged->why_not.empty()) return;
  log_->Append(EndsWithTorpord{session.id.value, why});
}

void SessionJournal::Close(ClientSession& session) {
  session.journal = nullptr;
  if (!LoggedOf(session)) return;
  log_->Append(SessionClosed{session.id.value});
  keeper_->Remove(session.id);
}

void SessionJournal::NoteStrike(const std::string& function, unsigned strikes, TimePoint now) {
  if (log_) log_->Append(FunctionStruck{function, strikes, now.time_since_epoch().count()});
}

void SessionJournal::NoteProcess(GpuProcess role, GpuIndex gpu, std::int64_t process_id,
                                 std::uint32_t place) {
  if (!log_) return;
  const auto identity = IdentityOf(static_cast<pid_t>(process_id));
  if (!identity) return;
  log_->Append(GpuProcessRan{gpu.value, identity->pid, identity->start_ticks, role, place});
}

}  // namespace torpor::server
