// Copies to and from arrays: of rows (cudaMemcpy2DToArray and related calls), and of consecutive
// bytes that wrap from row to row (cudaMemcpyToArray and related calls).
#include <algorithm>
#include <functional>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/copy/volume_copy.h"

namespace torpor::shim {
namespace {

// The arguments common to all entries.
struct Options {
  cudaMemcpyKind kind = cudaMemcpyDefault;
  cudaStream_t stream = cudaStreamLegacy;
  Wait wait = Wait::kYes;
};

// Finds a place in an array. `x` in bytes, `y` in rows.
cudaError_t ArrayPlace(cudaArray_const_t handle, std::uint64_t x, std::uint64_t y,
                       CopyPlace& place) {
  place.x = x;
  place.y = y;
  return FindArray(handle, place.array);
}

// A place in linear memory. `pitch`: bytes from row to row.
CopyPlace MemoryPlace(const void* memory, std::uint64_t pitch) {
  CopyPlace place;
  place.memory = static_cast<std::uint8_t*>(const_cast<void*>(memory));
  place.pitch = pitch;
  return place;
}

cudaError_t Run(const CopyPlace& to, const CopyPlace& from, const CopyVolume& volume,
                const Options& options) {
  return CopyVolumes(to, from, volume, options.kind, options.stream, options.wait);
}

// cudaMemcpy2DToArray. The pitch matters only with several rows.
cudaError_t RowsToArray(cudaArray_t to, std::uint64_t x, std::uint64_t y, const void* from,
                        std::uint64_t pitch, std::uint64_t width, std::uint64_t height,
                        const Options& options) {
  CopyPlace target;
  TORPOR_TRY(ArrayPlace(to, x, y, target));
  if (height > 1 && width > pitch) return cudaErrorInvalidPitchValue;
  return Run(target, MemoryPlace(from, pitch), {width, height, 1}, options);
}

cudaError_t RowsFromArray(void* to, std::uint64_t pitch, cudaArray_const_t from, std::uint64_t x,
                          std::uint64_t y, std::uint64_t width, std::uint64_t height,
                          const Options& options) {
  CopyPlace source;
  TORPOR_TRY(ArrayPlace(from, x, y, source));
  if (height > 1 && width > pitch) return cudaErrorInvalidPitchValue;
  return Run(MemoryPlace(to, pitch), source, {width, height, 1}, options);
}

// Splits `bytes` of the array from (x, y) on into at most three boxes: the rest of the first row,
// whole rows, the begin of the last row. Calls `copy` with place and volume of each box.
cudaError_t ForEachBox(
    const CopyPlace& array, std::uint64_t bytes,
    const std::function<cudaError_t(const CopyPlace&, const CopyVolume&)>& copy) {
  const std::uint64_t row = array.array->row_bytes();
  CopyPlace place = array;
  while (bytes > 0) {
    if (place.x >= row) return cudaErrorInvalidValue;
    CopyVolume volume{std::min(bytes, row - place.x), 1, 1};
    if (place.x == 0 && bytes >= row) volume.height = bytes / row;
    TORPOR_TRY(copy(place, volume));
    bytes -= volume.bytes();
    place.x = 0;
    place.y += volume.height;
  }
  return cudaSuccess;
}

// Whether the array has all `bytes` from (x, y) on, so that either all bytes or none are copied.
bool Holds(const CopyPlace& place, std::uint64_t bytes) {
  const ClientArray& array = *place.array;
  if (place.x >= array.row_bytes() || place.y >= array.rows()) return bytes == 0;
  return bytes <= (array.rows() - place.y) * array.row_bytes() - place.x;
}

// cudaMemcpyToArray. Reads `from` as consecutive bytes.
cudaError_t BytesToArray(cudaArray_t to, std::uint64_t x, std::uint64_t y, const void* from,
                         std::uint64_t bytes, const Options& options) {
  CopyPlace target;
  TORPOR_TRY(ArrayPlace(to, x, y, target));
  if (!Holds(target, bytes)) return cudaErrorInvalidValue;
  const auto* next = static_cast<const std::uint8_t*>(from);
  return ForEachBox(target, bytes, [&](const CopyPlace& place, const CopyVolume& volume) {
    const cudaError_t error = Run(place, MemoryPlace(next, volume.width), volume, options);
    next += volume.bytes();
    return error;
  });
}

cudaError_t BytesFromArray(void* to, cudaArray_const_t from, std::uint64_t x, std::uint64_t y,
                           std::uint64_t bytes, const Options& options) {
  CopyPlace source;
  TORPOR_TRY(ArrayPlace(from, x, y, source));
  if (!Holds(source, bytes)) return cudaErrorInvalidValue;
  auto* next = static_cast<std::uint8_t*>(to);
  return ForEachBox(source, bytes, [&](const CopyPlace& place, const CopyVolume& volume) {
    const cudaError_t error = Run(MemoryPlace(next, volume.width), place, volume, options);
    next += volume.bytes();
    return error;
  });
}

cudaError_t RowsBetweenArrays(cudaArray_t to, std::uint64_t to_x, std::uint64_t to_y,
                              cudaArray_const_t from, std::uint64_t from_x, std::uint64_t from_y,
                              std::uint64_t width, std::uint64_t height, const Options& options) {
  CopyPlace target;
  TORPOR_TRY(ArrayPlace(to, to_x, to_y, target));
  CopyPlace source;
  TORPOR_TRY(ArrayPlace(from, from_x, from_y, source));
  return Run(target, source, {width, height, 1}, options);
}

// Copies piece by piece, each up to the nearest end of a row of either array.
cudaError_t BytesBetweenArrays(cudaArray_t to, std::uint64_t to_x, std::uint64_t to_y,
                               cudaArray_const_t from, std::uint64_t from_x, std::uint64_t from_y,
                               std::uint64_t bytes, const Options& options) {
  CopyPlace target;
  TORPOR_TRY(ArrayPlace(to, to_x, to_y, target));
  CopyPlace source;
  TORPOR_TRY(ArrayPlace(from, from_x, from_y, source));
  if (!Holds(target, bytes) || !Holds(source, bytes)) return cudaErrorInvalidValue;
  const auto advance = [](CopyPlace& place, std::uint64_t by) {
    place.x += by;
    if (place.x < place.array->row_bytes()) return;
    place.x = 0;
    ++place.y;
  };
  while (bytes > 0) {
    const std::uint64_t part = std::min(
        {bytes, target.array->row_bytes() - target.x, source.array->row_bytes() - source.x});
    TORPOR_TRY(Run(target, source, {part, 1, 1}, options));
    advance(target, part);
    advance(source, part);
    bytes -= part;
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                size_t width, size_t height, enum cudaMemcpyKind kind) {
  return Entry([&] { return RowsToArray(to, x, y, from, pitch, width, height, {kind}); });
}

cudaError_t cudaMemcpy2DToArray_ptds(cudaArray_t to, size_t x, size_t y, const void* from,
                                     size_t pitch, size_t width, size_t height,
                                     enum cudaMemcpyKind kind) {
  return Entry([&] {
    return RowsToArray(to, x, y, from, pitch, width, height, {kind, cudaStreamPerThread});
  });
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from,
                                     size_t pitch, size_t width, size_t height,
                                     enum cudaMemcpyKind kind, cudaStream_t stream) {
  return Entry([&] {
    return RowsToArray(to, x, y, from, pitch, width, height, {kind, stream, Wait::kNo});
  });
}

cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x,
                                  size_t y, size_t width, size_t height, enum cudaMemcpyKind kind) {
  return Entry([&] { return RowsFromArray(to, pitch, from, x, y, width, height, {kind}); });
}

cudaError_t cudaMemcpy2DFromArray_ptds(void* to, size_t pitch, cudaArray_const_t from, size_t x,
                                       size_t y, size_t width, size_t height,
                                       enum cudaMemcpyKind kind) {
  return Entry([&] {
    return RowsFromArray(to, pitch, from, x, y, width, height, {kind, cudaStreamPerThread});
  });
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from, size_t x,
                                       size_t y, size_t width, size_t height,
                                       enum cudaMemcpyKind kind, cudaStream_t stream) {
  return Entry([&] {
    return RowsFromArray(to, pitch, from, x, y, width, height, {kind, stream, Wait::kNo});
  });
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y,
                                     cudaArray_const_t from, size_t from_x, size_t from_y,
                                     size_t width, size_t height, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return RowsBetweenArrays(to, to_x, to_y, from, from_x, from_y, width, height, {kind});
  });
}

cudaError_t cudaMemcpy2DArrayToArray_ptds(cudaArray_t to, size_t to_x, size_t to_y,
                                          cudaArray_const_t from, size_t from_x, size_t from_y,
                                          size_t width, size_t height, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return RowsBetweenArrays(to, to_x, to_y, from, from_x, from_y, width, height,
                             {kind, cudaStreamPerThread});
  });
}

cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes,
                              enum cudaMemcpyKind kind) {
  return Entry([&] { return BytesToArray(to, x, y, from, bytes, {kind}); });
}

cudaError_t cudaMemcpyToArray_ptds(cudaArray_t to, size_t x, size_t y, const void* from,
                                   size_t bytes, enum cudaMemcpyKind kind) {
  return Entry([&] { return BytesToArray(to, x, y, from, bytes, {kind, cudaStreamPerThread}); });
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from,
                                   size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return Entry([&] { return BytesToArray(to, x, y, from, bytes, {kind, stream, Wait::kNo}); });
}

cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                enum cudaMemcpyKind kind) {
  return Entry([&] { return BytesFromArray(to, from, x, y, bytes, {kind}); });
}

cudaError_t cudaMemcpyFromArray_ptds(void* to, cudaArray_const_t from, size_t x, size_t y,
                                     size_t bytes, enum cudaMemcpyKind kind) {
  return Entry([&] { return BytesFromArray(to, from, x, y, bytes, {kind, cudaStreamPerThread}); });
}

cudaError_t cudaMemcpyFromArrayAsync(void* to, cudaArray_const_t from, size_t x, size_t y,
                                     size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return Entry([&] { return BytesFromArray(to, from, x, y, bytes, {kind, stream, Wait::kNo}); });
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                                   size_t from_x, size_t from_y, size_t bytes,
                                   enum cudaMemcpyKind kind) {
  return Entry(
      [&] { return BytesBetweenArrays(to, to_x, to_y, from, from_x, from_y, bytes, {kind}); });
}

cudaError_t cudaMemcpyArrayToArray_ptds(cudaArray_t to, size_t to_x, size_t to_y,
                                        cudaArray_const_t from, size_t from_x, size_t from_y,
                                        size_t bytes, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return BytesBetweenArrays(to, to_x, to_y, from, from_x, from_y, bytes,
                              {kind, cudaStreamPerThread});
  });
}
