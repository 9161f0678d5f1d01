#include "emulator/exec/texture/plane_sampler.h"

#include <bit>
#include <cstring>

#include "emulator/exec/texture/texel.h"
#include "emulator/exec/texture/texel_axis.h"

namespace torpor::emulator {
namespace {

// How texels are stored: kChannels numbers of type f32.
template <std::uint32_t kChannels>
struct Floats {
  static constexpr std::uint32_t kBytes = kChannels * sizeof(float);

  static FloatTexel Read(const std::uint8_t* bytes) {
    FloatTexel texel = {0, 0, 0, 1};
    std::memcpy(texel.data(), bytes, kBytes);
    return texel;
  }
};

// kChannels bytes, read as fractions of the largest.
template <std::uint32_t kChannels>
struct Fractions {
  static constexpr std::uint32_t kBytes = kChannels;

  static FloatTexel Read(const std::uint8_t* bytes) {
    FloatTexel texel = {0, 0, 0, 1};
    for (std::uint32_t i = 0; i < kChannels; ++i) {
      texel[i] = static_cast<float>(bytes[i]) / 255.0F;
    }
    return texel;
  }
};

template <typename Format>
class Plane {
 public:
  explicit Plane(const Texture& texture)
      : level_(texture.levels[0]),
        modes_{ModeOfAxis(texture, 0), ModeOfAxis(texture, 1)},
        scales_{texture.has_normalized_coordinates ? static_cast<double>(level_.width) : 1,
                texture.has_normalized_coordinates ? static_cast<double>(level_.height) : 1} {}

  FloatTexel Nearest(float x, float y) const {
    const Axis column = Along<PointAxis>(0, x, level_.width);
    const Axis row = Along<PointAxis>(1, y, level_.height);
    return At(column.texels[0], row.texels[0]);
  }

  // See LevelReader::Blend.
  FloatTexel Blend(float x, float y) const {
    const Axis column = Along<PairAxis>(0, x, level_.width);
    const Axis row = Along<PairAxis>(1, y, level_.height);
    const std::array<float, 2> across = {1 - column.weight, column.weight};
    const std::array<float, 2> down = {1 - row.weight, row.weight};
    FloatTexel sum = {};
    for (unsigned corner = 0; corner < 4; ++corner) {
      const float weight = across[corner & 1] * down[corner >> 1];
      if (weight == 0) continue;
      const FloatTexel texel = At(column.texels[corner & 1], row.texels[corner >> 1]);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * texel[i];
    }
    return sum;
  }

 private:
  template <typename MakeAxis>
  Axis Along(unsigned axis, float coordinate, std::uint32_t extent) const {
    return MakeAxis()(Tamed(coordinate * scales_[axis]), extent, modes_[axis]);
  }

  FloatTexel At(std::int64_t x, std::int64_t y) const {
    return Format::Read(level_.Row(static_cast<std::uint64_t>(y), 0) +
                        static_cast<std::uint64_t>(x) * Format::kBytes);
  }

  const TextureLevel& level_;
  const std::array<AddressMode, 2> modes_;
  const std::array<double, 2> scales_;
};

template <typename Read>
void ForEachLane(std::uint32_t mask, TextureLanes& lanes, const Read& read) {
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    const FloatTexel texel = read(std::bit_cast<float>(lanes.inputs[0][lane]),
                                  std::bit_cast<float>(lanes.inputs[1][lane]));
    for (std::size_t i = 0; i < texel.size(); ++i) {
      lanes.components[i][lane] = std::bit_cast<std::uint32_t>(texel[i]);
    }
  }
}

template <typename Format>
bool SampleAs(const Texture& texture, std::uint32_t mask, TextureLanes& lanes) {
  const Plane<Format> plane(texture);
  if (texture.filters) {
    ForEachLane(mask, lanes, [&](float x, float y) { return plane.Blend(x, y); });
  } else {
    ForEachLane(mask, lanes, [&](float x, float y) { return plane.Nearest(x, y); });
  }
  return true;
}

template <template <std::uint32_t> typename Format>
bool SampleChannels(const Texture& texture, std::uint32_t mask, TextureLanes& lanes) {
  switch (texture.format.channels) {
    case 1:
      return SampleAs<Format<1>>(texture, mask, lanes);
    case 2:
      return SampleAs<Format<2>>(texture, mask, lanes);
    default:
      return SampleAs<Format<4>>(texture, mask, lanes);
  }
}

bool HasBorder(const Texture& texture) {
  return texture.address[0] == AddressMode::kBorder || texture.address[1] == AddressMode::kBorder;
}

}  // namespace

bool SamplePlane(const Texture& texture, std::uint32_t mask, TextureLanes& lanes) {
  if (texture.levels.size() != 1 || texture.is_linear_memory || HasBorder(texture)) return false;
  if (texture.format.type == ChannelType::kFloat) {
    return SampleChannels<Floats>(texture, mask, lanes);
  }
  const bool fractions = texture.format.type == ChannelType::kUnsigned8 &&
                         texture.has_normalized_values && !texture.is_srgb;
  return fractions && SampleChannels<Fractions>(texture, mask, lanes);
}

}  // namespace torpor::emulator
