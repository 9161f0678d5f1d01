#include "server/executor/runtime/session_arrays.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

constexpr std::size_t kMaxArrays = 1u << 16;
// Beyond any GPU's limit of an edge; products of three such edges fit into 64 bits.
constexpr std::uint64_t kMaxTexelsOfEdge = 1u << 18;
constexpr std::uint32_t kMaxLevels = 18;

absl::Status UnknownArray(std::uint64_t id) {
  return absl::NotFoundError(absl::StrCat("the session has no array ", id));
}

absl::Status CheckDescription(const wire::ArrayCreate& command) {
  constexpr std::uint32_t kFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                   CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER;
  const bool has_channels = command.channels == 1 || command.channels == 2 || command.channels == 4;
  const bool is_sane = command.width > 0 && command.width <= kMaxTexelsOfEdge &&
                       command.height <= kMaxTexelsOfEdge && command.depth <= kMaxTexelsOfEdge &&
                       command.levels <= kMaxLevels && (command.flags & ~kFlags) == 0 &&
                       has_channels && SessionArrays::ChannelBytes(command.format) != 0;
  return is_sane ? absl::OkStatus()
                 : absl::InvalidArgumentError(
                       absl::StrCat("there is no array of ", command.width, " x ", command.height,
                                    " x ", command.depth, " texels of format ", command.format));
}

std::uint64_t Halved(std::uint64_t extent, std::uint32_t times) {
  return std::max<std::uint64_t>(extent >> times, 1);
}

// The levels without their driver's arrays.
std::vector<SessionArrays::Level> LayOut(const wire::ArrayCreate& command) {
  const Bytes texel = SessionArrays::ChannelBytes(command.format) * command.channels;
  const bool slices_shrink = (command.flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0;
  std::vector<SessionArrays::Level> levels(std::max<std::uint32_t>(command.levels, 1));
  Bytes offset = 0;
  for (std::uint32_t i = 0; i < levels.size(); ++i) {
    levels[i].row_bytes = Halved(command.width, i) * texel;
    levels[i].rows = Halved(command.height, i);
    levels[i].slices = Halved(command.depth, slices_shrink ? i : 0);
    levels[i].offset = offset;
    offset += levels[i].bytes();
  }
  return levels;
}

}  // namespace

Bytes SessionArrays::ChannelBytes(std::uint32_t format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

SessionArrays::~SessionArrays() {
  for (const auto& [id, array] : arrays_) {
    if (array.mipmapped != nullptr) {
      device_.discarded().Add(array.mipmapped, array.block_bytes);
    } else {
      device_.discarded().Add(array.levels[0].array, array.block_bytes);
    }
  }
}

absl::Status SessionArrays::Create(const wire::ArrayCreate& command, CUstream stream) {
  TORPOR_RETURN_IF_ERROR(CheckDescription(command));
  if (arrays_.contains(command.array)) return absl::AlreadyExistsError("the array is there");
  if (arrays_.size() >= kMaxArrays) {
    return absl::ResourceExhaustedError("the session has too many arrays");
  }
  Array array;
  array.levels = LayOut(command);
  array.block = command.block;
  array.block_bytes = array.levels.back().offset + array.levels.back().bytes();
  if (!image_.Contains(array.block, array.block_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("the block of array ", command.array, " is not ",
                                                   array.block_bytes,
                                                   " bytes of the session's memory"));
  }
  TORPOR_RETURN_IF_ERROR(MakeDriverArray(command, array));
  // Other streams may use the array at once.
  absl::Status filled = CopyTexels(array, /*to_block=*/false, stream);
  filled.Update(device_.Status(device_.driver().StreamSynchronize(stream), "filling an array"));
  if (!filled.ok()) {
    DestroyDriverArray(array).IgnoreError();
    return filled;
  }
  arrays_.emplace(command.array, std::move(array));
  return absl::OkStatus();
}

absl::Status SessionArrays::MakeDriverArray(const wire::ArrayCreate& command, Array& array) const {
  CUDA_ARRAY3D_DESCRIPTOR description{};
  description.Width = command.width;
  description.Height = command.height;
  description.Depth = command.depth;
  description.Format = static_cast<CUarray_format>(command.format);
  description.NumChannels = command.channels;
  description.Flags = command.flags;
  const CudaDriver& driver = device_.driver();
  if (command.levels == 0) {
    const CUresult made = device_.MakingRoom(
        [&] { return driver.Array3DCreate(&array.levels[0].array, &description); });
    return device_.Status(made, "cuArray3DCreate");
  }
  const CUresult made = device_.MakingRoom(
      [&] { return driver.MipmappedArrayCreate(&array.mipmapped, &description, command.levels); });
  TORPOR_RETURN_IF_ERROR(device_.Status(made, "cuMipmappedArrayCreate"));
  absl::Status status;
  for (std::uint32_t i = 0; i < command.levels && status.ok(); ++i) {
    status =
        device_.Status(driver.MipmappedArrayGetLevel(&array.levels[i].array, array.mipmapped, i),
                       "cuMipmappedArrayGetLevel");
  }
  if (!status.ok()) DestroyDriverArray(array).IgnoreError();
  return status;
}

absl::Status SessionArrays::DestroyDriverArray(const Array& array) const {
  const CudaDriver& driver = device_.driver();
  return array.mipmapped != nullptr
             ? device_.Status(driver.MipmappedArrayDestroy(array.mipmapped),
                              "cuMipmappedArrayDestroy")
             : device_.Status(driver.ArrayDestroy(array.levels[0].array), "cuArrayDestroy");
}

absl::Status SessionArrays::Destroy(std::uint64_t id) {
  const auto found = arrays_.find(id);
  if (found == arrays_.end()) return UnknownArray(id);
  const Array array = std::move(found->second);
  arrays_.erase(found);
  return DestroyDriverArray(array);
}

const SessionArrays::Level* SessionArrays::Find(std::uint64_t id, std::uint32_t level) const {
  const auto found = arrays_.find(id);
  if (found == arrays_.end() || level >= found->second.levels.size()) return nullptr;
  return &found->second.levels[level];
}

CUmipmappedArray SessionArrays::FindMipmapped(std::uint64_t id) const {
  const auto found = arrays_.find(id);
  return found == arrays_.end() ? nullptr : found->second.mipmapped;
}

absl::Status SessionArrays::CopyTexels(const Array& array, bool to_block, CUstream stream) const {
  const CUdeviceptr block = image_.Resolve(array.block, array.block_bytes);
  for (const Level& level : array.levels) {
    CUDA_MEMCPY3D copy{};
    copy.WidthInBytes = level.row_bytes;
    copy.Height = level.rows;
    copy.Depth = level.slices;
    copy.srcMemoryType = to_block ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
    copy.srcArray = to_block ? level.array : nullptr;
    copy.srcDevice = to_block ? 0 : block + level.offset;
    copy.srcPitch = level.row_bytes;
    copy.srcHeight = level.rows;
    copy.dstMemoryType = to_block ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_ARRAY;
    copy.dstArray = to_block ? nullptr : level.array;
    copy.dstDevice = to_block ? block + level.offset : 0;
    copy.dstPitch = level.row_bytes;
    copy.dstHeight = level.rows;
    TORPOR_RETURN_IF_ERROR(
        device_.Status(device_.driver().Memcpy3DAsync(&copy, stream), "copying an array's texels"));
  }
  return absl::OkStatus();
}

absl::Status SessionArrays::Save(CUstream stream) const {
  for (const auto& [id, array] : arrays_) {
    if (image_.Contains(array.block, array.block_bytes)) {
      TORPOR_RETURN_IF_ERROR(CopyTexels(array, /*to_block=*/true, stream));
    }
  }
  return absl::OkStatus();
}

absl::Status SessionArrays::Restore(const memory::ExtentSet& resident_before,
                                    CUstream stream) const {
  for (const auto& [id, array] : arrays_) {
    if (!image_.Contains(array.block, array.block_bytes)) continue;
    const Bytes begin = array.block - image_.base();
    if (resident_before.Contains({begin, begin + array.block_bytes})) continue;
    TORPOR_RETURN_IF_ERROR(CopyTexels(array, /*to_block=*/false, stream));
  }
  return absl::OkStatus();
}

}  // namespace torpor::executor
