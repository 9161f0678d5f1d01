#include "server/node/session_records.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace torpor::server {
namespace {

// A driver may take seconds to take down a context with gigabytes of pinned memory.
constexpr Duration kExecutorPatience = std::chrono::seconds(20);

ProcessIdentity IdentityOf(const GpuProcessRan& process) {
  return {.pid = static_cast<pid_t>(process.process_id), .start_ticks = process.start_ticks};
}

std::vector<GpuProcessRan> LivingOf(const SessionLog& log) {
  std::vector<GpuProcessRan> living = log.state().processes();
  std::erase_if(living,
                [](const GpuProcessRan& process) { return !OpenProcess(IdentityOf(process)); });
  return living;
}

// Takes the process into `taken`. False if there is a later one in its place.
bool TakeIn(const GpuProcessRan& process, GpuProcesses& taken) {
  const ProcessIdentity identity = IdentityOf(process);
  const int place = static_cast<int>(process.place);
  switch (process.role) {
    case GpuProcess::kExecutor:
      return !taken.spares.contains(place) && taken.executors.emplace(place, identity).second;
    case GpuProcess::kSpare:
      return taken.spares.empty() && !taken.executors.contains(place) &&
             taken.spares.emplace(place, identity).second;
    case GpuProcess::kPoolOwner:
      if (taken.pool_owner) return false;
      taken.pool_owner = identity;
      return true;
  }
  return false;
}

using GpuSet = std::set<GpuIndex>;

// Returns the GPUs whose memory had an owner that has died: executors there are no use any more,
// since none could take over from them.
GpuSet WithoutMemory(const std::vector<GpuProcessRan>& processes) {
  GpuSet had;
  GpuSet have;
  for (const GpuProcessRan& process : processes) {
    if (process.role != GpuProcess::kPoolOwner) continue;
    const GpuIndex gpu{static_cast<int>(process.gpu)};
    had.insert(gpu);
    if (OpenProcess(IdentityOf(process))) have.insert(gpu);
  }
  for (const GpuIndex gpu : have) had.erase(gpu);
  return had;
}

// Ends what an earlier torpord with a service manager has left.
absl::Status Forget(const std::string& path, Files& disk) {
  {
    TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<SessionLog> log, SessionLog::Open(path, disk));
    for (const GpuProcessRan& process : LivingOf(*log))
      TORPOR_RETURN_IF_ERROR(EndGpuProcess(IdentityOf(process)));
  }
  unlink(path.c_str());
  return absl::OkStatus();
}

}  // namespace

absl::Status EndGpuProcess(const ProcessIdentity& process) {
  if (KillAndAwait(process, kExecutorPatience)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("process ", process.pid, " of an earlier torpord does not end"));
}

absl::StatusOr<std::unique_ptr<SessionRecords>> SessionRecords::Open(
    const std::string& run_dir, std::map<std::string, UniqueFd> kept, Files& disk) {
  const std::string path = run_dir + "/sessions.log";
  std::unique_ptr<SessionRecords> records(new SessionRecords(std::move(kept)));
  if (!records->keeper_.is_available()) {
    spdlog::info(
        "sessions end with this torpord: no service manager keeps descriptors (docs/init.md)");
    TORPOR_RETURN_IF_ERROR(Forget(path, disk));
    return records;
  }
  TORPOR_ASSIGN_OR_RETURN(records->log_, SessionLog::Open(path, disk));
  return records;
}

std::vector<GpuProcessRan> SessionRecords::Living() const {
  return log_ ? LivingOf(*log_) : std::vector<GpuProcessRan>();
}

absl::StatusOr<std::map<GpuIndex, GpuProcesses>> SessionRecords::TakeGpuProcesses(
    const std::vector<GpuIndex>& gpus, const std::string& kind) {
  std::map<GpuIndex, GpuProcesses> taken;
  if (!log_) return taken;
  LogBegun begun = log_->state().begun();
  const bool is_same_kind = std::exchange(begun.executors, kind) == kind;
  const GpuSet without_memory = WithoutMemory(log_->state().processes());
  std::vector<GpuProcessRan> retained;
  std::vector<GpuProcessRan> living = Living();
  if (!living.empty() && !is_same_kind) {
    spdlog::warn(
        "executors of the earlier torpord are replaced: they are of another build, or were started "
        "with other settings");
  }
  // Of two with one purpose the earlier is about to end.
  std::ranges::reverse(living);
  for (const GpuProcessRan& process : living) {
    const GpuIndex gpu{static_cast<int>(process.gpu)};
    const bool is_served = std::ranges::find(gpus, gpu) != gpus.end();
    const bool is_of_use = is_same_kind && is_served && !without_memory.contains(gpu);
    if (is_of_use && TakeIn(process, taken[gpu])) {
      retained.push_back(process);
    } else {
      TORPOR_RETURN_IF_ERROR(EndGpuProcess(IdentityOf(process)));
    }
  }
  std::ranges::reverse(retained);
  log_->RetainProcesses(std::move(retained));
  log_->Append(begun);
  return taken;
}

}  // namespace torpor::server
