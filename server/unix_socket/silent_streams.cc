#include "server/unix_socket/silent_streams.h"

#include <algorithm>
#include <utility>

namespace torpor::server {

SilentStreams::Streams::iterator SilentStreams::Add(grpc::ServerContextBase& context) {
  MutexLock lock(&mutex_);
  if (silent_ >= most_) {
    const auto oldest = std::find_if(streams_.begin(), streams_.end(),
                                     [](const auto* stream) { return stream != nullptr; });
    // TryCancel never calls back from inside.
    std::exchange(*oldest, nullptr)->TryCancel();
    --silent_;
  }
  ++silent_;
  return streams_.insert(streams_.end(), &context);
}

void SilentStreams::Remove(Streams::iterator at) {
  MutexLock lock(&mutex_);
  if (*at != nullptr) --silent_;
  streams_.erase(at);
}

}  // namespace torpor::server
