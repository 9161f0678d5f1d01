#include <sys/socket.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "client_shim/core/call_tracer.h"
#include "client_shim/core/fork_guard.h"
#include "client_shim/core/session.h"
#include "client_shim/core/thread_end.h"
#include "client_shim/core/unix_socket.h"
#include "proto/cuda_api/cudart_commands.h"

namespace torpor::shim {
namespace {

// A granted executor listens already: only a full backlog can delay the connection.
constexpr std::chrono::seconds kConnectPatience{2};

constexpr std::chrono::milliseconds kLastWordsPoll{1};

constexpr std::uint32_t CallId(wire::ProtocolCall call) { return static_cast<std::uint32_t>(call); }

// The thread's default stream on each device. Trivial, so that calls from exit handlers may still
// use it.
struct ThreadStream {
  ClientCore* owner;
  std::uint64_t handle;
};
thread_local ThreadStream my_streams[wire::kMaxDevices];

// What the thread has put on its streams still runs: executors let a destroyed stream finish.
void DestroyThreadStreams(void* streams) {
  auto* const stream = static_cast<ThreadStream*>(streams);
  for (int device = 0; device < wire::kMaxDevices; ++device) {
    // A destructor of the program that runs later may want a new one.
    const ThreadStream old = std::exchange(stream[device], {});
    if (!old.owner) continue;
    const auto fields = wire::Encoded(wire::StreamDestroy{old.handle});
    old.owner->Destroy(old.handle, {wire::StreamDestroy::kCallId, fields});
  }
}

}  // namespace

// Only this thread takes a lease and gives one back: while it connects, none comes to be held.
void Session::OnGrant(Lock& lock, const wire::LeaseGrant& grant) {
  if (lease_.state == LeaseState::kHeld || lease_.state == LeaseState::kReturning)
    return LoseDaemon("a lease was granted while another is held");
  std::string why;
  const LinkPtr link = FindOrOpenLink(lock, grant, why);
  KeepUntoldLoss();
  lease_ = Lease{};
  lease_.id = grant.lease_id;
  lease_.is_explicit = grant.is_explicit;
  lease_.uses_answered = uses_;
  lease_.link = link;
  if (!link) {
    log_.Warn("executor " + grant.executor_socket + " cannot be reached: " + why);
    SendControl(wire::LeaseReturned{grant.lease_id});
    lease_.daemon_knows = true;
    return LoseLease(cudaErrorDevicesUnavailable, /*program_knows=*/false);
  }
  lease_.state = LeaseState::kHeld;
  held_time_.Begin(std::chrono::steady_clock::now());
  TellExecutor(lease_.link);
  if (lease_.state != LeaseState::kHeld) return;  // the connection broke at once
  uses_at_check_ = uses_;
  next_idle_check_ = std::chrono::steady_clock::now() + settings_.lease_idle;
  if (lease_.is_explicit && device_ == 0)
    TraceSection(("request (lease " + std::to_string(lease_.id) + ")").c_str());
  SendControl(wire::LeaseAck{grant.lease_id});
  lease_changed_.notify_all();
}

Session::LinkPtr Session::FindOrOpenLink(Lock& lock, const wire::LeaseGrant& grant,
                                         std::string& why) {
  const LinkKey key{grant.executor_socket, grant.executor_epoch};
  if (const auto found = links_.find(key); found != links_.end()) return found->second;
  lock.unlock();
  Result<UniqueFd, int> socket = ConnectUnix(grant.executor_socket, SOCK_STREAM,
                                             std::chrono::steady_clock::now() + kConnectPatience);
  lock.lock();
  if (!socket) {
    why = socket.failure().message;
    return nullptr;
  }
  // An earlier process at the same socket is gone, and what it was told with it.
  std::vector<LinkPtr> gone;
  for (const auto& [old_key, link] : links_)
    if (old_key.first == grant.executor_socket) gone.push_back(link);
  for (const LinkPtr& link : gone)
    BreakLink(link, cudaErrorDevicesUnavailable, "the executor was restarted");
  ForkGuard::Watch(socket->get());
  auto link = std::make_shared<ExecutorLink>(*http2_, std::move(socket).value());
  links_.emplace(key, link);
  return link;
}

// All in one go: the replies are awaited by whoever reads next.
void Session::TellExecutor(const LinkPtr& link) {
  if (!link->is_attached) {
    link->is_attached = true;
    batch_.Append(CallId(wire::ProtocolCall::kAttach),
                  wire::Encoded(wire::Attach{hello_.session_id, hello_.session_key}));
    link->pending.push_back(
        {PendingReply::Kind::kAttach, CallId(wire::ProtocolCall::kAttach), nullptr});
    SendBatch(*link);
  }
  journal_.Replay(link->known_version, [&](const Command& command) {
    batch_.Append(command.call_id, command.fields);
    if (batch_.bytes() >= settings_.batch_bytes) SendBatch(*link);
  });
  if (!batch_.empty()) SendBatch(*link);
  link->known_version = journal_.version();
  PumpLink(link);
}

void Session::OnRevoke(const wire::LeaseRevoke& revoke) {
  if (revoke.lease_id != lease_.id) return;  // it crossed our LeaseReturned
  if (lease_.state == LeaseState::kHeld) return BeginReturn();
  if (lease_.state != LeaseState::kLost) return;
  if (!lease_.daemon_knows) SendControl(wire::LeaseReturned{lease_.id});
  EndLease();
}

// At a call boundary, since the mutex is held: what was enqueued goes first, replies that threads
// wait for come before the drain's.
void Session::BeginReturn() {
  const LinkPtr link = lease_.link;
  lease_.state = LeaseState::kReturning;
  batch_.Append(CallId(wire::ProtocolCall::kDrain), {});
  link->pending.push_back(
      {PendingReply::Kind::kDrain, CallId(wire::ProtocolCall::kDrain), nullptr});
  FlushBatch();
}

void Session::OnDrained(const LinkPtr& link, std::span<const std::uint8_t> result) {
  wire::DrainReply drained;
  wire::Reader reader(result);
  reader(drained);
  // The executor that the events were recorded on needs no import of them.
  const bool knows_all = link->known_version == journal_.version();
  for (const wire::EventTime& time : drained.events) {
    const auto fields = wire::Encoded(wire::EventImport{time.event, time.completed_ns});
    journal_.Configure(time.event, {wire::EventImport::kCallId, fields}, 0);
  }
  if (knows_all) link->known_version = journal_.version();
  SendControl(wire::LeaseReturned{lease_.id});
  EndLease();
}

void Session::EndLease() {
  if (lease_.is_explicit && device_ == 0) TraceSection(nullptr);
  held_time_.End(std::chrono::steady_clock::now());
  KeepUntoldLoss();
  lease_ = Lease{};
  lease_changed_.notify_all();
  room_.notify_all();
}

// The program's part of a lost lease is over. If calls were on their way behind the last good
// answer and none has told it of the loss, its next synchronising call does.
void Session::KeepUntoldLoss() {
  if (lease_.state != LeaseState::kLost || lease_.program_knows || lease_.failed_a_call) return;
  if (uses_ != lease_.uses_answered && async_error_ == cudaSuccess) async_error_ = lease_.error;
}

void Session::OnLost(Lock& lock, const wire::LeaseLost& lost) {
  const auto error = lost.error == 0 ? cudaErrorUnknown : static_cast<cudaError_t>(lost.error);
  if (lost.sticky) fatal_.store(error);
  const bool may_speak = lost.sticky && lost.lease_id == lease_.id && lease_.link;
  if (may_speak) AwaitLastWords(lock, LinkPtr(lease_.link));
  if (lost.lease_id == lease_.id && lease_.id != 0) {
    log_.Warn("the GPU was lost: " + lost.message);
    lease_.daemon_knows = true;
    lease_.error = error;
    if (lease_.link) {
      BreakLink(LinkPtr(lease_.link), error, lost.message);
    } else {
      SettleLostLease();
    }
  }
  lease_changed_.notify_all();
  room_.notify_all();
}

// An executor that this session's work has cost its context answers what waits there, with what the
// driver says of the failure, and ends. By way of the daemon the loss may be known here before.
void Session::AwaitLastWords(Lock& lock, const LinkPtr& link) {
  constexpr std::chrono::seconds kPatience{1};
  const Time until = std::chrono::steady_clock::now() + kPatience;
  while (link->HasWaiter() && !link->stream.closed() && std::chrono::steady_clock::now() < until) {
    // Whoever waits reads.
    lock.unlock();
    std::this_thread::sleep_for(kLastWordsPoll);
    lock.lock();
  }
}

void Session::BreakLink(const LinkPtr& link, cudaError_t error, const std::string& why) {
  const bool was_open =
      std::erase_if(links_, [&](const auto& entry) { return entry.second == link; }) > 0;
  if (!was_open) return;
  log_.Debug("executor connection: " + why);
  link->stream.FeedEnd(why);
  ForkGuard::Unwatch(link->stream.fd());
  shutdown(link->stream.fd(), SHUT_RDWR);  // wakes the thread that reads
  bool tells_program = false;
  for (const PendingReply& pending : link->pending) {
    if (!pending.waiter) continue;
    tells_program = tells_program || pending.waiter->tells_program;
    pending.waiter->error = error;
    pending.waiter->done = true;
    pending.waiter->changed.notify_one();
  }
  link->pending.clear();
  if (lease_.link == link) LoseLease(error, tells_program);
}

// What the lease's calls did since the last drain is lost.
void Session::LoseLease(cudaError_t error, bool program_knows) {
  held_time_.End(std::chrono::steady_clock::now());
  const bool was_returning = lease_.state == LeaseState::kReturning;
  lease_.state = LeaseState::kLost;
  lease_.error = error;
  lease_.program_knows = program_knows;
  lease_.link = nullptr;
  batch_.Clear();
  slots_.CompleteAll();
  ring_.DropSubmitted();
  if (was_returning) {
    if (!lease_.daemon_knows) SendControl(wire::LeaseReturned{lease_.id});
    return EndLease();
  }
  SettleLostLease();
  lease_changed_.notify_all();
  room_.notify_all();
}

void Session::SettleLostLease() {
  if (lease_.state != LeaseState::kLost || lease_.is_explicit) return;
  if (lease_.program_knows && lease_.daemon_knows) EndLease();
}

cudaError_t Session::Create(std::uint64_t handle, const Command& create) {
  if (const cudaError_t error = Usable(); error != cudaSuccess) return error;
  Lock lock(mutex_);
  journal_.Create(handle, create);
  TellChange(create);
  TraceCommand(create.fields.size());
  return cudaSuccess;
}

cudaError_t Session::Configure(std::uint64_t handle, const Command& setting, std::uint64_t key) {
  if (const cudaError_t error = Usable(); error != cudaSuccess) return error;
  Lock lock(mutex_);
  if (!journal_.Configure(handle, setting, key)) return cudaErrorInvalidResourceHandle;
  TellChange(setting);
  TraceCommand(setting.fields.size());
  return cudaSuccess;
}

cudaError_t Session::Destroy(std::uint64_t handle, const Command& destroy) {
  if (const cudaError_t error = Usable(); error != cudaSuccess) return error;
  Lock lock(mutex_);
  if (!journal_.Destroy(handle, destroy)) return cudaErrorInvalidResourceHandle;
  if (destroy.call_id != 0) {
    TellChange(destroy);
    TraceCommand(destroy.fields.size());
  }
  std::uint64_t known_by_all = journal_.version();
  for (const auto& [key, link] : links_) known_by_all = std::min(known_by_all, link->known_version);
  journal_.Trim(known_by_all);
  return cudaSuccess;
}

// The executor that serves us hears of a change of the journal now, the others with their grant.
void Session::TellChange(const Command& change) {
  if (lease_.state != LeaseState::kHeld) return;
  lease_.link->known_version = journal_.version();
  Append(change);
  FlushInTime();
}

bool Session::IsLive(std::uint64_t handle) const {
  Lock lock(mutex_);
  return journal_.IsLive(handle);
}

std::uint64_t Session::PerThreadStream() {
  ThreadStream& mine = my_streams[device_];
  if (mine.owner == this) return mine.handle;
  const std::uint64_t handle = MintHandle(HandleKind::kStream);
  wire::StreamCreate create;
  create.stream = handle;
  const auto fields = wire::Encoded(create);
  Create(handle, {wire::StreamCreate::kCallId, fields});
  mine = {this, handle};
  static const ThreadEnd thread_end(&DestroyThreadStreams);
  thread_end.Arm(my_streams);
  return handle;
}

}  // namespace torpor::shim
