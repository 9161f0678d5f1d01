#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "emulator/exec/program.h"

namespace torpor::emulator {

// A window of 64 GiB whose allocations are whole pages; nothing is ever handed out twice, so
// that use after free faults.
class FakeDeviceMemory : public DeviceMemory {
 public:
  FakeDeviceMemory();
  ~FakeDeviceMemory() override;

  std::uint64_t window_begin() const override { return begin_; }
  std::uint64_t window_end() const override;
  bool IsAccessible(std::uint64_t address, Bytes size) const override;
  ExecResult<std::uint64_t> Allocate(Bytes size) override;
  void Free(std::uint64_t address) override;

  // Host memory that kernels may access.
  void Register(const void* address, Bytes size);

 private:
  std::uint64_t begin_ = 0;
  mutable std::mutex mutex_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Bytes> allocations_;
  std::map<std::uint64_t, Bytes> registered_;
};

}  // namespace torpor::emulator
