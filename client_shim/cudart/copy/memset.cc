#include "client_shim/cudart/copy/memset.h"

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/memory/places.h"
#include "client_shim/cudart/stream/capture.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {
namespace {

// Sends the fill of [to, to + bytes), after which the program may use the memory as ever.
template <typename Fill>
cudaError_t SendFill(const Fill& fill, const void* to, std::uint64_t bytes) {
  bool is_managed_variable = false;
  TORPOR_TRY(FetchManagedVariablesAt(to, bytes, is_managed_variable));
  TORPOR_TRY(Send(fill));
  return is_managed_variable ? Ask(wire::StreamSynchronize{fill.stream}) : cudaSuccess;
}

cudaError_t Set(void* to, int value, std::uint64_t bytes, cudaStream_t stream) {
  return SetElements(to, static_cast<std::uint8_t>(value), 1, bytes, stream);
}

cudaError_t SetRows(void* to, std::uint64_t pitch, int value, std::uint64_t width,
                    std::uint64_t height, cudaStream_t handle) {
  TORPOR_TRY(Begin());
  if (width == 0 || height == 0) return cudaSuccess;
  if (width > pitch) return cudaErrorInvalidValue;
  constexpr std::uint32_t kByte = 1;
  const std::uint32_t byte = static_cast<std::uint8_t>(value);
  const FillWork fill = FillRows(to, pitch, byte, kByte, width, height);
  std::uint64_t span = 0;
  TORPOR_TRY(CheckFill(fill.parameters, span));
  if (IsCapturing(handle)) return Capture(handle, fill);
  StreamPtr stream;
  TORPOR_TRY(UseStream(handle, stream));
  return SendFill(wire::Memset2D{Address(to), pitch, byte, kByte, width, height, stream->wire}, to,
                  span);
}

// Slice by slice, but all at once where the volume has all rows of a slice.
cudaError_t SetVolume(const cudaPitchedPtr& to, int value, const cudaExtent& extent,
                      cudaStream_t handle) {
  TORPOR_TRY(Begin());
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
  std::uint64_t slice = 0;
  std::uint64_t rows = 0;
  std::uint64_t span = 0;
  if ((extent.depth > 1 && extent.height > to.ysize) ||
      __builtin_mul_overflow(to.pitch, to.ysize, &slice) ||
      __builtin_mul_overflow(slice, extent.depth, &span) ||
      __builtin_mul_overflow(extent.height, extent.depth, &rows))
    return cudaErrorInvalidValue;
  if (extent.height == to.ysize)
    return SetRows(to.ptr, to.pitch, value, extent.width, rows, handle);
  auto* const first = static_cast<std::uint8_t*>(to.ptr);
  for (std::size_t z = 0; z < extent.depth; ++z)
    TORPOR_TRY(SetRows(first + z * slice, to.pitch, value, extent.width, extent.height, handle));
  return cudaSuccess;
}

}  // namespace

cudaError_t CheckFill(const cudaMemsetParams& fill, std::uint64_t& span) {
  const std::uint64_t element = fill.elementSize;
  std::uint64_t row = 0;
  std::uint64_t rows = 0;
  if (__builtin_mul_overflow(fill.width, element, &row) ||
      __builtin_mul_overflow(fill.height - 1, fill.pitch, &rows) ||
      __builtin_add_overflow(rows, row, &span))
    return cudaErrorInvalidValue;
  const bool overlaps = fill.height > 1 && fill.pitch < row;
  const bool is_aligned =
      Address(fill.dst) % element == 0 && (fill.height == 1 || fill.pitch % element == 0);
  const Place place = PlaceOf(fill.dst);
  const bool is_there = place.side != Side::kPageable && span <= place.room;
  return !overlaps && is_aligned && is_there ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t SetElements(void* to, std::uint32_t value, std::uint32_t element_bytes,
                        std::uint64_t count, cudaStream_t handle) {
  const CoreScope scope;
  TORPOR_TRY(Begin());
  if (count == 0) return cudaSuccess;
  const FillWork fill = FillRows(to, 0, value, element_bytes, count, 1);
  std::uint64_t bytes = 0;
  TORPOR_TRY(CheckFill(fill.parameters, bytes));
  if (IsCapturing(handle)) return Capture(handle, fill);
  StreamPtr stream;
  TORPOR_TRY(UseStream(handle, stream));
  return SendFill(wire::Memset{Address(to), stream->wire, value, element_bytes, count}, to, bytes);
}

FillWork FillRows(void* to, std::uint64_t pitch, std::uint32_t value, std::uint32_t element_bytes,
                  std::uint64_t width, std::uint64_t height) {
  FillWork fill;
  fill.parameters.dst = to;
  fill.parameters.pitch = height == 1 ? 0 : pitch;
  fill.parameters.value = value;
  fill.parameters.elementSize = element_bytes;
  fill.parameters.width = width;
  fill.parameters.height = height;
  return fill;
}

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

cudaError_t cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent extent) {
  return Entry([&] { return SetVolume(to, value, extent, cudaStreamLegacy); });
}

cudaError_t cudaMemset3D_ptds(struct cudaPitchedPtr to, int value, struct cudaExtent extent) {
  return Entry([&] { return SetVolume(to, value, extent, cudaStreamPerThread); });
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
                              cudaStream_t stream) {
  return Entry([&] { return SetVolume(to, value, extent, stream); });
}
