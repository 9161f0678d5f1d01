#include "server/executor/unattached_streams.h"

#include <algorithm>
#include <utility>

namespace torpor::executor {

UnattachedStreams::Streams::iterator UnattachedStreams::Add(grpc::ServerContext& context) {
  MutexLock lock(&mutex_);
  if (waiting_ >= kMost) {
    const auto oldest = std::find_if(streams_.begin(), streams_.end(),
                                     [](const auto* stream) { return stream != nullptr; });
    std::exchange(*oldest, nullptr)->TryCancel();
    --waiting_;
  }
  ++waiting_;
  return streams_.insert(streams_.end(), &context);
}

void UnattachedStreams::Remove(Streams::iterator at) {
  MutexLock lock(&mutex_);
  if (*at != nullptr) --waiting_;
  streams_.erase(at);
}

}  // namespace torpor::executor
