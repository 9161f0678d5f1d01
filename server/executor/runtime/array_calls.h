#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "proto/cuda_api/cudart_dispatch.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/device_image.h"
#include "server/executor/runtime/command_memory.h"
#include "server/executor/runtime/session_arrays.h"
#include "server/executor/runtime/stream_set.h"

namespace torpor::executor {

// Carries out the commands about CUDA arrays of a session, and copies of three dimensions between
// arrays, device memory and pinned memory. Not thread-safe; call with the device current.
class ArrayCalls final : public cuda_api::CudartArrayHandler {
 public:
  // A side of a copy in the command's terms.
  struct CopySide {
    wire::MemorySide kind;
    std::uint64_t what;  // an address, or an array's id
    std::uint32_t level;
    std::array<std::uint64_t, 3> position;
    std::uint64_t pitch;
    std::uint64_t rows;
  };

  // All must outlive this.
  ArrayCalls(const Device& device, SessionArrays& arrays, const CommandMemory& memory,
             StreamSet& streams, DeviceImage& image)
      : device_(device), arrays_(arrays), memory_(memory), streams_(streams), image_(image) {}

  cuda_api::CallStatus ArrayCreate(const wire::ArrayCreate& command) override;
  cuda_api::CallStatus ArrayDestroy(const wire::ArrayDestroy& command) override;
  cuda_api::CallStatus ArrayCheck(const wire::ArrayCheck& command,
                                  wire::ArrayCheckResult& result) override;
  cuda_api::CallStatus Memcpy3D(const wire::Memcpy3D& command) override;

 private:
  // One side of a copy for the driver.
  struct Side {
    CommandMemory::Side linear;
    CUarray array = nullptr;                  // of CU_MEMORYTYPE_ARRAY
    std::array<std::uint64_t, 3> position{};  // in the array
  };

  // Returns nullopt if the side is not the session's.
  std::optional<Side> FindSide(const wire::Memcpy3D& copy, const CopySide& side, bool is_target);
  // Fill in one side of `driver_copy`; false if the side is not the session's.
  bool SetTarget(const wire::Memcpy3D& copy, CUDA_MEMCPY3D& driver_copy);
  bool SetSource(const wire::Memcpy3D& copy, CUDA_MEMCPY3D& driver_copy);

  const Device& device_;
  SessionArrays& arrays_;
  const CommandMemory& memory_;
  StreamSet& streams_;
  DeviceImage& image_;
};

}  // namespace torpor::executor
