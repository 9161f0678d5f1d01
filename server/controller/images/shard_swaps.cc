#include "server/controller/images/shard_swaps.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <set>

#include "server/controller/model/join.h"

namespace torpor::server {
namespace {

EvictionReason ReasonOf(const scheduler::SwapOut& action) {
  switch (action.reason) {
    case scheduler::SwapOutReason::kMemoryFull:
      return EvictionReason::kMemoryFull;
    case scheduler::SwapOutReason::kMove:
      return EvictionReason::kMove;
    case scheduler::SwapOutReason::kRequested:
      return EvictionReason::kRequested;
    case scheduler::SwapOutReason::kKeepAliveOver:
      return EvictionReason::kKeepAlive;
  }
  return EvictionReason::kMemoryFull;
}

}  // namespace

void ShardSwaps::Apply(const scheduler::SwapIn& action) {
  std::set<DomainId> domains;
  for (const SessionPtr& session : sessions_.Of(instances_.ShardOf(action.instance))) {
    domains.insert(session->domain);
  }
  if (IsForLease(action) && !AreServed(domains, action.gpu)) return Postpone(action);
  Join join([this, action](const absl::Status& status) {
    if (absl::IsCancelled(status)) return;
    status.ok() ? Begin(action) : OnSwapInDone(action, status);
  });
  join.Add(domains.size());
  for (const DomainId domain : domains) {
    executors_.ensure({action.gpu, domain},
                      [join](const absl::Status& status) { join.Done(status); });
  }
  join.Done();
}

bool ShardSwaps::IsForLease(const scheduler::SwapIn& action) const {
  const auto gpu = scheduler_.node().gpus.find(action.gpu);
  return gpu != scheduler_.node().gpus.end() && gpu->second.tenant == action.instance;
}

bool ShardSwaps::AreServed(const std::set<DomainId>& domains, GpuIndex gpu) const {
  bool are_served = true;
  for (const DomainId domain : domains) are_served &= executors_.require({gpu, domain});
  return are_served;
}

// The scheduler waits for the image to leave its source.
void ShardSwaps::Postpone(const scheduler::SwapIn& action) {
  if (!action.source || action.keeps_source) return;
  Apply(scheduler::SwapOut{action.instance, *action.source, scheduler::SwapOutReason::kMove});
}

void ShardSwaps::Begin(const scheduler::SwapIn& action) {
  const Shard shard = instances_.ShardOf(action.instance);
  FunctionInstance& instance = *shard.instance;
  instance.placement.source = SwapSource::kHost;
  ++instance.totals.swaps_in;
  ++totals_.swaps_in;
  const std::vector<SessionPtr> sessions = sessions_.Of(shard);
  const auto is_lost = std::make_shared<bool>(false);
  Join join([this, action, is_lost](const absl::Status& status) {
    if (!*is_lost) OnSwapInDone(action, status);
  });
  const auto one_done = [&instance, is_lost, join](const OperationResult& result) {
    *is_lost |= result.is_executor_lost;
    if (result.from_peer.total() > 0) instance.placement.source = SwapSource::kPeer;
    join.Done(result.status);
  };
  join.Add(sessions.size());
  if (!action.source) {
    for (const SessionPtr& session : sessions) swaps_.SwapIn(session, action.gpu, one_done);
    return join.Done();
  }
  if (action.keeps_source) {
    for (const SessionPtr& session : sessions) {
      moves_.Copy(session, *action.source, action.gpu, one_done);
    }
    return join.Done();
  }
  ++totals_.swaps_out;
  telemetry_.OnEviction(instance.config().name, *action.source, EvictionReason::kMove);
  const GpuExecutor::OnDone one_left =
      WhenLeft(action.instance, *action.source, sessions.size() + 1);
  for (const SessionPtr& session : sessions) {
    moves_.Move(session, *action.source, action.gpu, one_done, one_left);
  }
  one_left({});
  join.Done();
}

void ShardSwaps::OnSwapInDone(const scheduler::SwapIn& action, const absl::Status& status) {
  if (status.ok()) {
    events_.Feed(scheduler::SwapInDone{action.instance, action.gpu, true});
    return NoteArrival(action.instance, action.gpu);
  }
  const Shard shard = instances_.ShardOf(action.instance);
  spdlog::error("GPU {}: swap-in of {} failed: {}", action.gpu.value, shard.instance->full_name,
                status.ToString());
  // Sessions that did get in must not stay: the scheduler gives their room away.
  Join join([this, action](const absl::Status&) {
    events_.Feed(scheduler::SwapInDone{action.instance, action.gpu, false});
  });
  for (const SessionPtr& session : sessions_.Of(shard)) {
    join.Add();
    swaps_.SwapOut(session, action.gpu, WriteBackReason::kEviction,
                   [join](const OperationResult& out) {
                     if (!out.is_executor_lost) join.Done();  // ExecutorDown follows
                   });
  }
  join.Done();
}

void ShardSwaps::Apply(const scheduler::SwapOut& action) {
  const Shard shard = instances_.ShardOf(action.instance);
  ++totals_.swaps_out;
  telemetry_.OnEviction(shard.instance->config().name, action.gpu, ReasonOf(action));
  const WriteBackReason reason = action.reason == scheduler::SwapOutReason::kMove
                                     ? WriteBackReason::kMove
                                     : WriteBackReason::kEviction;
  const std::vector<SessionPtr> sessions = sessions_.Of(shard);
  const GpuExecutor::OnDone one_left = WhenLeft(action.instance, action.gpu, sessions.size() + 1);
  for (const SessionPtr& session : sessions) swaps_.SwapOut(session, action.gpu, reason, one_left);
  one_left({});
}

GpuExecutor::OnDone ShardSwaps::WhenLeft(InstanceId shard, GpuIndex gpu, std::size_t count) {
  Join join([this, shard, gpu](const absl::Status&) {
    events_.Feed(scheduler::SwapOutDone{shard, gpu});
    executors_.left(gpu);
  });
  join.Add(count - 1);
  return [join](const OperationResult& result) {
    if (result.status.ok()) join.Done();  // after a failure the executor is lost
  };
}

void ShardSwaps::Apply(const scheduler::WriteBack& action) {
  const auto answer = [this, action](bool is_clean) {
    events_.Feed(scheduler::WriteBackDone{action.instance, action.gpu, is_clean});
  };
  const SessionPtr session =
      swaps_.UnsavedSessionOf(instances_.ShardOf(action.instance), action.gpu);
  if (!session) return answer(true);
  if (session->image.is_arriving()) {
    return session->image.AfterArrival([answer] { answer(false); });
  }
  swaps_.SwapOut(session, action.gpu, WriteBackReason::kIdle,
                 [answer](const OperationResult& result) {
                   // A failed write-back is not tried again before the next lease has ended.
                   if (!result.is_executor_lost) answer(!result.status.ok());
                 });
}

void ShardSwaps::OnSwapInComplete(GpuIndex gpu, const v1::ExecutorMessage::SwapInComplete& what) {
  const SessionPtr session = sessions_.Find(SessionId{what.session_id()});
  if (!session) return;
  const memory::MovedBytes from_host = ToMovedBytes(what.to_device());
  const memory::MovedBytes from_peer = ToMovedBytes(what.from_peer());
  const auto record = [&](SwapPath path, const memory::MovedBytes& bytes) {
    telemetry_.OnSwapIn({instances_.Of(*session).config().name, gpu, path, bytes,
                         Duration(static_cast<Duration::rep>(what.duration_ns()))});
  };
  if (from_peer.total() > 0) record(SwapPath::kNvlink, from_peer);
  if (from_peer.total() == 0 || from_host.total() > 0) record(SwapPath::kPcie, from_host);
  // The completion of an earlier swap-in elsewhere ends nothing.
  if (!session->image.ArrivedLastAt(gpu)) return;
  swaps_.EndArrival(*session);
  NoteArrival(instances_.ShardOf(*session), gpu);
}

void ShardSwaps::NoteArrival(InstanceId shard, GpuIndex gpu) {
  const scheduler::NodeState& node = scheduler_.node();
  // Before the answer to the swap-in further sessions may have to come.
  if (node.gpus.at(gpu).loading != shard || !node.instances.at(shard).image.is_present_on(gpu))
    return;
  const std::vector<SessionPtr> sessions = sessions_.Of(instances_.ShardOf(shard));
  const bool is_complete = std::none_of(sessions.begin(), sessions.end(), [](const auto& session) {
    return session->image.is_arriving();
  });
  if (is_complete) events_.Feed(scheduler::ImageArrived{shard, gpu});
}

}  // namespace torpor::server
