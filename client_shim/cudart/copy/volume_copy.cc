#include "client_shim/cudart/copy/volume_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/call/payload.h"
#include "client_shim/cudart/copy/device_order.h"
#include "client_shim/cudart/copy/submit_copy.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/memory/host_register.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {
namespace {

// Whether [begin, begin + size) lies in [0, limit], without overflow.
bool Fits(std::uint64_t begin, std::uint64_t size, std::uint64_t limit) {
  return begin <= limit && size <= limit - begin;
}

// Sets pitch and rows to fitting values; both are meaningless for a single row or slice.
void Complete(const CopyVolume& volume, CopyPlace& place) {
  if (volume.height == 1 && volume.depth == 1) place.pitch = std::max(place.pitch, volume.width);
  if (volume.depth == 1) place.rows = std::max(place.rows, volume.height);
}

// Bytes from the first byte to the end of the last row; returns false on overflow or overlap.
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

// Completes a place, checks for room for the whole volume, and finds side and device. `span`: bytes
// of linear memory from first to last; 0 for an array.
cudaError_t Locate(const CopyVolume& volume, LocatedPlace& located, std::uint64_t& span) {
  auto& [place, side, device] = located;
  Complete(volume, place);
  span = 0;
  if (place.array) {
    const ClientArray& array = *place.array;
    side = Side::kDevice;
    device = array.device;
    const std::uint64_t texel = array.format.texel_bytes();
    const bool inside = Fits(place.x, volume.width, array.row_bytes()) &&
                        Fits(place.y, volume.height, array.rows()) &&
                        Fits(place.z, volume.depth, array.slices());
    return inside && place.x % texel == 0 && volume.width % texel == 0 ? cudaSuccess
                                                                       : cudaErrorInvalidValue;
  }
  if (!place.memory || !SpanBytes(place, volume, span)) return cudaErrorInvalidValue;
  place.memory = static_cast<std::uint8_t*>(const_cast<void*>(ArenaAlias(place.memory)));
  const Place found = PlaceOf(place.memory);
  side = found.side;
  device = found.device;
  return span <= found.room ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t Finish(const ClientStream& stream) { return Ask(wire::StreamSynchronize{stream.wire}); }

// Copies row by row in the calling thread.
void CopyOnHost(const CopyPlace& to, const CopyPlace& from, const CopyVolume& volume) {
  for (std::uint64_t z = 0; z < volume.depth; ++z)
    for (std::uint64_t y = 0; y < volume.height; ++y)
      std::memmove(to.memory + (z * to.rows + y) * to.pitch,
                   from.memory + (z * from.rows + y) * from.pitch, volume.width);
}

// The kind of memory of a side, for the command; pageable memory has none.
wire::MemorySide SideOf(const LocatedPlace& located) {
  if (located.place.array) return wire::MemorySide::kArray;
  return located.side == Side::kDevice ? wire::MemorySide::kDevice : wire::MemorySide::kArena;
}

// Sends a copy without pageable memory as one command.
cudaError_t SendCopy(const LocatedPlace& target, const LocatedPlace& source,
                     const CopyVolume& volume, const ClientStream& stream) {
  const CopyPlace& to = target.place;
  const CopyPlace& from = source.place;
  wire::Memcpy3D command;
  command.dst_side = SideOf(target);
  command.dst = to.array ? to.array->wire : Address(to.memory);
  command.dst_level = to.array ? to.array->level : 0;
  command.dst_position = {to.x, to.y, to.z};
  command.dst_pitch = to.pitch;
  command.dst_rows = to.rows;
  command.src_side = SideOf(source);
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

// Copies between a device and pageable memory through packed pinned memory, and hence waits.
cudaError_t CopyStaged(const LocatedPlace& to, const LocatedPlace& from, const CopyVolume& volume,
                       const ClientStream& stream) {
  std::uint64_t staging = 0;
  TORPOR_TRY(Core().HostAlloc(volume.bytes(), staging));
  LocatedPlace packed;
  packed.side = Side::kArena;
  packed.place.memory = reinterpret_cast<std::uint8_t*>(staging);
  packed.place.pitch = volume.width;
  packed.place.rows = volume.height;
  cudaError_t error = cudaSuccess;
  if (from.side == Side::kPageable) {
    CopyOnHost(packed.place, from.place, volume);
    error = SendCopy(to, packed, volume, stream);
    if (error == cudaSuccess) error = Finish(stream);
  } else {
    error = SendCopy(packed, from, volume, stream);
    if (error == cudaSuccess) error = Finish(stream);
    if (error == cudaSuccess) CopyOnHost(to.place, packed.place, volume);
  }
  const cudaError_t freed = Core().HostFree(staging);
  return error != cudaSuccess ? error : freed;
}

// Whether the kind calls an array host memory. NVIDIA's runtime has an error of its own for that.
bool ContradictsArrays(cudaMemcpyKind kind, const CopyPlace& to, const CopyPlace& from) {
  return (to.array && (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost)) ||
         (from.array && (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice));
}

// Turns to the arrays' device if allowed; executors know only arrays of their own device.
cudaError_t UseArrays(const LocatedPlace& to, const LocatedPlace& from, const ClientStream& stream,
                      Wait wait) {
  const bool may_turn = wait == Wait::kYes && IsLegacy(stream);
  for (const LocatedPlace* const side : {&from, &to})
    if (side->place.array && may_turn) UseDevice(side->device);
  const auto is_reached = [](const LocatedPlace& side) {
    return !side.place.array || side.device == DeviceInUse();
  };
  if (is_reached(to) && is_reached(from)) return cudaSuccess;
  Core().WarnOnce("array of another device",
                  "copies of an array in a stream of another device, and between arrays of two"
                  " devices, are not supported");
  return cudaErrorNotSupported;
}

}  // namespace

cudaError_t CopyVolumeOn(const ClientStream& stream, const LocatedPlace& to,
                         const LocatedPlace& from, const CopyVolume& volume, Wait wait) {
  if (to.side != Side::kDevice && from.side != Side::kDevice) {
    TORPOR_TRY(Finish(stream));  // after the stream's work on either side
    CopyOnHost(to.place, from.place, volume);
    return cudaSuccess;
  }
  if (to.side == Side::kPageable || from.side == Side::kPageable)
    return CopyStaged(to, from, volume, stream);
  TORPOR_TRY(SendCopy(to, from, volume, stream));
  const bool has_host = to.side != Side::kDevice || from.side != Side::kDevice;
  return has_host && wait == Wait::kYes ? Finish(stream) : cudaSuccess;
}

cudaError_t CopyVolumes(CopyPlace to, CopyPlace from, const CopyVolume& volume, cudaMemcpyKind kind,
                        cudaStream_t stream_handle, Wait wait) {
  TORPOR_TRY(Begin());
  if (volume.width == 0 || volume.height == 0 || volume.depth == 0) return cudaSuccess;
  if (ContradictsArrays(kind, to, from)) return cudaErrorInvalidMemcpyDirection;
  LocatedPlace target{std::move(to)};
  LocatedPlace source{std::move(from)};
  std::uint64_t target_span = 0;
  std::uint64_t source_span = 0;
  TORPOR_TRY(Locate(volume, target, target_span));
  TORPOR_TRY(Locate(volume, source, source_span));
  TORPOR_TRY(CheckDirection(kind, source.side, target.side));
  ClientStreamPtr stream;
  TORPOR_TRY(UseStream(stream_handle, stream));
  const CopyRoute route{source.side, target.side, source.device, target.device};
  const auto copy = [&](Wait needed) {
    return CopyAmongDevices(route, *stream, needed, [&]() -> cudaError_t {
      TORPOR_TRY(UseArrays(target, source, *stream, needed));
      return CopyVolumeOn(*stream, target, source, volume, needed);
    });
  };
  return CopyBesideVariables(target.place.memory, target_span, source.place.memory, source_span,
                             wait, copy);
}

}  // namespace torpor::shim
