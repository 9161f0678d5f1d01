#include "server/executor/physical_pool.h"

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

CUmemAllocationProp ChunkProperties(const Device& device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = device.location();
  // For the executors of other GPUs that a function uses at the same time.
  if (device.attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0) {
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  return properties;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PhysicalPool>> PhysicalPool::Create(const Device& device,
                                                                   Bytes pool_bytes,
                                                                   Bytes chunk_bytes) {
  const CUmemAllocationProp properties = ChunkProperties(device);
  std::size_t granularity = 0;
  TORPOR_RETURN_IF_ERROR(
      device.Status(device.driver().MemGetAllocationGranularity(&granularity, &properties,
                                                                CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                    "cuMemGetAllocationGranularity"));
  if (chunk_bytes == 0 || chunk_bytes % granularity != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a chunk of ", chunk_bytes,
                                                   " bytes is not a multiple of the driver's ",
                                                   granularity, "; set --chunk-bytes"));
  }
  if (pool_bytes < chunk_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the GPU has ", pool_bytes,
                                                   " bytes for images, less than one chunk of ",
                                                   chunk_bytes, "; lower --driver-reserve"));
  }
  std::unique_ptr<PhysicalPool> pool(
      new PhysicalPool(device, pool_bytes / chunk_bytes, chunk_bytes));
  // The first chunk at once, so that a driver that gives none is found out at start.
  TORPOR_ASSIGN_OR_RETURN(const CUmemGenericAllocationHandle first, pool->CreateChunk());
  pool->pool_.Add(first);
  pool->filler_ = std::thread([raw = pool.get()] { raw->Fill(); });
  return pool;
}

PhysicalPool::~PhysicalPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  if (filler_.joinable()) filler_.join();
  TORPOR_CHECK(pool_.free_chunks() == pool_.total_chunks());
  std::vector<CUmemGenericAllocationHandle> all;
  pool_.Take(pool_.free_chunks(), all);
  for (const CUmemGenericAllocationHandle chunk : all) device_.driver().MemRelease(chunk);
}

absl::StatusOr<CUmemGenericAllocationHandle> PhysicalPool::CreateChunk() const {
  const CUmemAllocationProp properties = ChunkProperties(device_);
  CUmemGenericAllocationHandle chunk = 0;
  TORPOR_RETURN_IF_ERROR(device_.Status(
      device_.driver().MemCreate(&chunk, chunk_bytes_, &properties, 0), "cuMemCreate"));
  return chunk;
}

void PhysicalPool::Fill() {
  absl::Status status = device_.MakeCurrent();
  for (std::size_t i = 1; i < chunk_count_; ++i) {
    absl::StatusOr<CUmemGenericAllocationHandle> chunk =
        status.ok() ? CreateChunk() : absl::StatusOr<CUmemGenericAllocationHandle>(status);
    std::lock_guard lock(mutex_);
    if (!chunk.ok()) {
      spdlog::error("the pool has {} of {} chunks: {}; raise --driver-reserve",
                    pool_.total_chunks(), chunk_count_, chunk.status().ToString());
      fill_status_ = chunk.status();
      changed_.notify_all();
      return;
    }
    pool_.Add(*chunk);
    changed_.notify_all();
    if (stopping_) return;
  }
}

absl::StatusOr<std::vector<CUmemGenericAllocationHandle>> PhysicalPool::Take(std::size_t count) {
  std::vector<CUmemGenericAllocationHandle> taken;
  if (count == 0) return taken;
  std::unique_lock lock(mutex_);
  while (!pool_.Take(count, taken)) {
    const std::size_t to_come = fill_status_.ok() ? chunk_count_ - pool_.total_chunks() : 0;
    if (count > pool_.free_chunks() + to_come) {
      return absl::ResourceExhaustedError(absl::StrCat("the GPU has ", pool_.free_chunks(),
                                                       " free chunks of ", chunk_bytes_, " bytes, ",
                                                       count, " are needed"));
    }
    changed_.wait(lock);
  }
  return taken;
}

void PhysicalPool::Return(std::span<const CUmemGenericAllocationHandle> chunks) {
  std::lock_guard lock(mutex_);
  pool_.Return(chunks);
}

std::size_t PhysicalPool::free_chunks() const {
  std::lock_guard lock(mutex_);
  return pool_.free_chunks();
}

}  // namespace torpor::executor
