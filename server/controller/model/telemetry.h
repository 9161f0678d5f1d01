#pragma once

#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "memory/moved_bytes.h"

namespace torpor::server {

enum class SwapPath { kPcie, kNvlink };
enum class EvictionReason {
  kMemoryFull,  // another image needed the room
  kMove,        // the image is wanted on another GPU
  kRequested,   // requested by an administrator
  kKeepAlive,   // the function was unused for its keep_alive
};

// Why changes made on a GPU are copied to the host image.
enum class WriteBackReason {
  kEviction,    // the image leaves the GPU
  kMove,        // the image moves to another GPU
  kCheckpoint,  // requested by an administrator, or after the set-up of a program
  kIdle,        // the GPU was idle
};

// What became of a session that an earlier torpord had opened.
enum class OutlivedFate {
  kResumed,  // its client goes on
  kExpired,  // its client did not come back in time
  kRefused,  // its client came back, and cannot go on
  kDropped,  // could not be restored
};

// Why a function is taken to have ended an executor.
enum class StrikeCause {
  kFault,    // the GPU says so: an illegal address, a failed launch
  kCrash,    // two executors crashed while it ran
  kEndless,  // its work did not end
};

// One image, moved between a GPU and host memory (or a peer).
struct SwapRecord {
  std::string function;
  GpuIndex gpu;
  SwapPath path = SwapPath::kPcie;
  memory::MovedBytes bytes;
  Duration duration{};
};

// Observes the node, for metrics. Called on the controller's thread: must not block or call back
// into the node.
class Telemetry {
 public:
  virtual ~Telemetry() = default;

  virtual void OnSwapIn(const SwapRecord&) {}
  // Includes write-backs after which the image stays on the GPU; idle ones copy a part of the
  // image.
  virtual void OnSwapOut(const SwapRecord&, WriteBackReason) {}
  virtual void OnEviction(const std::string& /*function*/, GpuIndex, EvictionReason) {}
  // `held` is from the grant until the GPU was free again.
  virtual void OnLeaseEnded(const std::string& /*function*/, GpuIndex, Duration /*held*/,
                            bool /*is_explicit*/) {}
  virtual void OnExecutorLost(GpuIndex) {}
  virtual void OnSessionOutlived(OutlivedFate) {}
  // A client has shown a token that no function has.
  virtual void OnWrongToken() {}
  virtual void OnStrike(const std::string& /*function*/, StrikeCause) {}
};

}  // namespace torpor::server
