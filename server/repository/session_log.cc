#include "server/repository/session_log.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
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

absl::Status Failed(const std::string& what, const std::string& path) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", what, " ", path, ": ", absl::ErrnoToStatus(errno, "").message()));
}

absl::StatusOr<std::vector<std::uint8_t>> ReadAll(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::vector<std::uint8_t>();
  struct stat status = {};
  if (!file || fstat(file.get(), &status) != 0) return Failed("read", path);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = read(file.get(), bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("read", path);
    if (got == 0) break;
    at += static_cast<std::size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

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
    const bool is_ours = begun && begun->version == kSessionLogVersion;
    if (std::exchange(is_first, false) && !is_ours) return state;
    state.Apply(decoded);
    bytes = bytes.subspan(kPrefixBytes + record.size());
  }
}

absl::StatusOr<std::unique_ptr<SessionLog>> SessionLog::Open(const std::string& path) {
  TORPOR_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes, ReadAll(path));
  std::unique_ptr<SessionLog> log(new SessionLog(path));
  log->state_ = ReadSessionLog(bytes);
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
  const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
  if (written != static_cast<ssize_t>(bytes.size())) return Failed("write", path_);
  bytes_ += bytes.size();
  return absl::OkStatus();
}

absl::Status SessionLog::Compact() {
  const std::string new_path = path_ + ".new";
  UniqueFd file(open(new_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return Failed("create", new_path);
  std::vector<std::uint8_t> bytes;
  for (const SessionRecord& record : state_.Records()) {
    const std::vector<std::uint8_t> entry = LogEntryOf(record);
    bytes.insert(bytes.end(), entry.begin(), entry.end());
  }
  UniqueFd before = std::exchange(file_, std::move(file));
  bytes_ = 0;
  const absl::Status written = Write(bytes);
  if (!written.ok() || rename(new_path.c_str(), path_.c_str()) != 0) {
    file_ = std::move(before);
    return written.ok() ? Failed("replace", path_) : written;
  }
  compact_at_ = std::max(kSmallBytes, kGrowth * bytes_);
  return absl::OkStatus();
}

void SessionLog::GiveUp(const absl::Status& why) {
  spdlog::error("no session outlives this torpord: {}", std::string(why.message()));
  file_.Reset();
  unlink(path_.c_str());
}

}  // namespace torpor::server
