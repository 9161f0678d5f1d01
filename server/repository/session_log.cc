#include "server/repository/session_log.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "proto/wire/control_messages.h"
#include "proto/wire/result_hash.h"

namespace torpor::server {
namespace {

// An entry is the record's size, its hash, and the record.
constexpr std::size_t kPrefixBytes = 2 * sizeof(std::uint64_t);
// A file below is not compacted; one above, when it has become several times as long.
constexpr std::uint64_t kSmallBytes = 1 << 20;
constexpr std::uint64_t kGrowth = 4;

// Returns the first entry's record, empty if it is torn or damaged.
std::span<const std::uint8_t> FirstRecord(std::span<const std::uint8_t> bytes) {
  std::uint64_t size = 0;
  std::uint64_t hash = 0;
  wire::Reader prefix(bytes);
  prefix(size), prefix(hash);
  if (!prefix.ok() || size > bytes.size() - kPrefixBytes) return {};
  const std::span<const std::uint8_t> record = bytes.subspan(kPrefixBytes, size);
  return wire::ResultHash(record) == hash ? record : std::span<const std::uint8_t>();
}

}  // namespace

std::vector<std::uint8_t> LogEntryOf(const SessionRecord& record) {
  const std::vector<std::uint8_t> bytes = wire::EncodeMessage(record);
  std::vector<std::uint8_t> entry;
  wire::Writer writer(entry);
  writer(static_cast<std::uint64_t>(bytes.size())), writer(wire::ResultHash(bytes));
  entry.insert(entry.end(), bytes.begin(), bytes.end());
  return entry;
}

LoggedSessions ReadSessionLog(std::span<const std::uint8_t> bytes) {
  LoggedSessions state;
  bool is_first = true;
  while (true) {
    const std::span<const std::uint8_t> record = FirstRecord(bytes);
    SessionRecord decoded;
    if (record.empty() || !wire::DecodeMessage(record, decoded)) return state;
    const auto* const begun = std::get_if<LogBegun>(&decoded);
    const bool is_ours = begun && begun->version >= 1 && begun->version <= kSessionLogVersion;
    if (std::exchange(is_first, false) && !is_ours) return state;
    state.Apply(decoded);
    bytes = bytes.subspan(kPrefixBytes + record.size());
  }
}

absl::StatusOr<std::unique_ptr<SessionLog>> SessionLog::Open(const std::string& path,
                                                             Files& files) {
  const absl::StatusOr<std::vector<std::uint8_t>> bytes = files.Read(path);
  std::unique_ptr<SessionLog> log(new SessionLog(path, files));
  if (bytes.ok()) {
    log->state_ = ReadSessionLog(*bytes);
  } else if (!absl::IsNotFound(bytes.status())) {
    return bytes.status();
  }
  LogBegun begun = log->state_.begun();
  begun.version = kSessionLogVersion;
  ++begun.lives;
  log->state_.Apply(begun);
  TORPOR_RETURN_IF_ERROR(log->Compact());
  return log;
}

void SessionLog::Append(const SessionRecord& record) {
  state_.Apply(record);
  if (!file_) return;
  absl::Status status = Write(LogEntryOf(record));
  if (status.ok() && bytes_ >= compact_at_) status = Compact();
  if (!status.ok()) GiveUp(status);
}

absl::Status SessionLog::Write(std::span<const std::uint8_t> bytes) {
  // One call: what a killed process leaves is the record, or a part that reading leaves out.
  TORPOR_RETURN_IF_ERROR(file_->Write(bytes_, bytes));
  bytes_ += bytes.size();
  return absl::OkStatus();
}

absl::Status SessionLog::Compact() {
  const std::string new_path = path_ + ".new";
  TORPOR_ASSIGN_OR_RETURN(std::unique_ptr<OpenFile> file,
                          files_.Create(new_path, 0600, Caching::kPageCache));
  std::vector<std::uint8_t> bytes;
  for (const SessionRecord& record : state_.Records()) {
    const std::vector<std::uint8_t> entry = LogEntryOf(record);
    bytes.insert(bytes.end(), entry.begin(), entry.end());
  }
  TORPOR_RETURN_IF_ERROR(file->Write(0, bytes));
  TORPOR_RETURN_IF_ERROR(files_.Rename(new_path, path_));
  file_ = std::move(file);
  bytes_ = bytes.size();
  compact_at_ = std::max(kSmallBytes, kGrowth * bytes_);
  return absl::OkStatus();
}

void SessionLog::GiveUp(const absl::Status& why) {
  spdlog::error("no session outlives this torpord: {}", std::string(why.message()));
  file_.reset();
  const absl::Status removed = files_.Remove(path_);
  // An empty file says as much as none.
  if (removed.ok() || files_.Create(path_, 0600, Caching::kPageCache).ok()) return;
  spdlog::error("{}; remove it before torpord starts again: it tells of sessions as they were",
                std::string(removed.message()));
}

}  // namespace torpor::server
