#include "client_shim/cudart/copy/memcpy.h"

#include <algorithm>
#include <cstring>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/call/payload.h"
#include "client_shim/cudart/copy/device_order.h"
#include "client_shim/cudart/copy/submit_copy.h"
#include "client_shim/cudart/copy/volume_copy.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/memory/host_register.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {
namespace {

// A linear copy with a stream ready for commands.
struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  std::uint64_t bytes = 0;
  ClientStreamPtr stream;
};

// Waits for the stream if the caller wants to wait.
cudaError_t Finish(const ClientStream& stream, Wait wait) {
  return wait == Wait::kYes ? Ask(wire::StreamSynchronize{stream.wire}) : cudaSuccess;
}

// From pageable memory. Notes on an idle stream that only uploads followed (see streams.cc).
cudaError_t Upload(const Copy& copy) {
  const std::uint64_t commands = Core().CommandCount();
  const bool was_idle = IsIdleButForUploads(*copy.stream);
  std::uint64_t parts = 0;
  TORPOR_TRY(UploadPageable(copy.from, copy.bytes, [&](const UploadPart& part) {
    wire::MemcpyHtoD command;
    command.dst = Address(copy.to) + part.at;
    command.stream = copy.stream->wire;
    SetPayload(part, command);
    ++parts;
    return Send(command, part.piece);
  }));
  if (was_idle) copy.stream->upload_commands = commands + parts;
  return cudaSuccess;
}

// Names the arena's bytes in the command, so the executor reads them in stream order.
cudaError_t UploadPinned(const Copy& copy) {
  wire::MemcpyHtoD command;
  command.dst = Address(copy.to);
  command.stream = copy.stream->wire;
  command.bytes = copy.bytes;
  command.payload = wire::Payload::kArena;
  command.offset = ArenaOffset(copy.from);
  TraceBytes(copy.bytes, 0);
  return Send(command);
}

// To pageable memory: waits for the stream, then for the bytes. The stream is idle afterwards.
cudaError_t Download(const Copy& copy) {
  return DownloadPageable(
      copy.to, copy.bytes,
      [&](std::uint64_t at, std::uint64_t bytes, std::uint64_t window_offset,
          std::vector<std::uint8_t>& inline_bytes) -> cudaError_t {
        wire::MemcpyDtoHResult result;
        const std::uint64_t commands = Core().CommandCount();
        TORPOR_TRY(
            Ask(wire::MemcpyDtoH{Address(copy.from) + at, copy.stream->wire, bytes, window_offset},
                result));
        copy.stream->idle_commands = commands + 1;
        inline_bytes.assign(result.data.begin(), result.data.end());
        return cudaSuccess;
      });
}

// Makes the copy by the route's commands. Copies to pageable memory and between host sides always
// wait.
cudaError_t Run(const Copy& copy, const CopyRoute& route, Wait wait) {
  const bool to_device = route.to == Side::kDevice;
  const bool from_device = route.from == Side::kDevice;
  if (from_device && to_device)
    return Send(
        wire::MemcpyDtoD{Address(copy.to), Address(copy.from), copy.stream->wire, copy.bytes});
  if (to_device && route.from == Side::kPageable) return Upload(copy);
  if (from_device && route.to == Side::kPageable) return Download(copy);
  if (to_device) {
    TORPOR_TRY(UploadPinned(copy));
    return Finish(*copy.stream, wait);
  }
  if (from_device) {
    TraceBytes(0, copy.bytes);
    TORPOR_TRY(Send(wire::MemcpyDtoHArena{Address(copy.from), copy.stream->wire, copy.bytes,
                                          ArenaOffset(copy.to)}));
    return Finish(*copy.stream, wait);
  }
  // From host to host: by the client, after the stream's work on either side.
  TORPOR_TRY(Finish(*copy.stream, Wait::kYes));
  std::memmove(copy.to, copy.from, copy.bytes);
  return cudaSuccess;
}

// cudaMemcpyBatchAsync: copies in order. Reads pageable sources now, regardless of srcAccessOrder.
cudaError_t CopyBatch(void* const* to, const void* const* from, const std::size_t* sizes,
                      std::size_t count, const cudaMemcpyAttributes* attributes,
                      const std::size_t* attribute_indices, std::size_t attribute_count,
                      cudaStream_t stream) {
  const bool is_sane = to && from && sizes && count > 0 && attributes && attribute_indices &&
                       attribute_count > 0 && attribute_count <= count && attribute_indices[0] == 0;
  if (!is_sane || stream == nullptr || stream == cudaStreamLegacy) return cudaErrorInvalidValue;
  for (std::size_t i = 0; i < attribute_count; ++i)
    if (attributes[i].srcAccessOrder < cudaMemcpySrcAccessOrderStream ||
        attributes[i].srcAccessOrder > cudaMemcpySrcAccessOrderAny)
      return cudaErrorInvalidValue;
  for (std::size_t i = 0; i < count; ++i)
    TORPOR_TRY(CopyLinear(to[i], from[i], sizes[i], cudaMemcpyDefault, stream, Wait::kNo));
  return cudaSuccess;
}

// Sends rows between device memory and the arena as one command.
cudaError_t SendRows(void* to, const void* from, const Rows& rows, const CopyRoute& route,
                     const ClientStream& stream) {
  return Send(wire::Memcpy2D{Address(to), rows.to_pitch, Address(from), rows.from_pitch, rows.width,
                             rows.height, stream.wire, MemorySideOf(route.to),
                             MemorySideOf(route.from)});
}

CopyPlace PlaceOfRows(const void* memory, std::uint64_t pitch, std::uint64_t height) {
  CopyPlace place;
  place.memory = static_cast<std::uint8_t*>(const_cast<void*>(memory));
  place.pitch = pitch;
  place.rows = height;
  return place;
}

// Makes a copy of rows: packed rows as a linear copy, rows with a pageable side through staging
// memory, all others by one command.
cudaError_t RunRows(void* to, const void* from, const Rows& rows, const CopyRoute& route,
                    const ClientStreamPtr& stream, Wait wait) {
  const bool has_device = route.to == Side::kDevice || route.from == Side::kDevice;
  const bool is_packed = rows.width == rows.to_pitch && rows.width == rows.from_pitch;
  if (has_device && (is_packed || rows.height == 1))
    return Run({to, from, rows.width * rows.height, stream}, route, wait);
  const bool has_pageable = route.to == Side::kPageable || route.from == Side::kPageable;
  if (!has_device || has_pageable)
    return CopyVolumeOn(*stream, {PlaceOfRows(to, rows.to_pitch, rows.height), route.to},
                        {PlaceOfRows(from, rows.from_pitch, rows.height), route.from},
                        {rows.width, rows.height, 1}, wait);
  TORPOR_TRY(SendRows(to, from, rows, route, *stream));
  const bool has_host = route.to != Side::kDevice || route.from != Side::kDevice;
  return has_host ? Finish(*stream, wait) : cudaSuccess;
}

// The work of a linear copy. Addresses of registered memory visible to kernels are the arena's.
struct LinearCopy {
  void* to = nullptr;
  const void* from = nullptr;
  std::uint64_t bytes = 0;
  cudaMemcpyKind kind = cudaMemcpyDefault;
  CopyRoute route;
  Wait wait = Wait::kNo;

  cudaError_t MakeNode(NodeWork& node) const {
    node = LinearCopyWork(to, from, bytes, kind);
    return cudaSuccess;
  }
  cudaError_t Send(cudaStream_t handle) const {
    Copy copy{to, from, bytes, nullptr};
    TORPOR_TRY(UseStream(handle, copy.stream));
    return CopyBesideVariables(to, bytes, from, bytes, wait, [&](Wait needed) {
      return CopyAmongDevices(route, *copy.stream, needed,
                              [&] { return Run(copy, route, needed); });
    });
  }
};

// The work of a copy of rows; addresses as in LinearCopy.
struct PitchedCopy {
  void* to = nullptr;
  const void* from = nullptr;
  Rows rows;
  cudaMemcpyKind kind = cudaMemcpyDefault;
  CopyRoute route;
  Wait wait = Wait::kNo;

  cudaError_t MakeNode(NodeWork& node) const {
    node = PitchedCopyWork(to, from, rows, kind);
    return cudaSuccess;
  }
  cudaError_t Send(cudaStream_t handle) const {
    ClientStreamPtr stream;
    TORPOR_TRY(UseStream(handle, stream));
    return CopyBesideVariables(
        to, rows.Span(rows.to_pitch), from, rows.Span(rows.from_pitch), wait, [&](Wait needed) {
          return CopyAmongDevices(route, *stream, needed,
                                  [&] { return RunRows(to, from, rows, route, stream, needed); });
        });
  }
};

// cudaMemcpy2D and cudaMemcpy2DAsync: checks pitches, ranges and direction, then submits.
cudaError_t CopyPitched(void* to, const void* from, const Rows& rows, cudaMemcpyKind kind,
                        cudaStream_t stream, Wait wait) {
  TORPOR_TRY(Begin());
  if (rows.width > rows.to_pitch || rows.width > rows.from_pitch) return cudaErrorInvalidPitchValue;
  if (rows.width == 0 || rows.height == 0) return cudaSuccess;
  PitchedCopy copy{const_cast<void*>(ArenaAlias(to)), ArenaAlias(from), rows, kind, {}, wait};
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(rows.height, std::max(rows.to_pitch, rows.from_pitch), &product))
    return cudaErrorInvalidValue;
  TORPOR_TRY(FindRoute(copy.to, rows.Span(rows.to_pitch), copy.from, rows.Span(rows.from_pitch),
                       kind, copy.route));
  return SubmitCopy(stream, copy);
}

}  // namespace

cudaError_t CopyLinear(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind,
                       cudaStream_t stream, Wait wait) {
  TORPOR_TRY(Begin());
  if (bytes == 0) return cudaSuccess;
  LinearCopy copy{const_cast<void*>(ArenaAlias(to)), ArenaAlias(from), bytes, kind, {}, wait};
  TORPOR_TRY(FindRoute(copy.to, bytes, copy.from, bytes, kind, copy.route));
  return SubmitCopy(stream, copy);
}

cudaError_t CopyRowsOn(const ClientStreamPtr& stream, void* to, const void* from, const Rows& rows,
                       const CopyRoute& route) {
  return RunRows(to, from, rows, route, stream, Wait::kNo);
}

CopyWork LinearCopyWork(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind) {
  return PitchedCopyWork(to, from, {bytes, bytes, bytes, 1}, kind);
}

CopyWork PitchedCopyWork(void* to, const void* from, const Rows& rows, cudaMemcpyKind kind) {
  CopyWork copy;
  copy.parameters.dstPtr = {to, rows.to_pitch, rows.width, rows.height};
  copy.parameters.srcPtr = {const_cast<void*>(from), rows.from_pitch, rows.width, rows.height};
  copy.parameters.extent = {rows.width, rows.height, 1};
  copy.parameters.kind = kind;
  return copy;
}

}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind) {
  return Entry([&] { return CopyLinear(to, from, bytes, kind, cudaStreamLegacy, Wait::kYes); });
}

cudaError_t cudaMemcpy_ptds(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind) {
  return Entry([&] { return CopyLinear(to, from, bytes, kind, cudaStreamPerThread, Wait::kYes); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return Entry([&] { return CopyLinear(to, from, bytes, kind, stream, Wait::kNo); });
}

cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return Entry(
      [&] { return CopyLinear(to, from, bytes, cudaMemcpyDefault, cudaStreamLegacy, Wait::kYes); });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  return Entry([&] { return CopyLinear(to, from, bytes, cudaMemcpyDefault, stream, Wait::kNo); });
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return CopyPitched(to, from, {to_pitch, from_pitch, width, height}, kind, cudaStreamLegacy,
                       Wait::kYes);
  });
}

cudaError_t cudaMemcpy2D_ptds(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return CopyPitched(to, from, {to_pitch, from_pitch, width, height}, kind, cudaStreamPerThread,
                       Wait::kYes);
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return Entry([&] {
    return CopyPitched(to, from, {to_pitch, from_pitch, width, height}, kind, stream, Wait::kNo);
  });
}

cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes,
                                 size_t count, struct cudaMemcpyAttributes* attributes,
                                 size_t* attribute_indices, size_t attribute_count,
                                 cudaStream_t stream) {
  return Entry([&] {
    return CopyBatch(to, from, sizes, count, attributes, attribute_indices, attribute_count,
                     stream);
  });
}
