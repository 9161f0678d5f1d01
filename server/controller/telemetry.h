#pragma once

#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "memory/moved_bytes.h"
#include "server/controller/request_broker.h"

namespace torpor::server {

enum class SwapPath { kPcie, kNvlink };
enum class EvictionReason {
  kMemoryFull,  // another image needed the room
  kMove,        // the image is wanted on another GPU
  kRequested,   // an administrator asked for it
};

// One image, moved between a GPU and host memory (or a peer).
struct SwapRecord {
  std::string function;
  GpuIndex gpu;
  SwapPath path = SwapPath::kPcie;
  memory::MovedBytes bytes;
  Duration duration{};
};

// What happens on the node, for whoever counts it. Called on the controller's thread: must not
// block and must not call back into the node.
class Telemetry {
 public:
  virtual ~Telemetry() = default;

  virtual void OnSwapIn(const SwapRecord&) {}
  // Also the checkpoints, by which an image is written back and stays on the GPU.
  virtual void OnSwapOut(const SwapRecord&) {}
  virtual void OnEviction(const std::string& /*function*/, GpuIndex, EvictionReason) {}
  // `held` is from the grant until the GPU was free again.
  virtual void OnLeaseEnded(const std::string& /*function*/, GpuIndex, Duration /*held*/,
                            bool /*is_explicit*/) {}
  virtual void OnExecutorLost(GpuIndex) {}
};

}  // namespace torpor::server
