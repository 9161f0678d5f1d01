#include "server/node/session_records.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "server/supervisor/process_record.h"

namespace torpor::server {
namespace {

// A driver may take seconds to take down a context with gigabytes of pinned memory.
constexpr Duration kExecutorPatience = std::chrono::seconds(20);

// The kernel kills executors with their torpord, but does not wait until they are gone.
absl::Status EndExecutors(const LoggedSessions& logged) {
  for (const ExecutorRan& executor : logged.executors()) {
    const ProcessIdentity process = {.pid = static_cast<pid_t>(executor.process_id),
                                     .start_ticks = executor.start_ticks};
    if (!KillAndAwait(process, kExecutorPatience)) {
      return absl::UnavailableError(
          absl::StrCat("executor ", process.pid, " of an earlier torpord does not end"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionRecords>> SessionRecords::Open(
    const std::string& run_dir, std::map<std::string, UniqueFd> kept) {
  const std::string path = run_dir + "/sessions.log";
  std::unique_ptr<SessionRecords> records(new SessionRecords(std::move(kept)));
  if (!records->keeper_.is_available()) {
    spdlog::info(
        "sessions end with this torpord: no service manager keeps descriptors (docs/init.md)");
    unlink(path.c_str());
    return records;
  }
  TORPOR_ASSIGN_OR_RETURN(records->log_, SessionLog::Open(path));
  TORPOR_RETURN_IF_ERROR(EndExecutors(records->log_->state()));
  records->log_->ForgetExecutors();
  return records;
}

}  // namespace torpor::server
