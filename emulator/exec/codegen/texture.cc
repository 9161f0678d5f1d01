// tex, tld4, suld, sust, sured, txq, suq: the runtime does them, lane by lane.
#include <bit>
#include <cstddef>
#include <optional>

#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

// nullopt without a known geometry modifier.
std::optional<TextureGeometry> GeometryOf(const Instruction& instruction) {
  if (instruction.Has(Modifier::k1d)) return TextureGeometry::k1d;
  if (instruction.Has(Modifier::k2d)) return TextureGeometry::k2d;
  if (instruction.Has(Modifier::k3d)) return TextureGeometry::k3d;
  if (instruction.Has(Modifier::kA1d)) return TextureGeometry::kLayered1d;
  if (instruction.Has(Modifier::kA2d)) return TextureGeometry::kLayered2d;
  if (instruction.Has(Modifier::kCube)) return TextureGeometry::kCube;
  if (instruction.Has(Modifier::kAcube)) return TextureGeometry::kLayeredCube;
  return std::nullopt;
}

LevelChoice ChoiceOf(const Instruction& instruction) {
  if (instruction.Has(Modifier::kLevel)) return LevelChoice::kLevel;
  return instruction.Has(Modifier::kGrad) ? LevelChoice::kGradients : LevelChoice::kBase;
}

std::uint8_t GatheredComponent(const Instruction& instruction) {
  if (instruction.Has(Modifier::kG)) return 1;
  if (instruction.Has(Modifier::kB)) return 2;
  return instruction.Has(Modifier::kA) ? 3 : 0;
}

SurfaceBounds BoundsOf(const Instruction& instruction) {
  if (instruction.Has(Modifier::kClamp)) return SurfaceBounds::kClamp;
  return instruction.Has(Modifier::kZero) ? SurfaceBounds::kZero : SurfaceBounds::kTrap;
}

// nullopt for an unknown reduction.
std::optional<SurfaceAction> ActionOf(const Instruction& instruction) {
  if (instruction.opcode == Opcode::kSuld) return SurfaceAction::kLoad;
  if (instruction.opcode == Opcode::kSust) {
    return instruction.Has(Modifier::kP) ? SurfaceAction::kStoreFormatted : SurfaceAction::kStore;
  }
  if (instruction.Has(Modifier::kAdd)) return SurfaceAction::kAdd;
  if (instruction.Has(Modifier::kMin)) return SurfaceAction::kMin;
  if (instruction.Has(Modifier::kMax)) return SurfaceAction::kMax;
  if (instruction.Has(Modifier::kAnd)) return SurfaceAction::kAnd;
  if (instruction.Has(Modifier::kOr)) return SurfaceAction::kOr;
  return std::nullopt;
}

std::optional<TextureQuery> QueryOf(const Instruction& instruction) {
  if (instruction.Has(Modifier::kWidth)) return TextureQuery::kWidth;
  if (instruction.Has(Modifier::kHeight)) return TextureQuery::kHeight;
  if (instruction.Has(Modifier::kDepth)) return TextureQuery::kDepth;
  if (instruction.Has(Modifier::kArraySize)) return TextureQuery::kArraySize;
  if (instruction.Has(Modifier::kNumMipmapLevels)) return TextureQuery::kLevels;
  if (instruction.Has(Modifier::kNormalizedCoords)) return TextureQuery::kNormalizedCoordinates;
  return std::nullopt;
}

// Number of coordinates in use; the remaining elements pad to a vector.
unsigned CoordinateCount(TextureGeometry geometry) {
  return Dimensions(geometry) + (IsLayered(geometry) ? 1 : 0);
}

// The faces and layers of a cube are a surface's slices: nvcc asks for them by number.
bool IsSurfaceGeometry(TextureGeometry geometry) { return !IsCube(geometry); }

bool IsObject(const Operand& operand, unsigned coordinates) {
  return operand.kind == Operand::Kind::kAddress && operand.reg != ptx::kNoIndex &&
         operand.bits == 0 && operand.elements.size() >= coordinates;
}

// A single register may stand for a one-element vector.
const Operand& Element(const Operand& operand, unsigned index) {
  return operand.kind == Operand::Kind::kVector ? operand.elements[index] : operand;
}

bool HasElements(const Operand& operand, std::size_t count) {
  return operand.kind == Operand::Kind::kVector ? operand.elements.size() >= count : count == 1;
}

}  // namespace

// tex{.level,.grad}.GEOMETRY.v4.TYPE.COORDINATES {r, g, b, a}{|p}, [texture, {...}]{, level}
void EmitTexture(OperandBuilder& to, TextureCallBuilder& textures, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const auto geometry = GeometryOf(instruction);
  const bool gathers = instruction.opcode == Opcode::kTld4;
  const LevelChoice choice = ChoiceOf(instruction);
  const std::size_t operands = choice == LevelChoice::kBase    ? 2
                               : choice == LevelChoice::kLevel ? 3
                                                               : 4;
  if (!geometry || instruction.types.size() != 2 || instruction.operands.size() != operands ||
      !IsObject(instruction.operands[1], CoordinateCount(*geometry)) ||
      (gathers && *geometry != TextureGeometry::k2d)) {
    return to.Unsupported(instruction);
  }
  const Operand* results = &instruction.operands[0];
  const Operand* resident = nullptr;
  if (results->elements.size() == 2 && results->elements[0].kind == Operand::Kind::kVector) {
    resident = &results->elements[1];
    results = &results->elements[0];
  }
  const Type type = instruction.types[0];
  const Type coordinate = instruction.types[1];
  const bool is_integer = coordinate == Type::kS32;
  if (!HasElements(*results, 4) || results->kind != Operand::Kind::kVector ||
      ptx::BitWidth(type) != 32 || (!is_integer && coordinate != Type::kF32)) {
    return to.Unsupported(instruction);
  }
  for (std::size_t i = 2; i < operands; ++i) {
    const std::size_t count = choice == LevelChoice::kLevel ? 1 : Dimensions(*geometry);
    if (!HasElements(instruction.operands[i], count)) return to.Unsupported(instruction);
  }
  const TextureInstruction packed = {.geometry = *geometry,
                                     .choice = choice,
                                     .is_integer = is_integer,
                                     .gathers = gathers,
                                     .component = GatheredComponent(instruction)};
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    const Operand& object = instruction.operands[1];
    textures.PutHandles(object);
    unsigned next = 0;
    for (unsigned i = 0; i < CoordinateCount(*geometry); ++i) {
      textures.PutInput(next++, object.elements[i]);
    }
    const unsigned extra = choice == LevelChoice::kLevel ? 1 : Dimensions(*geometry);
    for (std::size_t operand = 2; operand < operands; ++operand) {
      for (unsigned i = 0; i < extra; ++i) {
        textures.PutInput(next++, Element(instruction.operands[operand], i));
      }
    }
    textures.Call(offsetof(RuntimeCalls, texture), std::bit_cast<std::uint64_t>(packed), mask);
    for (unsigned i = 0; i < kTexelComponents; ++i) {
      to.Write(instruction, results->elements[i], textures.TakeComponent(i, 32), type);
    }
    // Sparse memory is not there: everything is resident.
    if (resident != nullptr) to.Write(instruction, *resident, code.AllLanes(), Type::kPred);
  });
}

// suld.b.GEOMETRY{.vec}.TYPE.BOUNDS {...}, [surface, {...}]
// sust.{b,p}.GEOMETRY{.vec}.TYPE.BOUNDS [surface, {...}], {...}
// sured.{b,p}.OPERATION.GEOMETRY.TYPE.BOUNDS [surface, {...}], operand
void EmitSurface(OperandBuilder& to, TextureCallBuilder& textures, const Instruction& instruction) {
  const auto geometry = GeometryOf(instruction);
  const auto action = ActionOf(instruction);
  const bool loads = instruction.opcode == Opcode::kSuld;
  const bool reduces = instruction.opcode == Opcode::kSured;
  if (!geometry || !action || !IsSurfaceGeometry(*geometry) || instruction.types.size() != 1 ||
      instruction.operands.size() != 2 || (loads && instruction.Has(Modifier::kP))) {
    return to.Unsupported(instruction);
  }
  const Operand& object = instruction.operands[loads ? 1 : 0];
  const Operand& data = instruction.operands[loads ? 0 : 1];
  const Type type = instruction.type();
  const unsigned count = instruction.vector_width();
  const unsigned bytes = ptx::ByteWidth(type);
  const bool fits = reduces ? (bytes == 4 || bytes == 8) && count == 1
                            : count <= kTexelComponents && bytes <= 8 && bytes * count <= 16;
  if (!IsObject(object, CoordinateCount(*geometry)) || !HasElements(data, count) || !fits ||
      (*action == SurfaceAction::kStoreFormatted && bytes != 4)) {
    return to.Unsupported(instruction);
  }
  const SurfaceInstruction packed = {.geometry = *geometry,
                                     .bounds = BoundsOf(instruction),
                                     .action = *action,
                                     .element_bytes = static_cast<std::uint8_t>(bytes),
                                     .count = static_cast<std::uint8_t>(count),
                                     .is_signed = ptx::IsSigned(type),
                                     .counts_texels = instruction.Has(Modifier::kP)};
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    textures.PutHandles(object);
    for (unsigned i = 0; i < CoordinateCount(*geometry); ++i) {
      textures.PutInput(i, object.elements[i]);
    }
    if (!loads) {
      for (unsigned i = 0; i < count; ++i) textures.PutComponent(i, Element(data, i), type);
    }
    textures.Call(offsetof(RuntimeCalls, surface), std::bit_cast<std::uint64_t>(packed), mask);
    if (!loads) return;
    for (unsigned i = 0; i < count; ++i) {
      to.Write(instruction, Element(data, i), textures.TakeComponent(i, 8 * bytes), type);
    }
  });
}

// txq.QUERY.b32 d, [texture]; suq.QUERY.b32 d, [surface]
void EmitTextureQuery(OperandBuilder& to, TextureCallBuilder& textures,
                      const Instruction& instruction) {
  const auto query = QueryOf(instruction);
  if (!query || instruction.operands.size() != 2 || instruction.Has(Modifier::kLevel) ||
      !IsObject(instruction.operands[1], 0)) {
    return to.Unsupported(instruction);
  }
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    textures.PutHandles(instruction.operands[1]);
    textures.Call(offsetof(RuntimeCalls, texture_query), static_cast<std::uint64_t>(*query), mask);
    to.Write(instruction, instruction.operands[0], textures.TakeComponent(0, 32), Type::kB32);
  });
}

}  // namespace torpor::emulator
