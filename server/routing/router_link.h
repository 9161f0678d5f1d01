#pragma once

#include <string>

#include "proto/torpor/v1/router.pb.h"

namespace torpor::server {

// torpord's end of a stream to a router. Thread-safe, never blocks.
class RouterLink {
 public:
  virtual ~RouterLink() = default;

  // Queues a message; no effect once the stream has ended.
  virtual void Send(v1::TorpordMessage message) = 0;
  // Ends the stream after the queued messages: the router is not wanted and will end, too.
  virtual void Refuse(const std::string& reason) = 0;
  // Ends the stream at once; the router keeps its requests.
  virtual void Cut() = 0;
};

}  // namespace torpor::server
