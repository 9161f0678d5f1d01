#include "emulator/exec/texture/texture_sampler.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace torpor::emulator {
namespace {

// A texture of floats whose texel (x, y, slice) of level l is its number in memory plus 1000 l.
class Floats {
 public:
  Floats(std::uint32_t width, std::uint32_t height, std::uint32_t slices, unsigned levels = 1) {
    texture.format = {ChannelType::kFloat, 1};
    texture.max_level = 100;
    memory_.reserve(levels);
    for (unsigned i = 0; i < levels; ++i) {
      std::vector<float>& texels = memory_.emplace_back(width * height * slices);
      for (std::size_t t = 0; t < texels.size(); ++t) {
        texels[t] = static_cast<float>(t) + 1000 * static_cast<float>(i);
      }
      TextureLevel level;
      level.data = reinterpret_cast<std::uint8_t*>(texels.data());
      level.width = width;
      level.height = height;
      level.slices = slices;
      level.row_pitch = width * sizeof(float);
      level.slice_pitch = level.row_pitch * height;
      texture.levels.push_back(level);
      width = std::max(width / 2, 1U);
      height = std::max(height / 2, 1U);
    }
  }

  float At(const SampleRequest& request) const {
    return std::bit_cast<float>(Sample(texture, request)[0]);
  }
  float At(TextureGeometry geometry, std::array<float, 3> coordinates,
           std::int32_t layer = 0) const {
    SampleRequest request;
    request.geometry = geometry;
    request.coordinates = coordinates;
    request.layer = layer;
    return At(request);
  }

  Texture texture;

 private:
  std::vector<std::vector<float>> memory_;
};

// The appendix of the programming guide for one axis, on coordinates instead of texel numbers:
// what is wrapped or mirrored is folded into the texture first.
struct AxisModel {
  int extent;
  AddressMode mode;
  bool normalized;

  double Place(double x) const {
    if (!normalized) return x;
    if (mode == AddressMode::kWrap) x -= std::floor(x);
    if (mode == AddressMode::kMirror) {
      const double whole = std::floor(x);
      x = std::fmod(std::fabs(whole), 2) == 0 ? x - whole : 1 - (x - whole);
    }
    return x * extent;
  }
  // -1: the border.
  int Texel(int index) const {
    if (index >= 0 && index < extent) return index;
    if (mode == AddressMode::kBorder) return -1;
    if (mode == AddressMode::kWrap && normalized) return (index + extent) % extent;
    return index < 0 ? 0 : extent - 1;
  }
};

struct Case {
  AddressMode mode;
  bool filters;
  bool normalized;
};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const AddressMode mode :
       {AddressMode::kWrap, AddressMode::kClamp, AddressMode::kMirror, AddressMode::kBorder}) {
    for (const bool filters : {false, true}) {
      for (const bool normalized : {false, true}) cases.push_back({mode, filters, normalized});
    }
  }
  return cases;
}

constexpr std::array<int, 3> kExtents = {7, 5, 3};

double Model(const Case& one, unsigned dimensions, const std::array<float, 3>& at) {
  double sum = 0;
  for (unsigned corner = 0; corner < (one.filters ? 1U << dimensions : 1U); ++corner) {
    double weight = 1;
    int number = 0;
    bool outside = false;
    for (unsigned i = dimensions; i-- > 0;) {
      const AxisModel axis = {kExtents[i], one.mode, one.normalized};
      const double place = axis.Place(at[i]) - (one.filters ? 0.5 : 0);
      const double fraction = std::floor((place - std::floor(place)) * 256 + 0.5) / 256;
      const int second = static_cast<int>((corner >> i) & 1);
      if (one.filters) weight *= second != 0 ? fraction : 1 - fraction;
      const int texel = axis.Texel(static_cast<int>(std::floor(place)) + second);
      outside = outside || texel < 0;
      number = number * kExtents[i] + texel;
    }
    sum += weight * (outside ? -50 : number);
  }
  return sum;
}

TEST(TextureSampler, FollowsTheGuideInAllModes) {
  std::mt19937 random(7);
  for (unsigned dimensions = 1; dimensions <= 3; ++dimensions) {
    Floats floats(7, dimensions > 1 ? 5 : 1, dimensions > 2 ? 3 : 1);
    floats.texture.border = {-50, 0, 0, 0};
    const std::array kGeometries = {TextureGeometry::k1d, TextureGeometry::k2d,
                                    TextureGeometry::k3d};
    for (const Case& one : AllCases()) {
      floats.texture.address.fill(one.mode);
      floats.texture.filters = one.filters;
      floats.texture.has_normalized_coordinates = one.normalized;
      for (int i = 0; i < 2000; ++i) {
        std::array<float, 3> at = {};
        for (unsigned axis = 0; axis < 3; ++axis) {
          // From -9 to 19 texels, a quarter of a weight's step beside where it would round.
          const auto steps = static_cast<int>(random() % 7168U) - 256 * 9;
          const double place = (steps + 0.25) / 256;
          at[axis] = static_cast<float>(one.normalized ? place / kExtents[axis] : place);
        }
        ASSERT_NEAR(floats.At(kGeometries[dimensions - 1], at), Model(one, dimensions, at), 1e-4)
            << "mode " << static_cast<int>(one.mode) << " filter " << one.filters << " normalised "
            << one.normalized << " at " << at[0] << " " << at[1] << " " << at[2];
      }
    }
  }
}

TEST(TextureSampler, WeightsHaveEightBits) {
  Floats floats(2, 1, 1);
  floats.texture.filters = true;
  for (int i = 0; i <= 256; ++i) {
    const float at = 0.5F + static_cast<float>(i) / 256;
    EXPECT_EQ(floats.At(TextureGeometry::k1d, {at}), static_cast<float>(i) / 256);
    EXPECT_EQ(floats.At(TextureGeometry::k1d, {at + 1.0F / 1024}), static_cast<float>(i) / 256);
  }
}

TEST(TextureSampler, AnyCoordinateIsAnswered) {
  Floats floats(7, 5, 3, 3);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float wild[] = {kInfinity, -kInfinity, NAN, 1e38F, -1e38F, 3e9F, 1e-45F};
  for (const Case& one : AllCases()) {
    floats.texture.address.fill(one.mode);
    floats.texture.filters = one.filters;
    floats.texture.has_normalized_coordinates = one.normalized;
    for (const float x : wild) {
      for (int geometry = 0; geometry <= static_cast<int>(TextureGeometry::kLayeredCube);
           ++geometry) {
        SampleRequest request;
        request.geometry = static_cast<TextureGeometry>(geometry);
        request.coordinates = {x, -x, x};
        request.layer = x < 0 ? INT32_MIN : INT32_MAX;
        for (const LevelChoice choice :
             {LevelChoice::kBase, LevelChoice::kLevel, LevelChoice::kGradients}) {
          request.choice = choice;
          request.level = x;
          request.dx = {x, x, x};
          Sample(floats.texture, request);
        }
        request.is_integer = true;
        request.texel = {INT32_MIN, INT32_MAX, -1};
        Sample(floats.texture, request);
        Gather(floats.texture, request, 3);
      }
    }
  }
}

TEST(TextureSampler, LinearMemoryIsZeroOutside) {
  Floats floats(4, 1, 1);
  floats.texture.is_linear_memory = true;
  SampleRequest request;
  request.geometry = TextureGeometry::k1d;
  request.is_integer = true;
  for (int x = -2; x < 7; ++x) {
    request.texel[0] = x;
    const Texel wanted = x < 0 || x > 3 ? Texel{}
                                        : Texel{std::bit_cast<std::uint32_t>(static_cast<float>(x)),
                                                0, 0, std::bit_cast<std::uint32_t>(1.0F)};
    EXPECT_EQ(Sample(floats.texture, request), wanted) << x;
  }
}

TEST(TextureSampler, LayersAreChosenAndLimited) {
  Floats floats(4, 2, 3);
  for (std::int32_t layer = -1; layer <= 3; ++layer) {
    const int chosen = std::clamp(layer, 0, 2);
    EXPECT_EQ(floats.At(TextureGeometry::kLayered2d, {2.5F, 1.5F}, layer),
              static_cast<float>(chosen * 8 + 6));
  }
}

TEST(TextureSampler, CubesFollowTheTableOfFaces) {
  // Texel (s, t) of face f: f * 16 + t * 4 + s.
  const Floats floats(4, 4, 12);
  // A direction through the middle of texel (3, 0) of each face, by the guide's table.
  const float s = 0.75F;   // 3.5 / 4 * 2 - 1
  const float t = -0.75F;  // 0.5 / 4 * 2 - 1
  const std::array<std::array<float, 3>, 6> directions = {
      {{1, -t, -s}, {-1, -t, s}, {s, 1, t}, {s, -1, -t}, {s, -t, 1}, {-s, -t, -1}}};
  for (std::size_t face = 0; face < directions.size(); ++face) {
    std::array<float, 3> direction = directions[face];
    for (float& component : direction) component *= 5;  // its length is of no meaning
    const auto base = static_cast<float>(16 * face);
    EXPECT_EQ(floats.At(TextureGeometry::kCube, direction), base + 3) << face;
    EXPECT_EQ(floats.At(TextureGeometry::kLayeredCube, direction, 1), base + 96 + 3) << face;
  }
}

TEST(TextureSampler, LevelsAreClampedAndBlended) {
  Floats floats(8, 1, 1, 4);
  floats.texture.has_normalized_coordinates = true;
  SampleRequest request;
  request.geometry = TextureGeometry::k1d;
  request.choice = LevelChoice::kLevel;
  const auto at = [&](float level) {
    request.level = level;
    return floats.At(request);
  };
  EXPECT_EQ(at(0), 0);
  EXPECT_EQ(at(0.49F), 0);
  EXPECT_EQ(at(0.5F), 1000);
  EXPECT_EQ(at(9), 3000);
  EXPECT_EQ(at(-9), 0);
  floats.texture.blends_levels = true;
  EXPECT_EQ(at(1.25F), 1250);
  EXPECT_EQ(at(3), 3000);
  floats.texture.level_bias = 0.5F;
  floats.texture.min_level = 1;
  floats.texture.max_level = 2;
  EXPECT_EQ(at(0), 1000);
  EXPECT_EQ(at(1), 1500);
  EXPECT_EQ(at(2), 2000);
  request.choice = LevelChoice::kBase;
  EXPECT_EQ(floats.At(request), 1000);
}

TEST(TextureSampler, GradientsChooseTheLevelWhoseTexelsAreAsLarge) {
  Floats floats(64, 32, 1, 6);
  floats.texture.has_normalized_coordinates = true;
  SampleRequest request;
  request.choice = LevelChoice::kGradients;
  request.dx = {4.0F / 64, 0, 0};
  request.dy = {0, 2.0F / 32, 0};
  EXPECT_EQ(floats.At(request), 2000);
  request.dy = {0, 8.0F / 32, 0};
  EXPECT_EQ(floats.At(request), 3000);
  request.dx = request.dy = {};
  EXPECT_EQ(floats.At(request), 0);
}

TEST(TextureSampler, GathersCounterClockwiseFromTheLowerLeft) {
  const Floats floats(4, 4, 1);
  SampleRequest request;
  request.coordinates = {2, 2};  // between texels 1 and 2
  const auto gathered = std::bit_cast<FloatTexel>(Gather(floats.texture, request, 0));
  EXPECT_EQ(gathered, (FloatTexel{9, 10, 6, 5}));
  const auto missing = std::bit_cast<FloatTexel>(Gather(floats.texture, request, 3));
  EXPECT_EQ(missing, (FloatTexel{1, 1, 1, 1}));
}

TEST(TextureSampler, IntegersAreNeverBlended) {
  const std::array<std::uint32_t, 2> memory = {5, 9};
  Texture texture;
  texture.format = {ChannelType::kUnsigned32, 1};
  TextureLevel level;
  // The sampler only reads.
  level.data = reinterpret_cast<std::uint8_t*>(const_cast<std::uint32_t*>(memory.data()));
  level.width = 2;
  level.row_pitch = level.slice_pitch = 8;
  texture.levels = {level};
  SampleRequest request;
  request.geometry = TextureGeometry::k1d;
  request.coordinates = {1.01F};
  EXPECT_EQ(Sample(texture, request), (Texel{9, 0, 0, 1}));
}

}  // namespace
}  // namespace torpor::emulator
