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

// A stream as the client keeps it. Shared ownership: another thread may still name a stream that is
// being destroyed. Any thread may read the constant fields; atomics and the mutex guard the others.
struct ClientStream {
  ClientCore* core = nullptr;  // of the stream's device; null for each device's legacy stream
  std::uint64_t wire = 0;      // the name in commands; 0 is the legacy default stream
  unsigned flags = 0;
  int priority = 0;
  bool is_default = false;             // the legacy stream or a thread's
  std::atomic<int> host_functions{0};  // queued and not finished
  // The core's count of commands (from 1) when the program last waited for the stream.
  std::atomic<std::uint64_t> idle_commands{0};
  // The same count behind copies out of pageable memory, if the stream got only copies since.
  std::atomic<std::uint64_t> upload_commands{0};

  // Set while the stream's work goes into a graph; guarded by GraphLock.
  std::shared_ptr<StreamCapture> capture;

  std::mutex mutex;  // guards the attributes and the mark of the last query
  std::map<cudaStreamAttrID, cudaStreamAttrValue> attributes;
  std::uint32_t slot = 0;
  std::uint64_t marked_value = 0;
  std::uint64_t marked_commands = 0;  // the core's count when the mark was placed
};

using ClientStreamPtr = std::shared_ptr<ClientStream>;

// Whether the stream is the legacy default stream: ordered with every blocking stream, both ways.
inline bool IsLegacy(const ClientStream& stream) { return stream.wire == 0; }
inline bool IsBlocking(const ClientStream& stream) {
  return (stream.flags & cudaStreamNonBlocking) == 0;
}

}  // namespace torpor::shim
