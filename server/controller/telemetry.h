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
  kKeepAlive,   // nobody has used the function for its keep_alive
};

// Why bytes of an image that the GPU has changed are copied to the host.
enum class WriteBackReason {
  kEviction,    // it leaves the GPU
  kMove,        // for another one
  kCheckpoint,  // an administrator asked for it, or what a program has set up is to be kept
  kIdle,        // nothing else was to be done
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
  // Also write-backs after which the image stays on the GPU; when idle, of a part of it.
  virtual void OnSwapOut(const SwapRecord&, WriteBackReason) {}
  virtual void OnEviction(const std::string& /*function*/, GpuIndex, EvictionReason) {}
  // `held` is from the grant until the GPU was free again.
  virtual void OnLeaseEnded(const std::string& /*function*/, GpuIndex, Duration /*held*/,
                            bool /*is_explicit*/) {}
  virtual void OnExecutorLost(GpuIndex) {}
  // Another one than is configured.
  virtual void OnObjective(const std::string& /*function*/, Duration /*deadline*/,
                           double /*percentile*/) {}
};

}  // namespace torpor::server
