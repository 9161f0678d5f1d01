#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace torpor::server {

// A bidirectional gRPC stream that queues writes and reads one message at a time. Keeps itself
// alive until gRPC calls OnDone. A subclass handles incoming messages. All public functions are
// thread-safe. An exception ends the process (server/log/crash_log.h): gRPC would swallow it, and
// leave the stream half handled.
template <typename In, typename Out>
class StreamReactor : public grpc::ServerBidiReactor<In, Out> {
 public:
  // Maximum of queued messages: a peer beyond reads too slowly or not at all.
  static constexpr std::size_t kMaxQueued = 4096;

  // `self` owns this reactor; `context` is the stream's.
  void Start(std::shared_ptr<StreamReactor> self, grpc::CallbackServerContext* context) {
    MutexLock lock(&mutex_);
    self_ = std::move(self);
    context_ = context;
    this->StartRead(&incoming_);
  }

  // Reads one message; OnMessage follows. Once for every message.
  void ReadNext() {
    MutexLock lock(&mutex_);
    if (!is_finished_) this->StartRead(&incoming_);
  }

  // Queues a message, without effect on an ended stream. Cancels the stream beyond kMaxQueued.
  void Queue(Out message) {
    MutexLock lock(&mutex_);
    if (is_finished_) return;
    // Not Finish, which would wait for the write that the peer does not take. TryCancel never calls
    // back from inside, so that holding the lock is safe.
    if (queue_.size() >= kMaxQueued) return context_->TryCancel();
    queue_.push_back(std::move(message));
    if (queue_.size() == 1) this->StartWrite(&queue_.front());
  }

  // Ends the stream after the queued messages.
  void FinishStream(grpc::Status status) {
    MutexLock lock(&mutex_);
    if (is_finished_ || closing_) return;
    if (queue_.empty()) return FinishLocked(std::move(status));
    closing_ = std::make_unique<grpc::Status>(std::move(status));
  }

 protected:
  // `message` stays valid until the next ReadNext.
  virtual void OnMessage(const In& message) = 0;
  // The last call for the stream. `self` was the stream's own reference.
  virtual void OnEnd(std::shared_ptr<StreamReactor> self) = 0;

 private:
  void OnReadDone(bool ok) noexcept final {
    if (ok) return OnMessage(incoming_);
    MutexLock lock(&mutex_);
    if (!is_finished_) FinishLocked(grpc::Status::OK);  // the peer has closed
  }

  void OnWriteDone(bool ok) noexcept final {
    MutexLock lock(&mutex_);
    if (is_finished_) return;
    if (!ok) return FinishLocked(grpc::Status::CANCELLED);
    queue_.pop_front();
    if (!queue_.empty()) return this->StartWrite(&queue_.front());
    if (closing_) FinishLocked(std::move(*closing_));
  }

  void OnCancel() noexcept final {
    MutexLock lock(&mutex_);
    if (!is_finished_) FinishLocked(grpc::Status::CANCELLED);
  }

  void OnDone() noexcept final { OnEnd(TakeSelf()); }

  std::shared_ptr<StreamReactor> TakeSelf() {
    MutexLock lock(&mutex_);
    return std::move(self_);
  }

  void FinishLocked(grpc::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    is_finished_ = true;
    this->Finish(std::move(status));
  }

  In incoming_;
  Mutex mutex_;
  std::shared_ptr<StreamReactor> self_ ABSL_GUARDED_BY(mutex_);
  grpc::CallbackServerContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;  // valid until OnDone
  std::deque<Out> queue_ ABSL_GUARDED_BY(mutex_);  // the front is being written
  std::unique_ptr<grpc::Status> closing_ ABSL_GUARDED_BY(mutex_);
  bool is_finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace torpor::server
