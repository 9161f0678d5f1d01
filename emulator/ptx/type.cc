#include "emulator/ptx/type.h"

#include <array>

namespace torpor::ptx {
namespace {

// A type's name in PTX and its width.
struct TypeEntry {
  std::string_view token;
  Type type;
  unsigned bits;
};

constexpr std::array kTypes = {
    TypeEntry{"pred", Type::kPred, 1},    TypeEntry{"b8", Type::kB8, 8},
    TypeEntry{"b16", Type::kB16, 16},     TypeEntry{"b32", Type::kB32, 32},
    TypeEntry{"b64", Type::kB64, 64},     TypeEntry{"b128", Type::kB128, 128},
    TypeEntry{"u8", Type::kU8, 8},        TypeEntry{"u16", Type::kU16, 16},
    TypeEntry{"u32", Type::kU32, 32},     TypeEntry{"u64", Type::kU64, 64},
    TypeEntry{"s8", Type::kS8, 8},        TypeEntry{"s16", Type::kS16, 16},
    TypeEntry{"s32", Type::kS32, 32},     TypeEntry{"s64", Type::kS64, 64},
    TypeEntry{"f16", Type::kF16, 16},     TypeEntry{"f16x2", Type::kF16x2, 32},
    TypeEntry{"bf16", Type::kBf16, 16},   TypeEntry{"bf16x2", Type::kBf16x2, 32},
    TypeEntry{"f32", Type::kF32, 32},     TypeEntry{"f64", Type::kF64, 64},
    TypeEntry{"u16x2", Type::kU16x2, 32}, TypeEntry{"s16x2", Type::kS16x2, 32},
    TypeEntry{"b1", Type::kB1, 1},        TypeEntry{"u4", Type::kU4, 4},
    TypeEntry{"s4", Type::kS4, 4},        TypeEntry{"tf32", Type::kTf32, 32},
    TypeEntry{"e4m3", Type::kE4m3, 8},    TypeEntry{"e4m3x2", Type::kE4m3x2, 16},
    TypeEntry{"e5m2", Type::kE5m2, 8},    TypeEntry{"e5m2x2", Type::kE5m2x2, 16},
};

}  // namespace

std::optional<Type> ParseType(std::string_view token) {
  for (const TypeEntry& entry : kTypes) {
    if (entry.token == token) return entry.type;
  }
  return std::nullopt;
}

unsigned BitWidth(Type type) {
  for (const TypeEntry& entry : kTypes) {
    if (entry.type == type) return entry.bits;
  }
  return 0;
}

bool IsSigned(Type type) { return type >= Type::kS16x2 && type <= Type::kS64; }

bool IsFloat(Type type) { return type >= Type::kF16; }

bool IsFundamental(Type type) {
  const bool part_of_byte = type == Type::kB1 || type == Type::kU4 || type == Type::kS4;
  return type <= Type::kF64 && !part_of_byte;
}

}  // namespace torpor::ptx
