#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace torpor::ptx {

// The fundamental types of PTX, and the types that only conversions and matrices have.
enum class Type : std::uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kB1,
  kU4,
  kU16x2,
  kS16x2,
  kS4,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kF32,
  kF64,
  kTf32,
  kE4m3,
  kE5m2,
  kE4m3x2,
  kE5m2x2,
};

// Parses a type without the dot: "u32". Returns nullopt for other tokens.
std::optional<Type> ParseType(std::string_view token);

// The width in bits; 1 for a predicate.
unsigned BitWidth(Type type);
inline unsigned ByteWidth(Type type) { return (BitWidth(type) + 7) / 8; }
bool IsSigned(Type type);
inline bool IsIntegerPair(Type type) { return type == Type::kU16x2 || type == Type::kS16x2; }
bool IsFloat(Type type);
// Whether registers and variables may have the type, and ordinary instructions compute with it.
bool IsFundamental(Type type);

// State spaces.
enum class Space : std::uint8_t { kGeneric, kGlobal, kShared, kConst, kLocal, kParam, kRegister };

}  // namespace torpor::ptx
