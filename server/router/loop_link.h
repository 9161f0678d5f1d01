#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/mutex.h"

namespace torpor::server {

// Carries calls from other threads to a loop, as long as the loop's side is there. For callbacks
// that others keep: they share the link, which outlives the loop. Thread-safe.
class LoopLink {
 public:
  explicit LoopLink(boost::asio::io_context& io) : io_(&io) {}

  // Runs the action on the loop; does nothing after Cut.
  template <typename Action>
  void Post(Action action) {
    MutexLock lock(&mutex_);
    if (io_ != nullptr) boost::asio::post(*io_, std::move(action));
  }

  // The loop's side goes.
  void Cut() {
    MutexLock lock(&mutex_);
    io_ = nullptr;
  }

 private:
  Mutex mutex_;
  boost::asio::io_context* io_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::server
