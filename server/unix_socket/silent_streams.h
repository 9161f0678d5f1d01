#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <list>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace torpor::server {

// Open streams of a gRPC service that have brought no message yet. Clients say at once who they
// are: beyond a maximum of silent streams the oldest is cut off. Thread-safe.
class SilentStreams {
 public:
  // `most`: maximum, above 0.
  explicit SilentStreams(std::size_t most) : most_(most) {}

  // A stream among them, from construction to destruction.
  class Place {
   public:
    // `context`, the stream's, outlives the object; `streams` too.
    Place(SilentStreams& streams, grpc::ServerContextBase& context)
        : streams_(streams), at_(streams.Add(context)) {}
    ~Place() { streams_.Remove(at_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    SilentStreams& streams_;
    const std::list<grpc::ServerContextBase*>::iterator at_;
  };

 private:
  using Streams = std::list<grpc::ServerContextBase*>;

  Streams::iterator Add(grpc::ServerContextBase& context);
  void Remove(Streams::iterator at);

  const std::size_t most_;
  Mutex mutex_;
  Streams streams_ ABSL_GUARDED_BY(mutex_);         // the oldest first; null once cut off
  std::size_t silent_ ABSL_GUARDED_BY(mutex_) = 0;  // of them, not cut off
};

}  // namespace torpor::server
