#pragma once

#include <cuda.h>

#include <optional>
#include <string>
#include <unordered_map>

#include "memory/trace/block_source.h"
#include "memory/trace/replay.h"

namespace torpor::memory {

// The driver's own allocation, cuMemAlloc and cuMemFree, of GPU 0: NVIDIA's driver or the
// emulator's. Blocks are named by their device addresses.
class DriverMemory {
 public:
  // Opens libcuda.so.1 of that folder, or, where it is empty, the one that the system finds. A
  // failure ends the process.
  DriverMemory(const std::string& folder, Bytes capacity);
  ~DriverMemory();
  DriverMemory(const DriverMemory&) = delete;
  DriverMemory& operator=(const DriverMemory&) = delete;

  std::optional<std::uint64_t> Allocate(Bytes bytes);
  void Free(std::uint64_t address);

  // What may be allocated: less than the GPU has, so that all that is compared has the same.
  Bytes capacity() const { return capacity_; }

 private:
  template <typename Function>
  void Load(const char* name, Function*& function);
  void Check(CUresult result, const char* call) const;

  void* library_ = nullptr;
  decltype(cuMemAlloc)* allocate_ = nullptr;
  decltype(cuMemFree)* free_ = nullptr;
  decltype(cuDevicePrimaryCtxRelease)* release_ = nullptr;
  Bytes capacity_;
  Bytes allocated_ = 0;
  std::unordered_map<std::uint64_t, Bytes> blocks_;
};

// A trace goes straight to the driver.
class DriverTarget final : public ReplayTarget {
 public:
  explicit DriverTarget(DriverMemory& memory) : memory_(memory) {}

  std::optional<std::uint64_t> Allocate(std::uint32_t, Bytes bytes) override {
    return memory_.Allocate(bytes);
  }
  void Free(std::uint64_t address) override { memory_.Free(address); }
  Moved Idle(Bytes, const std::function<void(std::uint64_t, std::uint64_t)>&) override {
    return {};
  }
  Bytes fragmented() const override { return 0; }
  Bytes capacity() const override { return 0; }

 private:
  DriverMemory& memory_;
};

// What a single pool has no block for it gets from the driver, as the paper's Torpor-Block does.
class DriverSource final : public BlockSource {
 public:
  explicit DriverSource(DriverMemory& memory) : memory_(memory) {}

  std::optional<Block> Allocate(Bytes bytes, Bytes) override {
    const std::optional<std::uint64_t> address = memory_.Allocate(bytes);
    if (!address) return std::nullopt;
    return Block{*address, bytes};
  }
  void Free(const Block& block) override { memory_.Free(block.offset); }
  Bytes capacity() const override { return memory_.capacity(); }
  FreeBlocks free_blocks() const override { return FreeBlocks(0); }

 private:
  DriverMemory& memory_;
};

}  // namespace torpor::memory
