#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "proto/cuda_api/call_outcome.h"
#include "server/executor/gpu/device.h"
#include "server/executor/runtime/stream_set.h"
#include "server/executor/session_memory/session_window.h"

namespace torpor::executor {

// Copies device memory to the client and waits for the copy. Not thread-safe; call with the device
// current.
class Downloads {
 public:
  // All must outlive this.
  Downloads(const Device& device, StreamSet& streams, SessionWindow& window)
      : device_(device), streams_(streams), window_(window) {}

  // Copies `bytes` from `source`, which the caller has checked, after the earlier work of
  // `stream`: to byte `window_offset` of the window, inside the payload ring, or, with
  // wire::kReplyInline, into `data`. A reply carries at most wire::kMaxInlineBytes. With
  // wire::kReplyHash, `data` gets the bytes' hash.
  cuda_api::CallStatus Copy(CUdeviceptr source, std::uint64_t stream, Bytes bytes,
                            std::uint64_t window_offset, std::vector<std::uint8_t>& data);

 private:
  // Copies to `destination` and waits.
  CUresult Fetch(CUdeviceptr source, std::uint64_t stream, Bytes bytes, std::uint8_t* destination);

  const Device& device_;
  StreamSet& streams_;
  SessionWindow& window_;
};

}  // namespace torpor::executor
