#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/core/client_core.h"

// Stream-ordered allocation. A pool's memory is device memory of the session that the client cuts
// into blocks by itself (pool_memory.h); what reuses a block in another stream than the one that
// freed it waits for that stream's completion slot, or makes its own stream wait. Each device has
// pools of its own: what names no pool is about those of the device in use.
namespace torpor::shim {

// What a cudaMemPool_t names: the pool itself. Only for the functions below.
struct MemoryPool;

cudaMemPool_t DefaultPool();
cudaMemPool_t CurrentPool();
cudaError_t SetCurrentPool(cudaMemPool_t pool);
// At most `max_bytes` of device memory; 0 for no limit.
cudaError_t CreatePool(std::uint64_t max_bytes, cudaMemPool_t& pool);
// What is still in use of it stays valid.
cudaError_t DestroyPool(cudaMemPool_t pool);
// cudaErrorInvalidValue if `pool` is none.
cudaError_t CheckPool(cudaMemPool_t pool);
cudaError_t GetPoolAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t SetPoolAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, const void* value);
// Waits for the device and gives unused memory back while at least `keep` bytes remain.
cudaError_t TrimPool(cudaMemPool_t pool, std::uint64_t keep);

cudaError_t AllocateFromPool(cudaMemPool_t pool, std::uint64_t bytes, cudaStream_t stream,
                             void** out);
// cudaErrorInvalidValue if no pool's memory in use begins there.
cudaError_t FreeToPool(void* pointer, cudaStream_t stream);
// The same for memory of the device in use that nothing uses any more.
cudaError_t FreeUnusedToPool(void* pointer);

// Whether `address`, which lies in `allocation`, is in a pool's memory; `room` is what is left
// there of the block in use, 0 if it is free.
bool FindInPools(const ClientCore::Allocation& allocation, std::uint64_t address,
                 std::uint64_t& room);

// Gives back what they hold beyond their release thresholds. Nothing of the session runs.
cudaError_t ReleasePoolMemory();
// Waits for the device and gives back all that is unused, since somebody else lacks memory. False:
// there was none.
bool ReleaseAllPoolMemory();
// All are as in the beginning: the session's memory is freed by others (cudaDeviceReset).
void ForgetPools();

}  // namespace torpor::shim
