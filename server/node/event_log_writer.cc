#include "server/node/event_log_writer.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/thread_name.h"

namespace torpor::server {
namespace {

// Some hundred bytes each: the memory that a stalled disk may cost.
constexpr std::size_t kMaxEntries = 1 << 18;
// Keeps lock contention low, and little is missing from a killed daemon's log.
constexpr absl::Duration kPause = absl::Milliseconds(50);

absl::Status CannotBeWritten(const std::string& path, const std::string& why) {
  return absl::UnavailableError(absl::StrCat("event_log: ", path, " cannot be written: ", why,
                                             "; name a file in a folder that there is"));
}

// An earlier daemon's log may say why torpord was started again.
absl::Status MoveAside(const std::string& path) {
  std::error_code error;
  const auto type = std::filesystem::symlink_status(path, error).type();
  if (type == std::filesystem::file_type::not_found) return absl::OkStatus();
  if (error) return CannotBeWritten(path, error.message());
  if (type != std::filesystem::file_type::regular) {
    return CannotBeWritten(path, "something that is no file stands there");
  }
  std::filesystem::rename(path, path + ".1", error);
  return error ? CannotBeWritten(path, error.message()) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventLogWriter>> EventLogWriter::Create(
    const std::string& path, Bytes max_bytes, const scheduler::EventLogHeader& header) {
  const std::string first = scheduler::Encode(header) + '\n';
  TORPOR_RETURN_IF_ERROR(MoveAside(path));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!(file << first).flush()) return CannotBeWritten(path, std::strerror(errno));
  return std::unique_ptr<EventLogWriter>(
      new EventLogWriter(path, std::move(file), max_bytes, first.size()));
}

EventLogWriter::EventLogWriter(std::string path, std::ofstream file, Bytes max_bytes, Bytes written)
    : path_(std::move(path)),
      max_bytes_(max_bytes),
      file_(std::move(file)),
      written_(written),
      thread_([this] { Run(); }) {}

EventLogWriter::~EventLogWriter() {
  {
    MutexLock lock(&mutex_);
    is_closing_ = true;
  }
  changed_.Signal();
  thread_.join();
}

void EventLogWriter::Record(TimePoint when, const scheduler::Event& event,
                            const scheduler::Actions& decided) {
  MutexLock lock(&mutex_);
  if (is_over_) return;
  if (entries_.size() < kMaxEntries) {
    entries_.push_back({when, event, decided});
    if (entries_.size() == 1) changed_.Signal();
    return;
  }
  is_over_ = true;
  spdlog::warn("the event log {} ends: its disk is too slow", path_);
}

void EventLogWriter::Run() {
  NameThread("event-log");
  for (std::vector<Entry> entries = Take(); !entries.empty(); entries = Take()) {
    for (const Entry& entry : entries) {
      if (!Write(entry)) return;
    }
    if (!file_.flush()) return End(std::strerror(errno));
  }
}

std::vector<EventLogWriter::Entry> EventLogWriter::Take() {
  MutexLock lock(&mutex_);
  while (!is_closing_ && entries_.empty()) mutex_.WaitFor(changed_, absl::InfiniteDuration());
  // Entries that follow soon are written together; only the end is signalled meanwhile.
  if (!is_closing_) mutex_.WaitFor(changed_, kPause);
  return std::exchange(entries_, {});
}

bool EventLogWriter::Write(const Entry& entry) {
  std::string text = scheduler::Encode(entry.event, entry.when) + '\n';
  for (const scheduler::Action& action : entry.decided) {
    text += scheduler::Encode(action, entry.when) + '\n';
  }
  if (written_ + text.size() > max_bytes_) {
    file_.flush();
    End(absl::StrCat("it has reached event_log_bytes, ", max_bytes_));
    return false;
  }
  written_ += text.size();
  file_ << text;
  return true;
}

void EventLogWriter::End(const std::string& why) {
  spdlog::warn("the event log {} ends: {}", path_, why);
  MutexLock lock(&mutex_);
  is_over_ = true;
  entries_.clear();
}

}  // namespace torpor::server
