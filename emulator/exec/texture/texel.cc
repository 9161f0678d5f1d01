#include "emulator/exec/texture/texel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace torpor::emulator {
namespace {

template <typename T>
T Load(const std::uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <typename T>
void Store(std::uint8_t* bytes, T value) {
  std::memcpy(bytes, &value, sizeof value);
}

float HalfToFloat(std::uint16_t half) {
  const int exponent = (half >> 10) & 0x1f;
  const int fraction = half & 0x3ff;
  float magnitude = 0;
  if (exponent == 0x1f) {
    magnitude = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(fraction | 0x400), exponent - 25);
  }
  return (half & 0x8000) == 0 ? magnitude : -magnitude;
}

// To nearest, ties to even.
std::uint16_t FloatToHalf(float value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7fff);
  if (magnitude >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7c00);
  if (magnitude < std::ldexp(1.0F, -14)) {
    return static_cast<std::uint16_t>(sign | std::lrint(std::ldexp(magnitude, 24)));
  }
  const int exponent = std::ilogb(magnitude);
  // 11 bits: the first bit adds 1 to the exponent's field, and so does an overflow.
  const long digits = std::lrint(std::ldexp(magnitude, 10 - exponent));
  return static_cast<std::uint16_t>(sign | (((exponent + 14) << 10) + digits));
}

// The bits of an integer channel, extended to 32.
std::uint32_t LoadInteger(ChannelType type, const std::uint8_t* bytes) {
  switch (type) {
    case ChannelType::kUnsigned8:
      return *bytes;
    case ChannelType::kSigned8:
      return static_cast<std::uint32_t>(Load<std::int8_t>(bytes));
    case ChannelType::kUnsigned16:
      return Load<std::uint16_t>(bytes);
    case ChannelType::kSigned16:
      return static_cast<std::uint32_t>(Load<std::int16_t>(bytes));
    default:
      return Load<std::uint32_t>(bytes);
  }
}

float LoadFloat(ChannelType type, const std::uint8_t* bytes) {
  return type == ChannelType::kHalf ? HalfToFloat(Load<std::uint16_t>(bytes)) : Load<float>(bytes);
}

// A fraction of the channel's largest value; both lowest signed values are -1.
float Normalized(ChannelType type, std::uint32_t bits) {
  switch (type) {
    case ChannelType::kUnsigned8:
      return static_cast<float>(bits) / 255.0F;
    case ChannelType::kUnsigned16:
      return static_cast<float>(bits) / 65535.0F;
    case ChannelType::kSigned8:
      return std::max(static_cast<float>(static_cast<std::int32_t>(bits)) / 127.0F, -1.0F);
    default:
      return std::max(static_cast<float>(static_cast<std::int32_t>(bits)) / 32767.0F, -1.0F);
  }
}

float LinearFromSrgb(float value) {
  return value <= 0.04045F ? value / 12.92F : std::pow((value + 0.055F) / 1.055F, 2.4F);
}

template <typename T>
std::uint32_t Limited(std::uint32_t bits) {
  if constexpr (std::is_signed_v<T>) {
    const auto value = static_cast<std::int32_t>(bits);
    return static_cast<std::uint32_t>(std::clamp<std::int32_t>(value, std::numeric_limits<T>::min(),
                                                               std::numeric_limits<T>::max()));
  } else {
    return std::min<std::uint32_t>(bits, std::numeric_limits<T>::max());
  }
}

void StoreChannel(ChannelType type, std::uint32_t value, std::uint8_t* bytes) {
  switch (type) {
    case ChannelType::kUnsigned8:
      return Store(bytes, static_cast<std::uint8_t>(Limited<std::uint8_t>(value)));
    case ChannelType::kSigned8:
      return Store(bytes, static_cast<std::int8_t>(Limited<std::int8_t>(value)));
    case ChannelType::kUnsigned16:
      return Store(bytes, static_cast<std::uint16_t>(Limited<std::uint16_t>(value)));
    case ChannelType::kSigned16:
      return Store(bytes, static_cast<std::int16_t>(Limited<std::int16_t>(value)));
    case ChannelType::kHalf:
      return Store(bytes, FloatToHalf(std::bit_cast<float>(value)));
    default:
      return Store(bytes, value);
  }
}

}  // namespace

FloatTexel ConvertTexel(const Texture& texture, const std::uint8_t* bytes) {
  const TexelFormat& format = texture.format;
  FloatTexel texel = {0, 0, 0, 1};
  for (std::uint32_t i = 0; i < format.channels; ++i, bytes += ChannelBytes(format.type)) {
    texel[i] = IsFloatingPoint(format.type)
                   ? LoadFloat(format.type, bytes)
                   : Normalized(format.type, LoadInteger(format.type, bytes));
    if (texture.is_srgb && i < 3) texel[i] = LinearFromSrgb(texel[i]);
  }
  return texel;
}

Texel ReadTexel(const Texture& texture, const std::uint8_t* bytes) {
  if (ReadsFloats(texture)) return std::bit_cast<Texel>(ReadFloatTexel(texture, bytes));
  const TexelFormat& format = texture.format;
  Texel texel = {0, 0, 0, 1};
  for (std::uint32_t i = 0; i < format.channels; ++i, bytes += ChannelBytes(format.type)) {
    texel[i] = LoadInteger(format.type, bytes);
  }
  return texel;
}

// The border colour in the form of the texture's values.
Texel BorderTexel(const Texture& texture) {
  if (ReadsFloats(texture)) return std::bit_cast<Texel>(texture.border);
  Texel texel;
  for (std::size_t i = 0; i < texel.size(); ++i) {
    constexpr double kLargest = 4294967295.0;
    const double value = std::isnan(texture.border[i]) ? 0 : texture.border[i];
    const double limited = std::clamp(value, -2147483648.0, kLargest);
    texel[i] = static_cast<std::uint32_t>(static_cast<std::int64_t>(limited));
  }
  return texel;
}

void WriteTexel(const TexelFormat& format, const Texel& texel, std::uint8_t* bytes) {
  for (std::uint32_t i = 0; i < format.channels; ++i, bytes += ChannelBytes(format.type)) {
    StoreChannel(format.type, texel[i], bytes);
  }
}

}  // namespace torpor::emulator
