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

// The event log as a file (docs/event-log.md). A thread of its own encodes and writes, so that who
// records never waits for the disk. The log ends, and says so in the daemon's, where it would grow
// beyond its size, where the file cannot be written any more, or where too much waits to be
// written.
class EventLogWriter {
 public:
  // A file that stood there is PATH.1 now. Unavailable where it cannot be written, or something
  // else stands there.
  static absl::StatusOr<std::unique_ptr<EventLogWriter>> Create(
      const std::string& path, Bytes max_bytes, const scheduler::EventLogHeader& header);

  // Writes what was recorded.
  ~EventLogWriter();

  // Of one thread at a time.
  void Record(TimePoint when, const scheduler::Event& event, const scheduler::Actions& decided);

 private:
  struct Entry {
    TimePoint when{};
    scheduler::Event event;
    scheduler::Actions decided;
  };

  EventLogWriter(std::string path, std::ofstream file, Bytes max_bytes, Bytes written);

  void Run();
  // The entries that wait, once there are some; none at the end.
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
  std::thread thread_;
};

}  // namespace torpor::server
