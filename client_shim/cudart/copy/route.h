#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/cudart/memory/places.h"

// The memory at both sides of a copy, and the direction.
namespace torpor::shim {

// Whether a call returns only when a copy from or to pinned memory is done.
enum class Wait { kNo, kYes };

// Checks `kind` against both sides. cudaErrorInvalidMemcpyDirection for an unknown kind,
// cudaErrorInvalidValue for a kind that contradicts the sides.
cudaError_t CheckDirection(cudaMemcpyKind kind, Side from, Side to);

// The two sides of a copy; devices only where a side is device memory.
struct CopyRoute {
  Side from = Side::kPageable;
  Side to = Side::kPageable;
  int from_device = 0;
  int to_device = 0;
};
// Finds the route from the addresses. Errors of CheckDirection; cudaErrorInvalidValue for a null
// pointer or a range that leaves its allocation.
cudaError_t FindRoute(void* to, std::uint64_t to_bytes, const void* from, std::uint64_t from_bytes,
                      cudaMemcpyKind kind, CopyRoute& route);

}  // namespace torpor::shim
