#include "client_shim/cudart/copy/memset.h"

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/memory/places.h"
#include "client_shim/cudart/stream/streams.h"
#include "client_shim/cudart/stream/submit.h"

namespace torpor::shim {
namespace {

// A checked fill: `node_work` for a graph, `command` (still without the stream) for a stream.
template <typename Command>
struct Fill {
  FillWork node_work;
  Command command;
  std::uint64_t span = 0;  // bytes from the begin to the end of the last row

  cudaError_t MakeNode(NodeWork& node) const {
    node = node_work;
    return cudaSuccess;
  }
  // Waits if the fill meets a managed variable, since the program may use the variable at once.
  cudaError_t Send(cudaStream_t handle) const {
    ClientStreamPtr stream;
    TORPOR_TRY(UseStream(handle, stream));
    bool is_managed_variable = false;
    TORPOR_TRY(FetchManagedVariablesAt(node_work.parameters.dst, span, is_managed_variable));
    Command sent = command;
    sent.stream = stream->wire;
    TORPOR_TRY(shim::Send(sent));
    return is_managed_variable ? Ask(wire::StreamSynchronize{stream->wire}) : cudaSuccess;
  }
};

template <typename Command>
cudaError_t SubmitFill(const FillWork& work, const Command& command, cudaStream_t stream) {
  Fill<Command> fill{work, command};
  TORPOR_TRY(CheckFill(work.parameters, fill.span));
  return Submit(stream, fill);
}

cudaError_t Set(void* to, int value, std::uint64_t bytes, cudaStream_t stream) {
  return SetElements(to, static_cast<std::uint8_t>(value), 1, bytes, stream);
}

// cudaMemset2D and cudaMemset2DAsync: sets bytes. `width` and `pitch` in bytes.
cudaError_t SetRows(void* to, std::uint64_t pitch, int value, std::uint64_t width,
                    std::uint64_t height, cudaStream_t stream) {
  TORPOR_TRY(Begin());
  if (width == 0 || height == 0) return cudaSuccess;
  if (width > pitch) return cudaErrorInvalidValue;
  constexpr std::uint32_t kByte = 1;
  const std::uint32_t byte = static_cast<std::uint8_t>(value);
  return SubmitFill(FillRows(to, pitch, byte, kByte, width, height),
                    wire::Memset2D{Address(to), pitch, byte, kByte, width, height, 0}, stream);
}

// Fills a volume slice by slice; with all rows of each slice, as one fill of rows.
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
                        std::uint64_t count, cudaStream_t stream) {
  const CoreScope scope;
  TORPOR_TRY(Begin());
  if (count == 0) return cudaSuccess;
  return SubmitFill(FillRows(to, 0, value, element_bytes, count, 1),
                    wire::Memset{Address(to), 0, value, element_bytes, count}, stream);
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
