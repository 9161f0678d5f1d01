#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "client_shim/core/client_core.h"
#include "client_shim/core/transport/frame_stream.h"
#include "proto/wire/batch.h"

namespace torpor::shim {

class ExecutorLink;

// A thread's wait for the reply to a SYNC command. Lives on the waiting thread's stack.
struct ReplyWaiter {
  // The link that the reply comes over; null while no executor has the command.
  std::shared_ptr<ExecutorLink> link;
  CallReply* reply = nullptr;
  bool tells_program = true;  // whether the program sees the call's error
  bool done = false;
  cudaError_t error = cudaSuccess;  // the transport's
  std::condition_variable changed;
};

// A SYNC command that was sent and not answered yet; kOutput is text of kernels, sent unasked, and
// kReplayed a call whose answer the program has seen already.
struct PendingReply {
  enum class Kind { kAttach, kCall, kDrain, kCheckpoint, kReplayed, kOutput };
  Kind kind = Kind::kCall;
  std::uint32_t call_id = 0;
  ReplyWaiter* waiter = nullptr;  // of a kCall
  std::uint64_t number = 0;       // of the command, for a kCall and a kReplayed
};

// The stream to one executor process, kept open between leases. Guarded by the owner's mutex. One
// thread at a time waits for bytes without holding the mutex: a thread that waits for a
// reply reads on behalf of all waiting threads, and passes the duty on when its reply has come.
class ExecutorLink {
 public:
  // A lock of the owner's mutex, held by the caller.
  using Lock = std::unique_lock<std::mutex>;

  // Bytes are sent and received without waiting unless noted.
  explicit ExecutorLink(std::unique_ptr<FrameStream> stream)
      : stream_(std::move(stream)), is_attached_(stream_->is_introduced()) {}

  // As FrameStream's functions of the same names.
  void Send(std::vector<std::uint8_t>& frame) { stream_->Send(frame); }
  void Write() { stream_->Write(); }
  std::size_t unsent_bytes() const { return stream_->unsent_bytes(); }
  bool awaits_service() const { return stream_->awaits_service(); }

  // Registers a SYNC command in the order of sending.
  void Expect(PendingReply reply) { pending_.push_back(reply); }
  bool AwaitsReply() const { return !pending_.empty(); }
  // Whether the next reply is to a command of a replay.
  bool IsReplaying() const {
    return !pending_.empty() && pending_.front().kind == PendingReply::Kind::kReplayed;
  }
  // Whether a thread waits for a reply.
  bool HasWaiter() const;

  // Receives bytes once, with the lock released meanwhile. With `waits` the thread sleeps until
  // bytes or the end of the stream arrive. Requires !is_being_read().
  void Read(Lock& lock, bool waits);
  bool is_being_read() const { return is_being_read_; }
  // Wakes a waiting thread to read next. Returns true if none waits and the service thread must
  // read: for replies that only the session awaits, or because output waits for the executor.
  bool HandOverReading();

  // Takes the next reply that has arrived and the command that it answers. A malformed or
  // unexpected reply closes the stream. False if no reply is left.
  bool Next(wire::Reply& reply, PendingReply& answered);

  // Closes the stream and wakes the thread that reads. Every waiting call fails with `error`.
  // Returns whether a call tells the program of `error`.
  bool Break(cudaError_t error, const std::string& why);
  // Closes the stream and wakes the thread that reads, but fails no call: returns the unanswered
  // commands, whose waiting calls have no link any more.
  std::deque<PendingReply> Suspend(const std::string& why);
  bool is_closed() const { return stream_->closed(); }
  const std::string& why_closed() const { return stream_->why_closed(); }

  int fd() const { return stream_->fd(); }
  // Poll events for the service thread; 0 while waiting threads do all reading.
  FrameStream::Polled EventsToWatch();
  // Takes poll's events. Returns whether queued bytes may leave now.
  bool OnEvents(short events) { return stream_->OnEvents(events); }

  // Whether the caller must introduce the session (ProtocolCall::kAttach): true at most once.
  bool BeginAttach() { return !std::exchange(is_attached_, true); }
  // The version of the journal that the executor knows.
  std::uint64_t known_version() const { return known_version_; }
  void set_known_version(std::uint64_t version) { known_version_ = version; }

 private:
  const std::unique_ptr<FrameStream> stream_;
  std::deque<PendingReply> pending_;
  bool is_being_read_ = false;
  bool is_attached_;
  std::uint64_t known_version_ = 0;
};

using ExecutorLinkPtr = std::shared_ptr<ExecutorLink>;

}  // namespace torpor::shim
