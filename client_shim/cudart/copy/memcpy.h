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

// cudaMemcpy, and without waiting cudaMemcpyAsync: finds the direction from the addresses, checks
// `kind` and the ranges, and captures or sends the copy.
cudaError_t CopyLinear(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind,
                       cudaStream_t stream, Wait wait);

// The copying part of cudaMemcpy2DAsync, for a known route on a stream ready for a command.
cudaError_t CopyRowsOn(const ClientStreamPtr& stream, void* to, const void* from, const Rows& rows,
                       const CopyRoute& route);

inline wire::MemorySide MemorySideOf(Side side) {
  return side == Side::kDevice ? wire::MemorySide::kDevice : wire::MemorySide::kArena;
}

// Work of copy nodes, unchecked: callers have checked the route.
CopyWork LinearCopyWork(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind);
CopyWork PitchedCopyWork(void* to, const void* from, const Rows& rows, cudaMemcpyKind kind);

}  // namespace torpor::shim
