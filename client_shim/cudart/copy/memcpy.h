#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/cudart/copy/route.h"
#include "client_shim/cudart/graph/node_work.h"
#include "client_shim/cudart/stream/stream.h"
#include "proto/cuda_api/cudart_commands.h"

namespace torpor::shim {

// The rows of a two-dimensional copy, in bytes.
struct Rows {
  std::uint64_t to_pitch = 0;
  std::uint64_t from_pitch = 0;
  std::uint64_t width = 0;
  std::uint64_t height = 0;

  // Bytes from the first row's begin to the last row's end.
  std::uint64_t Span(std::uint64_t pitch) const { return (height - 1) * pitch + width; }
};

// What cudaMemcpy and, without waiting, cudaMemcpyAsync do.
cudaError_t CopyLinear(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind,
                       cudaStream_t stream, Wait wait);

// What cudaMemcpy2DAsync does once it knows the route, on a stream that is ready for a command.
cudaError_t CopyRowsOn(const StreamPtr& stream, void* to, const void* from, const Rows& rows,
                       const Route& route);

inline wire::MemorySide MemorySideOf(Side side) {
  return side == Side::kDevice ? wire::MemorySide::kDevice : wire::MemorySide::kArena;
}

// Not checked: the plain calls have done it.
CopyWork LinearCopy(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind);
CopyWork PitchedCopy(void* to, const void* from, const Rows& rows, cudaMemcpyKind kind);

}  // namespace torpor::shim
