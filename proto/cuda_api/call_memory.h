#pragma once

#include <cstdint>

namespace torpor::cuda_api {

enum class Access { kRead, kReadWrite, kWrite };

// The device memory of a session, for calls.
class CallMemory {
 public:
  virtual ~CallMemory() = default;

  // Returns the GPU's address of the client's [address, address + bytes), bytes > 0; null unless
  // all bytes are the session's device memory.
  virtual void* Resolve(std::uint64_t address, std::uint64_t bytes, Access access) = 0;

  // Whether the GPU's addresses differ from the client's.
  virtual bool is_translating() const { return false; }
};

}  // namespace torpor::cuda_api
