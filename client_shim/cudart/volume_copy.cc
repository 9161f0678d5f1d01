#include "client_shim/cudart/volume_copy.h"

#include <algorithm>
#include <cstring>

#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/streams.h"

namespace torpor::shim {
namespace {

bool Fits(std::uint64_t begin, std::uint64_t size, std::uint64_t limit) {
  return begin <= limit && size <= limit - begin;
}

// Pitch and rows are of no meaning where there is one row or slice.
void Complete(const CopyVolume& volume, CopyPlace& place) {
  if (volume.height == 1 && volume.depth == 1) place.pitch = std::max(place.pitch, volume.width);
  if (volume.depth == 1) place.rows = std::max(place.rows, volume.height);
}

// Bytes from the first to the end of the last.
bool SpanBytes(const CopyPlace& place, const CopyVolume& volume, std::uint64_t& span) {
  std::uint64_t slice = 0;
  std::uint64_t slices = 0;
  std::uint64_t rows = 0;
  return volume.width <= place.pitch && volume.height <= place.rows &&
         !__builtin_mul_overflow(place.pitch, place.rows, &slice) &&
         !__builtin_mul_overflow(slice, volume.depth - 1, &slices) &&
         !__builtin_mul_overflow(place.pitch, volume.height - 1, &rows) &&
         !__builtin_add_overflow(slices, rows, &span) &&
         !__builtin_add_overflow(span, volume.width, &span);
}

// On which side of the bus a place is, if all of the volume is there.
cudaError_t Locate(const CopyPlace& place, const CopyVolume& volume, Side& side) {
  if (place.array) {
    const Array& array = *place.array;
    side = Side::kDevice;
    const std::uint64_t texel = array.format.texel_bytes();
    const bool inside = Fits(place.x, volume.width, array.row_bytes()) &&
                        Fits(place.y, volume.height, array.rows()) &&
                        Fits(place.z, volume.depth, array.slices());
    return inside && place.x % texel == 0 && volume.width % texel == 0 ? cudaSuccess
                                                                       : cudaErrorInvalidValue;
  }
  std::uint64_t span = 0;
  if (!place.memory || !SpanBytes(place, volume, span)) return cudaErrorInvalidValue;
  const Place found = PlaceOf(place.memory);
  side = found.side;
  return span <= found.room ? cudaSuccess : cudaErrorInvalidValue;
}

void CopyOnHost(const CopyPlace& to, const CopyPlace& from, const CopyVolume& volume) {
  for (std::uint64_t z = 0; z < volume.depth; ++z)
    for (std::uint64_t y = 0; y < volume.height; ++y)
      std::memmove(to.memory + (z * to.rows + y) * to.pitch,
                   from.memory + (z * from.rows + y) * from.pitch, volume.width);
}

wire::MemorySide SideOf(const CopyPlace& place, Side side) {
  if (place.array) return wire::MemorySide::kArray;
  return side == Side::kDevice ? wire::MemorySide::kDevice : wire::MemorySide::kArena;
}

cudaError_t SendCopy(const CopyPlace& to, Side to_side, const CopyPlace& from, Side from_side,
                     const CopyVolume& volume, const Stream& stream) {
  wire::Memcpy3D command;
  command.dst_side = SideOf(to, to_side);
  command.dst = to.array ? to.array->wire : Address(to.memory);
  command.dst_level = to.array ? to.array->level : 0;
  command.dst_position = {to.x, to.y, to.z};
  command.dst_pitch = to.pitch;
  command.dst_rows = to.rows;
  command.src_side = SideOf(from, from_side);
  command.src = from.array ? from.array->wire : Address(from.memory);
  command.src_level = from.array ? from.array->level : 0;
  command.src_position = {from.x, from.y, from.z};
  command.src_pitch = from.pitch;
  command.src_rows = from.rows;
  command.width = volume.width;
  command.height = volume.height;
  command.depth = volume.depth;
  command.stream = stream.wire;
  return Send(command);
}

cudaError_t Finish(const Stream& stream) { return Ask(wire::StreamSynchronize{stream.wire}); }

// Between the device and pageable memory: by way of pinned memory, packed, and therefore waiting.
cudaError_t CopyStaged(const CopyPlace& to, Side to_side, const CopyPlace& from, Side from_side,
                       const CopyVolume& volume, const Stream& stream) {
  std::uint64_t staging = 0;
  TORPOR_TRY(Core().HostAlloc(volume.bytes(), staging));
  CopyPlace packed;
  packed.memory = reinterpret_cast<std::uint8_t*>(staging);
  packed.pitch = volume.width;
  packed.rows = volume.height;
  cudaError_t error = cudaSuccess;
  if (from_side == Side::kPageable) {
    CopyOnHost(packed, from, volume);
    error = SendCopy(to, to_side, packed, Side::kArena, volume, stream);
    if (error == cudaSuccess) error = Finish(stream);
  } else {
    error = SendCopy(packed, Side::kArena, from, from_side, volume, stream);
    if (error == cudaSuccess) error = Finish(stream);
    if (error == cudaSuccess) CopyOnHost(to, packed, volume);
  }
  const cudaError_t freed = Core().HostFree(staging);
  return error != cudaSuccess ? error : freed;
}

}  // namespace

cudaError_t CopyVolumes(CopyPlace to, CopyPlace from, const CopyVolume& volume, cudaMemcpyKind kind,
                        cudaStream_t stream_handle, Wait wait) {
  TORPOR_TRY(Begin());
  if (volume.width == 0 || volume.height == 0 || volume.depth == 0) return cudaSuccess;
  Complete(volume, to);
  Complete(volume, from);
  Side to_side = Side::kPageable;
  TORPOR_TRY(Locate(to, volume, to_side));
  Side from_side = Side::kPageable;
  TORPOR_TRY(Locate(from, volume, from_side));
  TORPOR_TRY(CheckDirection(kind, from_side, to_side));
  StreamPtr stream;
  TORPOR_TRY(UseStream(stream_handle, stream));
  if (to_side != Side::kDevice && from_side != Side::kDevice) {
    TORPOR_TRY(Finish(*stream));
    CopyOnHost(to, from, volume);
    return cudaSuccess;
  }
  if (to_side == Side::kPageable || from_side == Side::kPageable)
    return CopyStaged(to, to_side, from, from_side, volume, *stream);
  TORPOR_TRY(SendCopy(to, to_side, from, from_side, volume, *stream));
  const bool has_host = to_side != Side::kDevice || from_side != Side::kDevice;
  return has_host && wait == Wait::kYes ? Finish(*stream) : cudaSuccess;
}

}  // namespace torpor::shim
