#include "server/node/session_records.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace torpor::server {
namespace {

// A driver may take seconds to take down a context with gigabytes of pinned memory.
constexpr Duration kExecutorPatience = std::chrono::seconds(20);

ProcessIdentity IdentityOf(const ExecutorRan& executor) {
  return {.pid = static_cast<pid_t>(executor.process_id), .start_ticks = executor.start_ticks};
}

std::vector<ExecutorRan> LivingOf(const SessionLog& log) {
  std::vector<ExecutorRan> living = log.state().executors();
  std::erase_if(living,
                [](const ExecutorRan& executor) { return !OpenProcess(IdentityOf(executor)); });
  return living;
}

// Ends what an earlier torpord with a service manager has left.
absl::Status Forget(const std::string& path) {
  {
    TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<SessionLog> log, SessionLog::Open(path));
    for (const ExecutorRan& executor : LivingOf(*log))
      TORPOR_RETURN_IF_ERROR(EndExecutor(IdentityOf(executor)));
  }
  unlink(path.c_str());
  return absl::OkStatus();
}

}  // namespace

absl::Status EndExecutor(const ProcessIdentity& executor) {
  if (KillAndAwait(executor, kExecutorPatience)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("executor ", executor.pid, " of an earlier torpord does not end"));
}

absl::StatusOr<std::unique_ptr<SessionRecords>> SessionRecords::Open(
    const std::string& run_dir, std::map<std::string, UniqueFd> kept) {
  const std::string path = run_dir + "/sessions.log";
  std::unique_ptr<SessionRecords> records(new SessionRecords(std::move(kept)));
  if (!records->keeper_.is_available()) {
    spdlog::info(
        "sessions end with this torpord: no service manager keeps descriptors (docs/init.md)");
    TORPOR_RETURN_IF_ERROR(Forget(path));
    return records;
  }
  TORPOR_ASSIGN_OR_RETURN(records->log_, SessionLog::Open(path));
  return records;
}

std::vector<ExecutorRan> SessionRecords::LivingExecutors() const {
  return log_ ? LivingOf(*log_) : std::vector<ExecutorRan>();
}

absl::StatusOr<std::map<GpuIndex, ProcessIdentity>> SessionRecords::TakeExecutors(
    const std::vector<GpuIndex>& gpus, const std::string& kind) {
  std::map<GpuIndex, ProcessIdentity> taken;
  if (!log_) return taken;
  LogBegun begun = log_->state().begun();
  const bool is_same_kind = std::exchange(begun.executors, kind) == kind;
  std::vector<ExecutorRan> retained;
  std::vector<ExecutorRan> living = LivingExecutors();
  if (!living.empty() && !is_same_kind) {
    spdlog::warn(
        "executors of the earlier torpord are replaced: they are of another build, or were started "
        "with other settings");
  }
  // Of two for one GPU the earlier is about to end.
  std::ranges::reverse(living);
  for (const ExecutorRan& executor : living) {
    const GpuIndex gpu{static_cast<int>(executor.gpu)};
    const bool is_served = std::ranges::find(gpus, gpu) != gpus.end();
    if (is_same_kind && is_served && taken.emplace(gpu, IdentityOf(executor)).second) {
      retained.push_back(executor);
    } else {
      TORPOR_RETURN_IF_ERROR(EndExecutor(IdentityOf(executor)));
    }
  }
  log_->RetainExecutors(std::move(retained));
  log_->Append(begun);
  return taken;
}

}  // namespace torpor::server
