#include "server/controller/executor_losses.h"

#include <spdlog/spdlog.h>

#include <map>
#include <set>
#include <vector>

#include "proto/wire/hardware_errors.h"
#include "server/controller/model/cuda_errors.h"

namespace torpor::server {

void ExecutorLosses::Lose(GpuExecutor& executor) {
  const ExecutorKey key = executor.key();
  const std::map<std::uint64_t, GpuExecutor::OnDone> unanswered = executors_.Detach(executor);
  const bool is_last = !executors_.HasAttached(key.gpu);
  const std::vector<InstanceId> holders = HoldersOf(executor, is_last);
  strikes_.OnExecutorLost(executor.epoch(), holders);
  std::vector<RequestId> waiting;
  for (const InstanceId id : holders) {
    const LeaseService::Lost lost = leases_.Lose(instances_.At(id));
    for (const RequestId request : requests_.OnLeaseLost(lost)) waiting.push_back(request);
    for (const RequestId request : lost.lease.requests) {
      if (implicit_.Has(request)) waiting.push_back(request);
    }
  }
  LoseImages(key);
  if (is_last) {
    executors_.SetUp(key.gpu, false);
    seats_.OnGpuDown(key.gpu);
    events_.Feed(scheduler::ExecutorDown{key.gpu});
  } else if (key.domain) {
    const std::set<InstanceId> of_domain = seats_.InstancesOf(key.domain);
    events_.Feed(scheduler::ImagesLost{key.gpu, {of_domain.begin(), of_domain.end()}});
  }
  for (const auto& [id, done] : unanswered) done(OperationResult::Lost());
  for (const RequestId request : waiting) {
    requests_.Requeue(request);
    implicit_.Requeue(request);
  }
}

std::vector<InstanceId> ExecutorLosses::HoldersOf(const GpuExecutor& executor, bool is_last) const {
  const std::set<InstanceId> of_domain = seats_.InstancesOf(executor.domain());
  std::vector<InstanceId> holders;
  for (auto& [id, instance] : instances_) {
    const bool is_on = instance.lease && instance.lease->IsOn(executor.gpu());
    if (is_on && (is_last || of_domain.contains(id))) holders.push_back(id);
  }
  return holders;
}

void ExecutorLosses::LoseImages(ExecutorKey executor) {
  for (const auto& [id, session] : sessions_.all()) {
    if (session->domain != executor.domain) continue;
    if (session->image.LoseExecutor(executor.gpu)) LoseImage(session);
  }
}

void ExecutorLosses::LoseImage(const SessionPtr& session) {
  // Uploads since the last write-back are in the host's image, unseen by any scan for addresses.
  session->learning.OnUnseenChanges();
  swaps_.EndArrival(*session);
  // Mappings in other executors hold the dead GPU's memory.
  peers_.Withdraw(session, PeerAccess::Keep::kNothing, [] {});
  const LeaseId unsaved = session->image.unsaved_lease();
  if (session->image.has_changes() && !session->is_lost && leases_.MayReplay(*session)) {
    return session->image.NoteReplayDue();
  }
  const bool is_usable = !unsaved && !leases_.LosesState(*session);
  if (is_usable || session->is_lost) return;
  leases_.LoseSession(session, {unsaved.value, kCudaErrorDevicesUnavailable, true,
                                "the executor died before it had saved the memory"});
}

void ExecutorLosses::OnContextLost(GpuIndex gpu, const v1::ExecutorMessage::ContextLost& what) {
  spdlog::error("GPU {}: session {} lost the context: {}", gpu.value, what.session_id(),
                what.message());
  const SessionPtr session = sessions_.Find(SessionId{what.session_id()});
  if (!session || session->is_lost) return;
  strikes_.OnContextLost(*session, what.cuda_error(), what.message());
  // As if the executor had died, which ends now.
  if (wire::IsHardwareError(what.cuda_error()) && leases_.MayReplay(*session)) return;
  leases_.LoseSession(session, {session->lease.id.value, what.cuda_error(), true, what.message()});
}

}  // namespace torpor::server
