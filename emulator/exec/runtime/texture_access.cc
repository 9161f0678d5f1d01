#include "emulator/exec/runtime/texture_access.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <variant>

#include "emulator/exec/runtime/block_runner.h"
#include "emulator/exec/texture/plane_sampler.h"
#include "emulator/exec/texture/texel.h"
#include "emulator/exec/texture/texture_table.h"

namespace torpor::emulator {
namespace {

// No object here owns resources: a fault in linear memory leaves by a jump.

[[noreturn]] void Raise(WarpContext* context, const char* what, std::uint64_t number,
                        std::uint32_t lane) {
  BlockRunner& runner = *static_cast<Warp*>(context)->runner;
  runner.Fail(ExecError::kIllegalAddress, what + Hex(number), lane);
  runner.Escape();
}

// Finds the lanes' objects; most instructions use the same object in all lanes.
template <typename Object>
class Objects {
 public:
  Objects(WarpContext* context, const TextureLanes& lanes, const char* what)
      : context_(context), lanes_(lanes), what_(what) {}

  const Object& Of(std::uint32_t lane) {
    const std::uint64_t handle = lanes_.handles[lane];
    if (object_ != nullptr && handle == handle_) return *object_;
    const TextureObject* const found = TextureTable::Instance().Find(handle);
    object_ = found == nullptr ? nullptr : std::get_if<Object>(found);
    if (object_ == nullptr) Raise(context_, what_, handle, lane);
    handle_ = handle;
    return *object_;
  }

 private:
  WarpContext* context_;
  const TextureLanes& lanes_;
  const char* what_;
  std::uint64_t handle_ = 0;
  const Object* object_ = nullptr;
};

std::uint32_t FirstLane(std::uint32_t mask) {
  return static_cast<std::uint32_t>(std::countr_zero(mask));
}

// `mask` is not 0.
bool HaveOneHandle(const TextureLanes& lanes, std::uint32_t mask) {
  const std::uint64_t first = lanes.handles[FirstLane(mask)];
  std::uint64_t difference = 0;
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (((mask >> lane) & 1) != 0) difference |= lanes.handles[lane] ^ first;
  }
  return difference == 0;
}

constexpr char kNoTexture[] = "no texture object ";
constexpr char kNoSurface[] = "no surface object ";

template <typename Visit>
void ForEachLane(std::uint32_t mask, Visit visit) {
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    visit(FirstLane(rest));
  }
}

SampleRequest RequestOf(const TextureInstruction& instruction, const TextureLanes& lanes,
                        std::uint32_t lane) {
  SampleRequest request;
  request.geometry = instruction.geometry;
  request.choice = instruction.choice;
  request.is_integer = instruction.is_integer;
  unsigned next = 0;
  const auto take = [&] { return lanes.inputs[next++][lane]; };
  const unsigned dimensions = Dimensions(request.geometry);
  if (IsLayered(request.geometry)) request.layer = static_cast<std::int32_t>(take());
  for (unsigned i = 0; i < dimensions; ++i) {
    const std::uint32_t bits = take();
    request.texel[i] = static_cast<std::int32_t>(bits);
    request.coordinates[i] = std::bit_cast<float>(bits);
  }
  if (instruction.choice == LevelChoice::kLevel) {
    const std::uint32_t bits = take();
    request.level = instruction.is_integer ? static_cast<float>(static_cast<std::int32_t>(bits))
                                           : std::bit_cast<float>(bits);
  } else if (instruction.choice == LevelChoice::kGradients) {
    for (unsigned i = 0; i < dimensions; ++i) request.dx[i] = std::bit_cast<float>(take());
    for (unsigned i = 0; i < dimensions; ++i) request.dy[i] = std::bit_cast<float>(take());
  }
  return request;
}

SurfaceRequest RequestOf(const SurfaceInstruction& instruction, const TexelFormat& format,
                         const TextureLanes& lanes, std::uint32_t lane) {
  SurfaceRequest request;
  request.geometry = instruction.geometry;
  request.bounds = instruction.bounds;
  request.bytes = instruction.action == SurfaceAction::kStoreFormatted
                      ? format.bytes()
                      : std::uint32_t{instruction.element_bytes} * instruction.count;
  unsigned next = 0;
  if (IsLayered(request.geometry)) {
    request.layer = static_cast<std::int32_t>(lanes.inputs[next++][lane]);
  }
  for (unsigned i = 0; i < Dimensions(request.geometry); ++i) {
    request.at[i] = static_cast<std::int32_t>(lanes.inputs[next++][lane]);
  }
  if (instruction.counts_texels) {
    constexpr std::int64_t kFar = 1 << 30;  // outside of any surface
    const std::int64_t offset = std::int64_t{request.at[0]} * format.bytes();
    request.at[0] = static_cast<std::int32_t>(std::clamp(offset, -kFar, kFar));
  }
  return request;
}

template <typename T>
void Combine(SurfaceAction action, T* target, T operand) {
  T old = __atomic_load_n(target, __ATOMIC_RELAXED);
  T wanted = old;
  do {
    switch (action) {
      case SurfaceAction::kAdd:
        wanted =
            static_cast<T>(static_cast<std::uint64_t>(old) + static_cast<std::uint64_t>(operand));
        break;
      case SurfaceAction::kMin:
        wanted = std::min(old, operand);
        break;
      case SurfaceAction::kMax:
        wanted = std::max(old, operand);
        break;
      case SurfaceAction::kAnd:
        wanted = static_cast<T>(old & operand);
        break;
      default:
        wanted = static_cast<T>(old | operand);
    }
  } while (!__atomic_compare_exchange_n(target, &old, wanted, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
}

// Reductions are atomic among all threads of the host, as on a GPU.
void Reduce(const SurfaceInstruction& instruction, std::uint8_t* bytes, std::uint64_t operand) {
  const auto combine = [&]<typename T>(T value) {
    Combine(instruction.action, reinterpret_cast<T*>(bytes), value);
  };
  if (instruction.element_bytes == 8) {
    return instruction.is_signed ? combine(static_cast<std::int64_t>(operand)) : combine(operand);
  }
  return instruction.is_signed ? combine(static_cast<std::int32_t>(operand))
                               : combine(static_cast<std::uint32_t>(operand));
}

void Act(const SurfaceInstruction& instruction, const Surface& surface, std::uint8_t* bytes,
         TextureLanes& lanes, std::uint32_t lane) {
  switch (instruction.action) {
    case SurfaceAction::kLoad:
    case SurfaceAction::kStore:
      for (unsigned i = 0; i < instruction.count; ++i) {
        std::uint8_t* const element = bytes + std::size_t{i} * instruction.element_bytes;
        std::uint64_t& component = lanes.components[i][lane];
        if (instruction.action == SurfaceAction::kStore) {
          std::memcpy(element, &component, instruction.element_bytes);
        } else {
          component = 0;
          std::memcpy(&component, element, instruction.element_bytes);
        }
      }
      return;
    case SurfaceAction::kStoreFormatted: {
      Texel texel;
      for (std::size_t i = 0; i < texel.size(); ++i) {
        texel[i] = static_cast<std::uint32_t>(lanes.components[i][lane]);
      }
      return WriteTexel(surface.format, texel, bytes);
    }
    default:
      return Reduce(instruction, bytes, lanes.components[0][lane]);
  }
}

struct Extents {
  TexelFormat format;
  const TextureLevel* base = nullptr;
  std::size_t levels = 1;
  bool has_normalized_coordinates = false;
};

// Texture or surface: queries take both.
Extents ExtentsOf(WarpContext* context, std::uint64_t handle, std::uint32_t lane) {
  const TextureObject* const found = TextureTable::Instance().Find(handle);
  if (found == nullptr) Raise(context, kNoTexture, handle, lane);
  if (const auto* surface = std::get_if<Surface>(found)) {
    return {surface->format, &surface->level};
  }
  const auto& texture = std::get<Texture>(*found);
  return {texture.format, &texture.levels[0], texture.levels.size(),
          texture.has_normalized_coordinates};
}

std::uint64_t Answer(const Extents& extents, TextureQuery query) {
  switch (query) {
    case TextureQuery::kWidth:
      return extents.base->width;
    case TextureQuery::kHeight:
      return extents.base->height;
    case TextureQuery::kDepth:
    case TextureQuery::kArraySize:
      return extents.base->slices;
    case TextureQuery::kLevels:
      return extents.levels;
    case TextureQuery::kNormalizedCoordinates:
      return extents.has_normalized_coordinates ? 1 : 0;
  }
  return 0;
}

}  // namespace

void AccessTexture(WarpContext* context, std::uint32_t mask, TextureLanes* lanes,
                   std::uint64_t bits) {
  const auto instruction = std::bit_cast<TextureInstruction>(bits);
  Objects<Texture> textures(context, *lanes, kNoTexture);
  const bool in_plane = !instruction.gathers && !instruction.is_integer &&
                        instruction.geometry == TextureGeometry::k2d;
  if (in_plane && HaveOneHandle(*lanes, mask) &&
      SamplePlane(textures.Of(FirstLane(mask)), mask, *lanes)) {
    return;
  }
  ForEachLane(mask, [&](std::uint32_t lane) {
    const Texture& texture = textures.Of(lane);
    const SampleRequest request = RequestOf(instruction, *lanes, lane);
    const Texel texel = instruction.gathers ? Gather(texture, request, instruction.component)
                                            : Sample(texture, request);
    for (unsigned i = 0; i < kTexelComponents; ++i) lanes->components[i][lane] = texel[i];
  });
}

void AccessSurface(WarpContext* context, std::uint32_t mask, TextureLanes* lanes,
                   std::uint64_t bits) {
  const auto instruction = std::bit_cast<SurfaceInstruction>(bits);
  Objects<Surface> surfaces(context, *lanes, kNoSurface);
  ForEachLane(mask, [&](std::uint32_t lane) {
    const Surface& surface = surfaces.Of(lane);
    const SurfaceRequest request = RequestOf(instruction, surface.format, *lanes, lane);
    const SurfacePlace place = Locate(surface, request);
    if (place.is_error) {
      Raise(context, "an access outside of surface object ", lanes->handles[lane], lane);
    }
    if (place.bytes != nullptr) return Act(instruction, surface, place.bytes, *lanes, lane);
    for (unsigned i = 0; i < kTexelComponents; ++i) lanes->components[i][lane] = 0;
  });
}

void QueryTexture(WarpContext* context, std::uint32_t mask, TextureLanes* lanes,
                  std::uint64_t query) {
  ForEachLane(mask, [&](std::uint32_t lane) {
    const Extents extents = ExtentsOf(context, lanes->handles[lane], lane);
    lanes->components[0][lane] = Answer(extents, static_cast<TextureQuery>(query));
  });
}

}  // namespace torpor::emulator
