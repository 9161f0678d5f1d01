#include "server/controller/event_log_writer.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace torpor::server {
namespace {

// Some hundred bytes each: what a disk that has stopped may cost.
constexpr std::size_t kMostEntries = 1 << 18;
// Others lock rarely meanwhile, and a killed daemon's log lacks little.
constexpr absl::Duration kPause = absl::Milliseconds(50);

}  // namespace

absl::StatusOr<std::unique_ptr<EventLogWriter>> EventLogWriter::Create(
    const std::string& path, Bytes most_bytes, const scheduler::EventLogHeader& header) {
  const std::string first = scheduler::Encode(header) + '\n';
  // It may say why torpord was started again. Where there is none that is no error.
  std::rename(path.c_str(), (path + ".1").c_str());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!(file << first).flush()) {
    return absl::UnavailableError(absl::StrCat("event_log: ", path,
                                               " cannot be written: ", std::strerror(errno),
                                               "; name a file in a folder that there is"));
  }
  return std::unique_ptr<EventLogWriter>(
      new EventLogWriter(path, std::move(file), most_bytes, first.size()));
}

EventLogWriter::EventLogWriter(std::string path, std::ofstream file, Bytes most_bytes,
                               Bytes written)
    : path_(std::move(path)),
      most_bytes_(most_bytes),
      file_(std::move(file)),
      written_(written),
      thread_([this] { Run(); }) {}

EventLogWriter::~EventLogWriter() {
  {
    MutexLock lock(&mutex_);
    is_closing_ = true;
  }
  thread_.join();
}

void EventLogWriter::Record(TimePoint when, const scheduler::Event& event,
                            const scheduler::Actions& decided) {
  MutexLock lock(&mutex_);
  if (is_over_) return;
  if (entries_.size() < kMostEntries) {
    entries_.push_back({when, event, decided});
    return;
  }
  is_over_ = true;
  spdlog::warn("the event log {} ends: its disk is too slow", path_);
}

void EventLogWriter::Run() {
  for (std::vector<Entry> entries = Take(); !entries.empty(); entries = Take()) {
    for (const Entry& entry : entries) {
      if (!Write(entry)) return;
    }
    if (!file_.flush()) return End(std::strerror(errno));
  }
}

std::vector<EventLogWriter::Entry> EventLogWriter::Take() {
  MutexLock lock(&mutex_);
  // Not at every entry: many are written together.
  mutex_.AwaitWithTimeout(absl::Condition(&is_closing_), kPause);
  const auto has_work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_closing_ || !entries_.empty();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&has_work), absl::InfiniteDuration());
  return std::exchange(entries_, {});
}

bool EventLogWriter::Write(const Entry& entry) {
  std::string text = scheduler::Encode(entry.event, entry.when) + '\n';
  for (const scheduler::Action& action : entry.decided) {
    text += scheduler::Encode(action, entry.when) + '\n';
  }
  if (written_ + text.size() > most_bytes_) {
    file_.flush();
    End(absl::StrCat("it has reached event_log_bytes, ", most_bytes_));
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
