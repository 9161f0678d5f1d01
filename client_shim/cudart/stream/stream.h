#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

struct StreamCapture;

// What the client knows of a stream. Shared: a stream may be destroyed while another thread
// still names it.
struct Stream {
  ClientCore* core = nullptr;  // of its device; the legacy stream, which each device has, has none
  std::uint64_t wire = 0;      // as commands name it; 0 is the legacy default stream
  unsigned flags = 0;
  int priority = 0;
  bool is_default = false;             // the legacy stream or a thread's
  std::atomic<int> host_functions{0};  // queued and not finished
  // The core's count of commands when the program last waited for it; its first command is 1.
  std::atomic<std::uint64_t> idle_commands{0};
  // The same count behind copies out of pageable memory, if they were all that it was sent since.
  std::atomic<std::uint64_t> upload_commands{0};

  // Set while what is sent to it goes into a graph; guarded by GraphLock.
  std::shared_ptr<StreamCapture> capture;

  std::mutex mutex;  // guards the attributes and the mark of the last query
  std::map<cudaStreamAttrID, cudaStreamAttrValue> attributes;
  std::uint32_t slot = 0;
  std::uint64_t marked_value = 0;
  std::uint64_t marked_commands = 0;  // the core's count when the mark was placed
};

using StreamPtr = std::shared_ptr<Stream>;

// Whether it is the legacy default stream, which waits for the blocking ones and they for it.
inline bool IsLegacy(const Stream& stream) { return stream.wire == 0; }
inline bool IsBlocking(const Stream& stream) { return (stream.flags & cudaStreamNonBlocking) == 0; }

}  // namespace torpor::shim
