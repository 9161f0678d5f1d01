#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/physical_pool.h"

namespace torpor::executor {

// Clears chunks of a pool before another domain has them. Each chunk is mapped when first cleared,
// in a range of addresses of this object, and stays mapped; a node where one domain lives maps
// none. Not thread-safe.
class ChunkCleaner {
 public:
  // `device` and `pool`, which owns its chunks, must outlive the cleaner.
  ChunkCleaner(const Device& device, const PhysicalPool& pool);
  ~ChunkCleaner();
  ChunkCleaner(const ChunkCleaner&) = delete;
  ChunkCleaner& operator=(const ChunkCleaner&) = delete;

  // Fills the chunks with zeros, and returns once all are. No other work uses them. After an error
  // some may be cleared, and no fill is pending unless the context is lost.
  absl::Status Clear(std::span<const std::uint32_t> numbers);

 private:
  absl::Status Prepare();
  absl::Status Map(std::uint32_t number);
  absl::Status Fill(std::span<const std::uint32_t> numbers);
  CUdeviceptr AddressOf(std::uint32_t number) const { return base_ + number * pool_.chunk_bytes(); }

  const Device& device_;
  const PhysicalPool& pool_;
  std::vector<bool> is_mapped_;  // by number
  CUdeviceptr base_ = 0;         // 0: nothing was ever cleared
  CUstream stream_ = nullptr;
};

}  // namespace torpor::executor
