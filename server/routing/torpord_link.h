#pragma once

#include "proto/torpor/v1/router.pb.h"

namespace torpor::server {

// The router's end of a stream to torpord. Thread-safe, never blocks.
class TorpordLink {
 public:
  virtual ~TorpordLink() = default;

  // Queues a message; no effect once the stream has ended.
  virtual void Send(v1::RouterMessage message) = 0;
};

}  // namespace torpor::server
