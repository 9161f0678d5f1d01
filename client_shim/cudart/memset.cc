#include <algorithm>

#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/memory_kinds.h"
#include "client_shim/cudart/streams.h"

namespace torpor::shim {
namespace {

bool IsDeviceRange(const void* pointer, std::uint64_t bytes) {
  const Place place = PlaceOf(pointer);
  return place.side != Side::kPageable && bytes <= place.room;
}

cudaError_t Set(void* to, int value, std::uint64_t bytes, cudaStream_t handle) {
  TORPOR_TRY(Begin());
  if (bytes == 0) return cudaSuccess;
  if (!IsDeviceRange(to, bytes)) return cudaErrorInvalidValue;
  StreamPtr stream;
  TORPOR_TRY(UseStream(handle, stream));
  constexpr std::uint32_t kByte = 1;
  return Send(
      wire::Memset{Address(to), stream->wire, static_cast<std::uint8_t>(value), kByte, bytes});
}

cudaError_t SetRows(void* to, std::uint64_t pitch, int value, std::uint64_t width,
                    std::uint64_t height, cudaStream_t handle) {
  TORPOR_TRY(Begin());
  if (width == 0 || height == 0) return cudaSuccess;
  std::uint64_t span = 0;
  if (width > pitch || __builtin_mul_overflow(height - 1, pitch, &span) ||
      __builtin_add_overflow(span, width, &span) || !IsDeviceRange(to, span))
    return cudaErrorInvalidValue;
  StreamPtr stream;
  TORPOR_TRY(UseStream(handle, stream));
  return Send(wire::Memset2D{Address(to), pitch, static_cast<std::uint8_t>(value), width, height,
                             stream->wire});
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return Entry([&] { return Set(to, value, bytes, cudaStreamLegacy); });
}

cudaError_t cudaMemset_ptds(void* to, int value, size_t bytes) {
  return Entry([&] { return Set(to, value, bytes, cudaStreamPerThread); });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return Entry([&] { return Set(to, value, bytes, stream); });
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return Entry([&] { return SetRows(to, pitch, value, width, height, cudaStreamLegacy); });
}

cudaError_t cudaMemset2D_ptds(void* to, size_t pitch, int value, size_t width, size_t height) {
  return Entry([&] { return SetRows(to, pitch, value, width, height, cudaStreamPerThread); });
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return Entry([&] { return SetRows(to, pitch, value, width, height, stream); });
}
