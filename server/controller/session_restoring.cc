#include "server/controller/session_restoring.h"

#include <spdlog/spdlog.h>

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor::server {
namespace {

// Leases of one torpord. Routers tell leases of several apart by their ids.
constexpr int kLeaseBits = 32;

// Why the session's memory cannot be had as of one of its commands.
absl::Status CheckMemory(const LoggedSession& logged, const SessionFiles& files) {
  if (logged.opened.replays && !files.checkpoint().is_whole()) {
    return absl::DataLossError("its memory was being saved when torpord ended");
  }
  if (logged.is_unsaved) {
    return absl::DataLossError("its memory was not saved yet when torpord ended");
  }
  return absl::OkStatus();
}

}  // namespace

void SessionRestoring::Restore(SessionLog& log, SessionKeeper& keeper) {
  const LogBegun& begun = log.state().begun();
  sessions_.BeginIdsAt(SessionId{begun.next_session});
  leases_.BeginIdsAt(LeaseId{((begun.lives - 1) << kLeaseBits) + 1});
  const std::map<SessionId, LoggedSession> recorded = log.state().sessions();
  std::size_t restored = 0;
  for (const auto& [id, logged] : recorded) {
    const absl::Status status = RestoreOne(logged, keeper);
    if (status.ok()) {
      ++restored;
      resuming_.Await(id, logged);
      continue;
    }
    const std::string why(status.message());
    spdlog::warn("session {} of {} ({}, process {}) is lost with an earlier torpord: {}", id.value,
                 logged.opened.instance, logged.opened.program, logged.opened.process_id, why);
    telemetry_.OnSessionOutlived(OutlivedFate::kDropped);
    resuming_.NoteLost(id, why);
    log.Append(SessionClosed{id.value});
    keeper.Remove(id);
  }
  if (restored > 0)
    spdlog::info("{} sessions of an earlier torpord wait for their clients", restored);
}

absl::Status SessionRestoring::CheckInstance(const SessionOpened& opened) {
  const FunctionInstance* const instance = instances_.Find(opened.instance);
  if (!instance) {
    return absl::NotFoundError(
        absl::StrCat("function ", opened.instance, " is no longer in the configuration"));
  }
  if (instance->shards.size() > 1 || instance->replays() != opened.replays) {
    return absl::FailedPreconditionError(
        absl::StrCat("the gpus or the durability of function ", opened.instance, " have changed"));
  }
  return absl::OkStatus();
}

absl::Status SessionRestoring::RestoreOne(const LoggedSession& logged, SessionKeeper& keeper) {
  const SessionOpened& opened = logged.opened;
  if (!logged.why_not.empty()) return absl::FailedPreconditionError(logged.why_not);
  TORPOR_RETURN_IF_ERROR(CheckInstance(opened));
  const SessionId id{opened.session};
  TORPOR_ASSIGN_OR_RETURN(std::shared_ptr<SessionFiles> files, keeper.Take(id, opened.sizes()));
  TORPOR_RETURN_IF_ERROR(CheckMemory(logged, *files));
  const bool was_saved = files->checkpoint().number() > 0;
  FunctionInstance& instance = *instances_.Find(opened.instance);
  const SessionPtr session = sessions_.Add(id);
  session->state = ClientSession::State::kAway;
  session->instance = instance.id;
  session->primary = id;
  session->process_id = opened.process_id;
  session->program = opened.program;
  absl::Status stored =
      storage_.Restore(*session, logged, std::move(files), domains_.SharesAs(instance.config()));
  if (!stored.ok()) {
    sessions_.Forget(*session);
    return stored;
  }
  session->domain = domains_.OfSharers(session->memory.tenant_blocks.tenant);
  session->image.Restore(was_saved, opened.replays);
  session->learning.OnUnseenChanges();
  session->is_announced = true;
  instance.sessions.insert(id);
  journal_.GoOn(*session);
  allocations_.Restore(*session);
  return absl::OkStatus();
}

}  // namespace torpor::server
