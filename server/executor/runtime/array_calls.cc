#include "server/executor/runtime/array_calls.h"

#include <driver_types.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "server/executor/gpu/call_status.h"

namespace torpor::executor {

using cuda_api::CallStatus;
using CopySide = ArrayCalls::CopySide;

namespace {

bool Fits(std::uint64_t begin, std::uint64_t size, std::uint64_t limit) {
  return begin <= limit && size <= limit - begin;
}

// Bytes from the first byte of linear memory that is copied to the end of the last; false if that
// is no number or rows overlap.
bool Extent3D(const wire::Memcpy3D& copy, const CopySide& side, Bytes& extent) {
  if (copy.width > side.pitch || copy.height > side.rows) return false;
  Bytes slice = 0;
  Bytes slices = 0;
  Bytes rows = 0;
  return !__builtin_mul_overflow(side.pitch, side.rows, &slice) &&
         !__builtin_mul_overflow(slice, copy.depth - 1, &slices) &&
         !__builtin_mul_overflow(side.pitch, copy.height - 1, &rows) &&
         !__builtin_add_overflow(slices, rows, &extent) &&
         !__builtin_add_overflow(extent, copy.width, &extent);
}

bool Contains(const SessionArrays::Level& level, const wire::Memcpy3D& copy, const CopySide& side) {
  const auto [x, y, z] = side.position;
  return Fits(x, copy.width, level.row_bytes) && Fits(y, copy.height, level.rows) &&
         Fits(z, copy.depth, level.slices);
}

}  // namespace

CallStatus ArrayCalls::ArrayCreate(const wire::ArrayCreate& command) {
  image_.touches().UseAll();
  CUstream stream = nullptr;
  const CUresult used = streams_.Use(StreamSet::kLegacy, stream);
  if (used != CUDA_SUCCESS) return ToCallStatus(device_.driver(), used, "creating an array");
  return ToCallStatus(arrays_.Create(command, stream), "creating an array");
}

CallStatus ArrayCalls::ArrayDestroy(const wire::ArrayDestroy& command) {
  CallStatus arrived = ToCallStatus(image_.arrival().Wait(), "destroying an array");
  if (!arrived.ok()) return arrived;
  const CUresult drained = streams_.Synchronize();
  if (drained != CUDA_SUCCESS)
    return ToCallStatus(device_.driver(), drained, "destroying an array");
  return ToCallStatus(arrays_.Destroy(command.array), "destroying an array");
}

CallStatus ArrayCalls::ArrayCheck(const wire::ArrayCheck& command, wire::ArrayCheckResult&) {
  if (arrays_.Find(command.array, 0) != nullptr) return {};
  return cuda_api::CallFailed(cudaErrorInvalidResourceHandle,
                              absl::StrCat("the session has no array ", command.array));
}

std::optional<ArrayCalls::Side> ArrayCalls::FindSide(const wire::Memcpy3D& copy,
                                                     const CopySide& side, bool is_target) {
  if (side.kind == wire::MemorySide::kArray) {
    const SessionArrays::Level* level = arrays_.Find(side.what, side.level);
    if (level == nullptr || !Contains(*level, copy, side)) return std::nullopt;
    image_.touches().UseAll();
    return Side{{CU_MEMORYTYPE_ARRAY, 0, nullptr}, level->array, side.position};
  }
  const auto access = is_target ? cuda_api::Access::kWrite : cuda_api::Access::kRead;
  Bytes extent = 0;
  if (!Extent3D(copy, side, extent)) return std::nullopt;
  const auto linear = memory_.LinearSide(side.kind, side.what, extent, access);
  if (!linear) return std::nullopt;
  const bool is_upload = is_target && copy.src_side == wire::MemorySide::kArena;
  if (is_upload && image_.Contains(side.what, extent)) {
    image_.uploads().NoteUnseen(side.what, extent);
  }
  return Side{*linear, nullptr, {}};
}

bool ArrayCalls::SetTarget(const wire::Memcpy3D& copy, CUDA_MEMCPY3D& driver_copy) {
  const CopySide side{copy.dst_side,     copy.dst,       copy.dst_level,
                      copy.dst_position, copy.dst_pitch, copy.dst_rows};
  const std::optional<Side> found = FindSide(copy, side, /*is_target=*/true);
  if (!found) return false;
  driver_copy.dstMemoryType = found->linear.type;
  driver_copy.dstDevice = found->linear.device;
  driver_copy.dstHost = found->linear.host;
  driver_copy.dstArray = found->array;
  driver_copy.dstXInBytes = found->position[0];
  driver_copy.dstY = found->position[1];
  driver_copy.dstZ = found->position[2];
  driver_copy.dstPitch = side.pitch;
  driver_copy.dstHeight = side.rows;
  return true;
}

bool ArrayCalls::SetSource(const wire::Memcpy3D& copy, CUDA_MEMCPY3D& driver_copy) {
  const CopySide side{copy.src_side,     copy.src,       copy.src_level,
                      copy.src_position, copy.src_pitch, copy.src_rows};
  const std::optional<Side> found = FindSide(copy, side, /*is_target=*/false);
  if (!found) return false;
  driver_copy.srcMemoryType = found->linear.type;
  driver_copy.srcDevice = found->linear.device;
  driver_copy.srcHost = found->linear.host;
  driver_copy.srcArray = found->array;
  driver_copy.srcXInBytes = found->position[0];
  driver_copy.srcY = found->position[1];
  driver_copy.srcZ = found->position[2];
  driver_copy.srcPitch = side.pitch;
  driver_copy.srcHeight = side.rows;
  return true;
}

CallStatus ArrayCalls::Memcpy3D(const wire::Memcpy3D& command) {
  if (command.width == 0 || command.height == 0 || command.depth == 0) return {};
  CUDA_MEMCPY3D copy{};
  if (!SetTarget(command, copy) || !SetSource(command, copy)) {
    return NotOwned("three-dimensional copy");
  }
  copy.WidthInBytes = command.width;
  copy.Height = command.height;
  copy.Depth = command.depth;
  if (command.dst_side != wire::MemorySide::kArena) image_.MarkDirty();
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) result = device_.driver().Memcpy3DAsync(&copy, stream);
  return ToCallStatus(device_.driver(), result, "three-dimensional copy");
}

}  // namespace torpor::executor
