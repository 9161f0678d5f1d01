#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/core/client_core.h"

// Stream-ordered allocation. The client cuts a pool's device memory into blocks without asking the
// executor (pool_memory.h). A block freed in one stream is reused in another only after the first
// stream has passed the free, by completion slot or by making the other stream wait. Each device
// has pools of its own; functions without a pool argument concern the device in use. Thread-safe.
namespace torpor::shim {

// A pool; a cudaMemPool_t is the address of a MemoryPool. Opaque outside of memory_pools.cc.
struct MemoryPool;

cudaMemPool_t DefaultPool();
cudaMemPool_t CurrentPool();
cudaError_t SetCurrentPool(cudaMemPool_t pool);
// Creates a pool of at most `max_bytes` of device memory, rounded up to 32 MiB; 0 for no limit.
cudaError_t CreatePool(std::uint64_t max_bytes, cudaMemPool_t& pool);
// Destroys a pool. Blocks in use stay valid.
cudaError_t DestroyPool(cudaMemPool_t pool);
// cudaErrorInvalidValue if `pool` is not a live pool.
cudaError_t CheckPool(cudaMemPool_t pool);
cudaError_t GetPoolAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t SetPoolAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, const void* value);
// Waits for the device and gives unused memory back while at least `keep` bytes remain.
cudaError_t TrimPool(cudaMemPool_t pool, std::uint64_t keep);

// Allocates a block usable by later work of `stream`; reserves memory of the executor if needed.
cudaError_t AllocateFromPool(cudaMemPool_t pool, std::uint64_t bytes, cudaStream_t stream,
                             void** out);
// Frees a block behind the work of `stream`. cudaErrorInvalidValue if no block in use begins at
// `pointer`.
cudaError_t FreeToPool(void* pointer, cudaStream_t stream);
// Frees a block of the device in use that no work uses any more.
cudaError_t FreeUnusedToPool(void* pointer);

// Whether `address`, inside `allocation`, is in a pool's memory; stores the bytes from `address` to
// the end of the block in use, 0 for a free block.
bool FindInPools(const ClientCore::Allocation& allocation, std::uint64_t address,
                 std::uint64_t& room);

// Returns memory beyond the pools' release thresholds to the session. Call with the device idle.
cudaError_t ReleasePoolMemory();
// Waits for the device and returns all unused memory, for an allocation that lacks room. Returns
// false if no memory was unused.
bool ReleaseAllPoolMemory();
// Resets all pools to their initial state (cudaDeviceReset). The caller frees the session's memory.
void ForgetPools();

}  // namespace torpor::shim
