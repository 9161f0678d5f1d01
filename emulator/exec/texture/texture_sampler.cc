#include "emulator/exec/texture/texture_sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "emulator/exec/texture/texel_axis.h"

namespace torpor::emulator {
namespace {

constexpr std::uint32_t kFaces = 6;

// A sample of one level: positions on up to three axes, and the slice if there is no third axis.
struct Footprint {
  std::array<Axis, 3> axes;
  unsigned dimensions = 1;
  std::uint32_t slice = 0;
};

class LevelReader {
 public:
  LevelReader(const Texture& texture, const TextureLevel& level, const SampleRequest& request)
      : texture_(texture), level_(level), request_(request) {}

  Footprint Point() const { return Make(PointAxis()); }
  Footprint Pairs() const { return Make(PairAxis()); }

  Texel Read(const Footprint& footprint, unsigned corner) const {
    const std::uint8_t* const bytes = Locate(footprint, corner);
    return bytes == nullptr ? Missing() : ReadTexel(texture_, bytes);
  }

  FloatTexel ReadFloats(const Footprint& footprint, unsigned corner) const {
    const std::uint8_t* const bytes = Locate(footprint, corner);
    return bytes == nullptr ? std::bit_cast<FloatTexel>(Missing())
                            : ReadFloatTexel(texture_, bytes);
  }

  FloatTexel Blend(const Footprint& footprint) const {
    FloatTexel sum = {};
    for (unsigned corner = 0; corner < (1U << footprint.dimensions); ++corner) {
      float weight = 1;
      for (unsigned i = 0; i < footprint.dimensions; ++i) {
        const float second = footprint.axes[i].weight;
        weight *= ((corner >> i) & 1) != 0 ? second : 1 - second;
      }
      if (weight == 0) continue;  // what is not blended in may be anything, even infinite
      const FloatTexel texel = ReadFloats(footprint, corner);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * texel[i];
    }
    return sum;
  }

 private:
  std::uint32_t Extent(unsigned axis) const {
    return axis == 0 ? level_.width : axis == 1 ? level_.height : level_.slices;
  }

  // In texels.
  double Position(unsigned axis) const {
    if (request_.is_integer) return request_.texel[axis];
    const double scale = texture_.has_normalized_coordinates ? Extent(axis) : 1;
    return Tamed(request_.coordinates[axis] * scale);
  }

  AddressMode ModeOf(unsigned axis) const {
    if (request_.is_integer && texture_.is_linear_memory) return AddressMode::kBorder;
    return ModeOfAxis(texture_, axis);
  }

  std::uint32_t Layer() const {
    const std::uint32_t slices = IsCube(request_.geometry) ? level_.slices / kFaces : level_.slices;
    const std::int64_t last = std::max<std::int64_t>(slices, 1) - 1;
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(request_.layer, 0, last));
  }

  template <typename MakeAxis>
  Footprint Make(MakeAxis make) const {
    if (IsCube(request_.geometry)) return MakeOnFace(make);
    Footprint footprint;
    footprint.dimensions = Dimensions(request_.geometry);
    for (unsigned i = 0; i < footprint.dimensions; ++i) {
      footprint.axes[i] = make(Position(i), Extent(i), ModeOf(i));
    }
    if (IsLayered(request_.geometry)) footprint.slice = Layer();
    return footprint;
  }

  // The largest component of the direction selects the face.
  template <typename MakeAxis>
  Footprint MakeOnFace(MakeAxis make) const {
    const auto [x, y, z] = request_.coordinates;
    const float ax = std::fabs(x);
    const float ay = std::fabs(y);
    const float az = std::fabs(z);
    std::uint32_t face = 0;
    float s = 0;
    float t = 0;
    float major = 0;
    if (ax >= ay && ax >= az) {
      face = std::signbit(x) ? 1 : 0;
      s = face == 0 ? -z : z;
      t = -y;
      major = ax;
    } else if (ay >= az) {
      face = std::signbit(y) ? 3 : 2;
      s = x;
      t = face == 2 ? z : -z;
      major = ay;
    } else {
      face = std::signbit(z) ? 5 : 4;
      s = face == 4 ? x : -x;
      t = -y;
      major = az;
    }
    const auto on_edge = [&](float place, std::uint32_t extent) {
      return make(Tamed((place / major + 1) / 2 * static_cast<double>(extent)), extent,
                  AddressMode::kClamp);
    };
    Footprint footprint;
    footprint.dimensions = 2;
    footprint.axes[0] = on_edge(s, level_.width);
    footprint.axes[1] = on_edge(t, level_.height);
    footprint.slice = std::min(Layer() * kFaces + face, level_.slices - 1);
    return footprint;
  }

  // Null outside.
  const std::uint8_t* Locate(const Footprint& footprint, unsigned corner) const {
    std::array<std::int64_t, 3> at = {0, 0, footprint.slice};
    for (unsigned i = 0; i < footprint.dimensions; ++i) {
      at[i] = footprint.axes[i].texels[(corner >> i) & 1];
      if (at[i] == kOutside) return nullptr;
    }
    return level_.Row(static_cast<std::uint64_t>(at[1]), static_cast<std::uint64_t>(at[2])) +
           static_cast<std::uint64_t>(at[0]) * texture_.format.bytes();
  }

  Texel Missing() const { return texture_.is_linear_memory ? Texel{} : BorderTexel(texture_); }

  const Texture& texture_;
  const TextureLevel& level_;
  const SampleRequest& request_;
};

FloatTexel SampleFloats(const Texture& texture, const TextureLevel& level,
                        const SampleRequest& request) {
  const LevelReader reader(texture, level, request);
  if (texture.filters && !request.is_integer) return reader.Blend(reader.Pairs());
  return reader.ReadFloats(reader.Point(), 0);
}

Texel SampleLevel(const Texture& texture, const TextureLevel& level, const SampleRequest& request) {
  if (ReadsFloats(texture)) return std::bit_cast<Texel>(SampleFloats(texture, level, request));
  const LevelReader reader(texture, level, request);
  return reader.Read(reader.Point(), 0);
}

// How many texels of the base level a step of one pixel crosses, as a power of two.
float LevelOfGradients(const Texture& texture, const SampleRequest& request) {
  const TextureLevel& base = texture.levels[0];
  const std::array<std::uint32_t, 3> extents = {base.width, base.height, base.slices};
  const auto length = [&](const std::array<float, 3>& step) {
    double squares = 0;
    for (unsigned i = 0; i < Dimensions(request.geometry); ++i) {
      // Half the edge of a cube is a step of 1 in the direction.
      const double scale = IsCube(request.geometry) ? extents[0] / 2.0 : extents[i];
      squares += step[i] * scale * step[i] * scale;
    }
    return std::sqrt(squares);
  };
  return static_cast<float>(std::log2(std::max(length(request.dx), length(request.dy))));
}

// The level to read, with a fraction.
float LevelOf(const Texture& texture, const SampleRequest& request) {
  float level = 0;
  if (request.choice == LevelChoice::kLevel) level = request.level;
  if (request.choice == LevelChoice::kGradients) level = LevelOfGradients(texture, request);
  level += texture.level_bias;
  if (std::isnan(level)) level = 0;
  level = std::min(std::max(level, texture.min_level), texture.max_level);
  return std::clamp(level, 0.0F, static_cast<float>(texture.levels.size() - 1));
}

}  // namespace

// Blends two levels if the texture asks for blending, else takes the nearest level.
Texel Sample(const Texture& texture, const SampleRequest& request) {
  if (texture.levels.size() == 1) return SampleLevel(texture, texture.levels[0], request);
  const float level = LevelOf(texture, request);
  const bool blends = texture.blends_levels && ReadsFloats(texture);
  const auto first = static_cast<std::size_t>(Floor(texture.blends_levels ? level : level + 0.5F));
  const float weight = blends ? Weight(level - static_cast<float>(first)) : 0;
  if (weight == 0) return SampleLevel(texture, texture.levels[first], request);
  FloatTexel value = SampleFloats(texture, texture.levels[first], request);
  const FloatTexel next = SampleFloats(texture, texture.levels[first + 1], request);
  for (std::size_t i = 0; i < value.size(); ++i) {
    value[i] = (1 - weight) * value[i] + weight * next[i];
  }
  return std::bit_cast<Texel>(value);
}

Texel Gather(const Texture& texture, const SampleRequest& request, unsigned component) {
  const LevelReader reader(texture, texture.levels[0], request);
  const Footprint footprint = reader.Pairs();
  constexpr std::array<unsigned, 4> kCorners = {2, 3, 1, 0};
  Texel gathered;
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    gathered[i] = reader.Read(footprint, kCorners[i])[component];
  }
  return gathered;
}

}  // namespace torpor::emulator
