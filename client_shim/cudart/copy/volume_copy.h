#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/cudart/copy/route.h"
#include "client_shim/cudart/stream/stream.h"
#include "client_shim/cudart/texture/arrays.h"

// Copies of up to three dimensions between arrays, device memory and host memory.
namespace torpor::shim {

// Where one side of a copy begins: a place in an array, or linear memory.
struct CopyPlace {
  ArrayPtr array;       // null: linear memory
  std::uint64_t x = 0;  // in the array, in bytes
  std::uint64_t y = 0;
  std::uint64_t z = 0;
  std::uint8_t* memory = nullptr;  // the first byte that is copied
  std::uint64_t pitch = 0;         // bytes from row to row
  std::uint64_t rows = 0;          // of a slice
};

struct CopyVolume {
  std::uint64_t width = 0;  // in bytes
  std::uint64_t height = 1;
  std::uint64_t depth = 1;

  std::uint64_t bytes() const { return width * height * depth; }
};

// One that has all of its volume.
struct LocatedPlace {
  CopyPlace place;
  Side side = Side::kPageable;
  int device = 0;  // where it is one's
};

// The copy, in the place that it has in `stream`, once it is known where its sides are. Between the
// device and pageable memory it waits whatever is asked for.
cudaError_t CopyVolumeOn(const Stream& stream, const LocatedPlace& to, const LocatedPlace& from,
                         const CopyVolume& volume, Wait wait);

// Copies nothing of an empty volume. cudaErrorInvalidValue where a side is not all there or rows
// overlap, cudaErrorNotSupported where an array is another device's than the one that is to copy.
cudaError_t CopyVolumes(CopyPlace to, CopyPlace from, const CopyVolume& volume, cudaMemcpyKind kind,
                        cudaStream_t stream, Wait wait);

}  // namespace torpor::shim
