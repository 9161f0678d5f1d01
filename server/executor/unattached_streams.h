#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <list>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace torpor::executor {

// Streams that have not shown a session's key yet, each of which holds a thread. A client shows the
// key at once: beyond kMost such streams the oldest is cut off. Thread-safe.
class UnattachedStreams {
 public:
  static constexpr std::size_t kMost = 64;

  // A stream's place among them, until the end of the object's life.
  class Place {
   public:
    // `context` is the stream's.
    Place(UnattachedStreams& streams, grpc::ServerContext& context)
        : streams_(streams), at_(streams.Add(context)) {}
    ~Place() { streams_.Remove(at_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    UnattachedStreams& streams_;
    const std::list<grpc::ServerContext*>::iterator at_;
  };

 private:
  using Streams = std::list<grpc::ServerContext*>;

  Streams::iterator Add(grpc::ServerContext& context);
  void Remove(Streams::iterator at);

  Mutex mutex_;
  Streams streams_ ABSL_GUARDED_BY(mutex_);  // the oldest first; cut off: null
  std::size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // of them, not cut off
};

}  // namespace torpor::executor
