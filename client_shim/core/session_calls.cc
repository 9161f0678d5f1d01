#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "client_shim/core/call_tracer.h"
#include "client_shim/core/fork_guard.h"
#include "client_shim/core/session.h"
#include "client_shim/core/unix_socket.h"
#include "proto/cuda_api/cudart_commands.h"

namespace torpor::shim {
namespace {

// Output that waits for a slow executor; beyond it calls wait too.
constexpr std::size_t kMaxUnsentBytes = std::size_t{1} << 20;
// Between two looks at a full payload ring: well below the time that one piece takes to copy.
constexpr std::chrono::microseconds kRingPoll{20};
// How long a thread looks for its reply before it sleeps: a little more than an idle executor
// takes, so that the common reply does not cost a wake-up, and a long kernel costs no processor.
constexpr std::chrono::microseconds kReplyPoll{60};

thread_local bool is_quiet = false;

// As Receive: looks for kReplyPoll, giving way to other threads, and then sleeps.
ssize_t AwaitReply(int socket, void* data, std::size_t bytes) {
  const auto until = std::chrono::steady_clock::now() + kReplyPoll;
  while (std::chrono::steady_clock::now() < until) {
    if (const ssize_t got = Receive(socket, data, bytes, MSG_DONTWAIT); got != -1) return got;
    std::this_thread::yield();
  }
  return Receive(socket, data, bytes, 0);
}

}  // namespace

cudaError_t Session::Usable() const {
  if (ForkGuard::InChild()) return cudaErrorInitializationError;
  if (!started_.load(std::memory_order_acquire)) return cudaErrorInitializationError;
  if (start_error_ != cudaSuccess) return start_error_;
  if (fatal_.load(std::memory_order_relaxed) == cudaSuccess) {
    const auto on_page = regions_.page()->sticky_error.load(std::memory_order_acquire);
    if (on_page != 0) fatal_.store(static_cast<cudaError_t>(on_page));
  }
  return fatal_.load(std::memory_order_relaxed);
}

std::uint64_t Session::MintHandle(HandleKind kind) {
  return static_cast<std::uint64_t>(kind) << kHandleSerialBits |
         first_.next_serial_.fetch_add(1, std::memory_order_relaxed);
}

cudaError_t Session::AwaitLease(Lock& lock, bool tells_program) {
  for (;;) {
    if (const cudaError_t error = fatal_.load(); error != cudaSuccess) return error;
    switch (lease_.state) {
      case LeaseState::kHeld:
        return cudaSuccess;
      case LeaseState::kLost: {
        const cudaError_t error = lease_.error;
        if (!is_quiet) lease_.failed_a_call = true;
        if (!is_quiet && tells_program) lease_.program_knows = true;
        SettleLostLease();
        return error;
      }
      case LeaseState::kNone:
        lease_.state = LeaseState::kRequested;
        SendControl(wire::LeaseRequest{});
        break;
      case LeaseState::kRequested:
      case LeaseState::kReturning:
        break;
    }
    const TracedWait wait(TracedWaitFor::kLease);
    lease_changed_.wait(lock);
  }
}

cudaError_t Session::AwaitRoom(Lock& lock, bool tells_program) {
  for (;;) {
    if (const cudaError_t error = AwaitLease(lock, tells_program); error != cudaSuccess)
      return error;
    if (lease_.link->stream.unsent_bytes() <= kMaxUnsentBytes) return cudaSuccess;
    const TracedWait wait(TracedWaitFor::kRoom);
    room_.wait(lock);
  }
}

void Session::Append(const Command& command) {
  if (batch_.empty()) batch_since_ = std::chrono::steady_clock::now();
  batch_.Append(command.call_id, command.fields);
  ++uses_;
  if (command.piece) ring_.Submitted(*command.piece);
}

// Now if the batch is full, else by the timer.
void Session::FlushInTime() {
  const bool is_full =
      batch_.bytes() >= settings_.batch_bytes || batch_.calls() >= settings_.batch_calls;
  if (is_full) return FlushBatch();
  if (timer_is_armed_) return;
  timer_is_armed_ = true;
  Wake();
}

cudaError_t Session::Enqueue(const Command& command) {
  if (const cudaError_t error = Usable(); error != cudaSuccess) return error;
  if (command.fields.size() > kMaxCommandFields) return cudaErrorInvalidValue;
  {
    Lock lock(mutex_);
    if (const cudaError_t error = AwaitRoom(lock, false); error != cudaSuccess) return error;
    Append(command);
    if (!settings_.is_blocking) FlushInTime();
  }
  TraceCommand(command.fields.size() + (command.piece ? command.piece->bytes : 0));
  return settings_.is_blocking ? AwaitWork() : cudaSuccess;
}

// All of the session's; gives an error that it has met. Sends what is batched.
cudaError_t Session::AwaitWork() {
  CallReply reply;
  const cudaError_t error = Call({wire::DeviceSynchronize::kCallId, {}}, reply);
  if (error != cudaSuccess) return error;
  const cudaError_t async_error = TakeAsyncError();
  return async_error != cudaSuccess ? async_error : static_cast<cudaError_t>(reply.status);
}

cudaError_t Session::Call(const Command& command, CallReply& reply) {
  if (const cudaError_t error = Usable(); error != cudaSuccess) return error;
  if (command.fields.size() > kMaxCommandFields) return cudaErrorInvalidValue;
  const TracedWait wait(TracedWaitFor::kExecutor);
  ReplyWaiter waiter;
  waiter.reply = &reply;
  waiter.tells_program = !is_quiet;
  Lock lock(mutex_);
  if (const cudaError_t error = AwaitRoom(lock, true); error != cudaSuccess) return error;
  const LinkPtr link = lease_.link;
  batch_.Append(command.call_id, command.fields);
  const std::uint64_t use = ++uses_;
  link->pending.push_back({PendingReply::Kind::kCall, command.call_id, &waiter});
  FlushBatch();
  while (!waiter.done) {
    if (link->is_being_read) {
      waiter.changed.wait(lock);
    } else {
      ReadLink(lock, link, /*wait=*/true);
    }
  }
  HandOverReading(link);
  if (waiter.error == cudaSuccess && lease_.link == link) {
    lease_.uses_answered = std::max(lease_.uses_answered, use);
  }
  const bool has_output = !printed_.empty();
  lock.unlock();
  TraceCommand(command.fields.size());
  TraceBytes(0, reply.result.size());
  if (has_output) Print();
  return waiter.error;
}

cudaError_t Session::Flush() {
  if (const cudaError_t error = Usable(); error != cudaSuccess) return error;
  Lock lock(mutex_);
  FlushBatch();
  return cudaSuccess;
}

bool Session::IsDrained() const {
  Lock lock(mutex_);
  return lease_.state == LeaseState::kNone || lease_.state == LeaseState::kRequested;
}

// The batch belongs to the lease that is held (or is being returned): between leases it is empty.
void Session::FlushBatch() {
  if (batch_.empty()) return;
  const LinkPtr link = lease_.link;
  SendBatch(*link);
  PumpLink(link);
}

void Session::SendBatch(ExecutorLink& link) {
  link.stream.Send(batch_.Take(lease_.id));
  TraceBatch();
}

void Session::PumpLink(const LinkPtr& link) {
  link->stream.Write();
  if (link->stream.closed())
    BreakLink(link, cudaErrorDevicesUnavailable, link->stream.why_closed());
  else if (link->stream.unsent_bytes() > 0)
    Wake();
}

void Session::ReadLink(Lock& lock, const LinkPtr& link, bool wait) {
  constexpr std::size_t kReadBytes = std::size_t{64} * 1024;
  if (link->read_buffer.empty()) link->read_buffer.resize(kReadBytes);
  link->is_being_read = true;
  lock.unlock();
  const int socket = link->stream.fd();
  std::uint8_t* const buffer = link->read_buffer.data();
  const ssize_t got = wait ? AwaitReply(socket, buffer, kReadBytes)
                           : Receive(socket, buffer, kReadBytes, MSG_DONTWAIT);
  lock.lock();
  link->is_being_read = false;
  if (got > 0)
    link->stream.Feed({link->read_buffer.data(), static_cast<std::size_t>(got)});
  else if (got != -1)
    link->stream.FeedEnd("the executor closed the connection");
  if (link->stream.unsent_bytes() <= kMaxUnsentBytes) room_.notify_all();
  // An opened window let more go than the socket takes; the next read may wait for what that
  // brings.
  if (link->stream.socket_is_full()) Wake();
  DispatchReplies(link);
}

// Somebody must read for those that still wait: one of them, or the service thread if what is
// pending is only the session's own, or if output waits for the executor to open its window.
void Session::HandOverReading(const LinkPtr& link) {
  if (link->is_being_read) return;
  for (const PendingReply& pending : link->pending)
    if (pending.waiter) return pending.waiter->changed.notify_one();
  if (!link->pending.empty() || link->stream.unsent_bytes() > 0) Wake();
}

void Session::DispatchReplies(const LinkPtr& link) {
  std::span<const std::uint8_t> payload;
  while (!link->stream.closed() && link->stream.Next(payload))
    if (!OnReply(link, payload)) link->stream.FeedEnd("the executor sent a malformed reply");
  if (link->stream.closed())
    BreakLink(link, cudaErrorDevicesUnavailable, link->stream.why_closed());
}

bool Session::OnReply(const LinkPtr& link, std::span<const std::uint8_t> payload) {
  wire::Reply reply;
  wire::Reader reader(payload);
  reader(reply);
  if (reader.done() && reply.call_id == static_cast<std::uint32_t>(wire::ProtocolCall::kOutput)) {
    NoteOutput(reply);
    return true;
  }
  if (!reader.done() || link->pending.empty() || link->pending.front().call_id != reply.call_id)
    return false;
  const PendingReply pending = link->pending.front();
  link->pending.pop_front();
  if (reply.status != 0 && !reply.message.empty())
    log_.Debug("call " + std::to_string(reply.call_id) + ": " + reply.message);
  NoteAsyncError(reply);
  switch (pending.kind) {
    case PendingReply::Kind::kAttach:
      if (reply.status != 0)
        BreakLink(link, static_cast<cudaError_t>(reply.status), "attach: " + reply.message);
      break;
    case PendingReply::Kind::kDrain:
      OnDrained(link, reply.result);
      break;
    case PendingReply::Kind::kCall:
      *pending.waiter->reply = {reply.status, std::move(reply.message), std::move(reply.result)};
      pending.waiter->done = true;
      pending.waiter->changed.notify_one();
      break;
  }
  return true;
}

void Session::NoteAsyncError(const wire::Reply& reply) {
  if (reply.async_error == 0) return;
  const auto error = static_cast<cudaError_t>(reply.async_error);
  log_.Warn(
      "an asynchronous call failed: " +
      (reply.message.empty() ? "CUDA error " + std::to_string(reply.async_error) : reply.message));
  if (reply.async_error_is_sticky != 0) fatal_.store(error);
  if (async_error_ == cudaSuccess) async_error_ = error;
}

void Session::NoteOutput(const wire::Reply& output) {
  printed_.insert(printed_.end(), output.result.begin(), output.result.end());
  if (!output.message.empty()) log_.Warn(output.message);
}

// By the program's own stream, so that its output and that of its kernels do not overtake each
// other. Not under `mutex_`, since whoever reads it may be slow.
void Session::Print() {
  const std::lock_guard printing(print_mutex_);
  Lock lock(mutex_);
  const std::vector<std::uint8_t> printed = std::exchange(printed_, {});
  lock.unlock();
  std::fwrite(printed.data(), 1, printed.size(), stdout);
}

bool Session::SetQuiet(bool quiet) { return std::exchange(is_quiet, quiet); }

cudaError_t Session::TakeAsyncError() {
  if (const cudaError_t error = Usable(); error != cudaSuccess) return error;
  if (is_quiet) return cudaSuccess;
  Lock lock(mutex_);
  if (lease_.state == LeaseState::kLost && !lease_.program_knows) {
    const cudaError_t error = lease_.error;
    lease_.program_knows = true;
    SettleLostLease();
    return error;
  }
  return std::exchange(async_error_, cudaSuccess);
}

cudaError_t Session::AcquireWindow(std::uint64_t bytes, WindowPiece& piece) {
  if (const cudaError_t error = Usable(); error != cudaSuccess) return error;
  if (ring_.Acquire(bytes, piece)) return cudaSuccess;
  const TracedWait wait(TracedWaitFor::kWindow);
  for (;;) {
    // Pieces become free when their commands have run, so these must be on their way.
    if (const cudaError_t error = Flush(); error != cudaSuccess) return error;
    std::this_thread::sleep_for(kRingPoll);
    if (ring_.Acquire(bytes, piece)) return cudaSuccess;
  }
}

void Session::ReleaseWindow(const WindowPiece& piece) { ring_.Release(piece); }

bool Session::FindAllocation(std::uint64_t address, Allocation& allocation) const {
  return first_.allocations_.Find(address, allocation);
}

void Session::WarnOnce(const std::string& key, const std::string& message) {
  log_.WarnOnce(key, message);
}

}  // namespace torpor::shim
