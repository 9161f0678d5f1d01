#pragma once

#include <cstdint>

namespace torpor::cuda_api {

enum class Access { kRead, kReadWrite, kWrite };

// The device memory of one session.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Where the GPU finds the client's [address, address + bytes), bytes > 0; null unless all of it
  // is the session's device memory.
  virtual void* Resolve(std::uint64_t address, std::uint64_t bytes, Access access) = 0;

  // Whether the GPU knows it by other addresses than the client.
  virtual bool is_translating() const { return false; }
};

}  // namespace torpor::cuda_api
