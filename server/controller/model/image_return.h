#pragma once

#include <functional>

#include "absl/status/status.h"
#include "server/controller/model/client_session.h"

namespace torpor::server {

// Brings images back from the disk, where they may lie while they are on no GPU. On the
// controller's thread.
class ImageReturn {
 public:
  using Then = std::function<void(const absl::Status&)>;

  virtual ~ImageReturn() = default;

  // Part of a step of the session: makes sure that the image is in host memory, once there is room.
  // ResourceExhausted if there was none for 30 s; DataLoss or Unavailable if the image is lost.
  virtual void BringBack(const SessionPtr& session, const Then& then) = 0;
};

}  // namespace torpor::server
