#include "server/repository/logged_sessions.h"

#include <algorithm>
#include <utility>

namespace torpor::server {
namespace {

void AppendMemory(std::uint64_t session, MemoryKind kind, const LoggedMemory& memory,
                  std::vector<SessionRecord>& records) {
  records.emplace_back(SegmentsHeld::Of(session, kind, memory.segments));
  for (const auto& [offset, piece] : memory.pieces) {
    records.emplace_back(Allocated{session, kind, piece.request, offset, piece.bytes});
  }
}

constexpr std::size_t kFieldsOfPiece = 3;  // in ImageSpilled

// No piece has the offset: the freed one's went with its record.
constexpr Bytes kNowhere = ~Bytes{0};

}  // namespace

SegmentsHeld SegmentsHeld::Of(std::uint64_t session, MemoryKind kind,
                              const std::vector<memory::Block>& segments) {
  SegmentsHeld record{session, kind, {}};
  for (const memory::Block& block : segments) {
    record.extents.insert(record.extents.end(), {block.offset, block.bytes});
  }
  return record;
}

ImageSpilled ImageSpilled::Of(std::uint64_t session, const std::vector<SpilledPiece>& pieces) {
  ImageSpilled record{session, {}};
  record.pieces.reserve(kFieldsOfPiece * pieces.size());
  for (const SpilledPiece& piece : pieces) {
    record.pieces.insert(record.pieces.end(), {piece.offset, piece.bytes, piece.hash});
  }
  return record;
}

const LoggedSession* LoggedSessions::Find(SessionId session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &found->second;
}

LoggedSession* LoggedSessions::Mutable(std::uint64_t session) {
  const auto found = sessions_.find(SessionId{session});
  return found == sessions_.end() ? nullptr : &found->second;
}

void LoggedSessions::Apply(const SessionRecord& record) {
  std::visit([this](const auto& one) { Take(one); }, record);
}

void LoggedSessions::Take(const ExecutorRan& record) {
  Take(GpuProcessRan{
      .gpu = record.gpu, .process_id = record.process_id, .start_ticks = record.start_ticks});
}

void LoggedSessions::Take(const GpuProcessRan& record) {
  std::erase_if(processes_, [&](const GpuProcessRan& earlier) {
    return earlier.process_id == record.process_id && earlier.start_ticks == record.start_ticks;
  });
  processes_.push_back(record);
}

void LoggedSessions::Take(const SessionOpened& record) {
  if (record.session == 0) return;
  LoggedSession& session = sessions_[SessionId{record.session}];
  session = {};
  session.opened = record;
  begun_.next_session = std::max(begun_.next_session, record.session + 1);
}

void LoggedSessions::Take(const SegmentsHeld& record) {
  LoggedSession* const session = Mutable(record.session);
  if (!session || record.extents.size() % 2 != 0) return;
  std::vector<memory::Block>& segments = session->MemoryOf(record.kind).segments;
  segments.clear();
  for (std::size_t i = 0; i < record.extents.size(); i += 2) {
    segments.push_back({record.extents[i], record.extents[i + 1]});
  }
}

void LoggedSessions::Take(const Allocated& record) {
  if (LoggedSession* const session = Mutable(record.session)) {
    session->MemoryOf(record.kind).pieces[record.offset] = {record.bytes, record.request};
  }
}

void LoggedSessions::Take(const Freed& record) {
  LoggedSession* const session = Mutable(record.session);
  if (!session) return;
  session->MemoryOf(record.kind).pieces.erase(record.offset);
  session->frees.push_back(record.request);
  if (session->frees.size() > LoggedSession::kMaxFrees) session->frees.pop_front();
}

void LoggedSessions::Take(const WorkUnsaved& record) {
  if (LoggedSession* const session = Mutable(record.session)) {
    session->is_unsaved = record.is_unsaved;
  }
}

void LoggedSessions::Take(const EndsWithTorpord& record) {
  if (LoggedSession* const session = Mutable(record.session)) session->why_not = record.why;
}

void LoggedSessions::Take(const SessionClosed& record) {
  sessions_.erase(SessionId{record.session});
}

void LoggedSessions::Take(const ClientAway& record) {
  if (LoggedSession* const session = Mutable(record.session)) {
    session->client_away_since = record.since_ns;
  }
}

void LoggedSessions::Take(const ImageSpilled& record) {
  LoggedSession* const session = Mutable(record.session);
  if (!session || record.pieces.size() % kFieldsOfPiece != 0) return;
  SpilledImage& image = session->spilled.emplace();
  for (std::size_t i = 0; i < record.pieces.size(); i += kFieldsOfPiece) {
    const SpilledPiece piece = {record.pieces[i], record.pieces[i + 1], record.pieces[i + 2]};
    if (piece.bytes > kSpillPieceBytes || piece.offset + piece.bytes < piece.offset) {
      return session->spilled.reset();
    }
    image.pieces.push_back(piece);
  }
}

void LoggedSessions::Take(const ImageBack& record) {
  if (LoggedSession* const session = Mutable(record.session)) session->spilled.reset();
}

void LoggedSessions::Take(const TenantFileHeld& record) {
  if (LoggedSession* const session = Mutable(record.session)) session->tenant = record.tenant;
}

std::vector<SessionRecord> LoggedSessions::Records() const {
  std::vector<SessionRecord> records = {begun_};
  for (const GpuProcessRan& process : processes_) records.emplace_back(process);
  for (const auto& [function, struck] : strikes_) records.emplace_back(struck);
  for (const auto& [id, session] : sessions_) {
    records.emplace_back(session.opened);
    AppendMemory(id.value, MemoryKind::kDevice, session.device, records);
    AppendMemory(id.value, MemoryKind::kHost, session.host, records);
    for (const std::uint64_t request : session.frees) {
      records.emplace_back(Freed{id.value, MemoryKind::kDevice, request, kNowhere});
    }
    if (!session.tenant.empty()) records.emplace_back(TenantFileHeld{id.value, session.tenant});
    if (session.is_unsaved) records.emplace_back(WorkUnsaved{id.value, true});
    if (!session.why_not.empty()) {
      records.emplace_back(EndsWithTorpord{id.value, session.why_not});
    }
    if (session.client_away_since != 0) {
      records.emplace_back(ClientAway{id.value, session.client_away_since});
    }
    if (session.spilled) records.emplace_back(ImageSpilled::Of(id.value, session.spilled->pieces));
  }
  return records;
}

}  // namespace torpor::server
