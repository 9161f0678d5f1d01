#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/units.h"
#include "scheduler/event_log.h"

namespace torpor::server {

// Writes the event log to a file (docs/event-log.md). A thread of its own encodes and writes:
// recording never waits for the disk. The log ends, with a line in the daemon's log, at its size
// limit, when the file cannot be written any more, or when too many entries wait.
class EventLogWriter {
 public:
  // Renames an existing file to PATH.1. Unavailable if the file cannot be written or `path` is no
  // regular file.
  static absl::StatusOr<std::unique_ptr<EventLogWriter>> Create(
      const std::string& path, Bytes max_bytes, const scheduler::EventLogHeader& header);

  // Writes all recorded entries, then closes the file.
  ~EventLogWriter();

  // Not thread-safe: call from one thread at a time.
  void Record(TimePoint when, const scheduler::Event& event, const scheduler::Actions& decided);

 private:
  struct Entry {
    TimePoint when{};
    scheduler::Event event;
    scheduler::Actions decided;
  };

  EventLogWriter(std::string path, std::ofstream file, Bytes max_bytes, Bytes written);

  void Run();
  // Waits for entries. Returns an empty list at the end.
  std::vector<Entry> Take();
  // False where the log ends before the entry.
  bool Write(const Entry& entry);
  void End(const std::string& why);

  const std::string path_;
  const Bytes max_bytes_;
  // The thread's own.
  std::ofstream file_;
  Bytes written_;

  Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;  // nothing is recorded any more
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::CondVar changed_;  // is_closing_ is set, or entries_ has the first entry
  std::thread thread_;
};

}  // namespace torpor::server
