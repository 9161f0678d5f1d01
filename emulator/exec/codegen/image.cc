// tex, tld4, suld, sust, sured, txq, suq: the runtime does them, lane by lane.
#include <bit>
#include <cstddef>
#include <optional>

#include "emulator/exec/codegen/function_emitter.h"
#include "emulator/exec/texture/texture_instruction.h"

namespace torpor::emulator {

using ptx::Opcode;

namespace {

using ptx::Instruction;
using ptx::Modifier;
using ptx::Operand;

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

// How many of the address's coordinates count; what follows pads to a vector.
unsigned CoordinateCount(TextureGeometry geometry) {
  return Dimensions(geometry) + (IsLayered(geometry) ? 1 : 0);
}

// The faces and layers of a cube are a surface's slices: nvcc asks for them by number.
bool IsSurfaceGeometry(TextureGeometry geometry) { return !IsCube(geometry); }

bool IsImage(const Operand& operand, unsigned coordinates) {
  return operand.kind == Operand::Kind::kAddress && operand.reg != ptx::kNoIndex &&
         operand.bits == 0 && operand.elements.size() >= coordinates;
}

// A single register may stand for a vector of one.
const Operand& Element(const Operand& operand, unsigned index) {
  return operand.kind == Operand::Kind::kVector ? operand.elements[index] : operand;
}

bool HasElements(const Operand& operand, std::size_t count) {
  return operand.kind == Operand::Kind::kVector ? operand.elements.size() >= count : count == 1;
}

}  // namespace

// One for all of the function's instructions: each is done before the next begins.
llvm::Value* FunctionEmitter::ImageSlot(std::size_t offset) {
  if (image_lanes_ == nullptr) {
    llvm::IRBuilder<> entry(entry_, entry_->begin());
    llvm::AllocaInst* lanes =
        entry.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), sizeof(TextureLanes)));
    lanes->setAlignment(llvm::Align(64));
    image_lanes_ = lanes;
  }
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), image_lanes_, offset);
}

void FunctionEmitter::PutImageHandles(const Operand& image) {
  b_.CreateAlignedStore(Resize(ReadRegister(image.reg, false), 64, false),
                        ImageSlot(offsetof(TextureLanes, handles)), llvm::Align(64));
}

void FunctionEmitter::PutImageInput(unsigned index, const Operand& operand) {
  const std::size_t offset =
      offsetof(TextureLanes, inputs) + index * sizeof(TextureLanes::inputs[0]);
  // Immediates of coordinates are spelled as 32-bit numbers, 0f ones too.
  const Type type = operand.kind == Operand::Kind::kFloat ? Type::kF32 : Type::kB32;
  b_.CreateAlignedStore(ToInt(ReadVector(operand, type)), ImageSlot(offset), llvm::Align(64));
}

llvm::Value* FunctionEmitter::TakeImageComponent(unsigned index, unsigned bits) {
  const std::size_t offset =
      offsetof(TextureLanes, components) + index * sizeof(TextureLanes::components[0]);
  Value* component =
      b_.CreateAlignedLoad(Lanes(b_.getInt64Ty()), ImageSlot(offset), llvm::Align(64));
  return Resize(component, bits, false);
}

void FunctionEmitter::PutImageComponent(unsigned index, const Operand& operand, Type type) {
  const std::size_t offset =
      offsetof(TextureLanes, components) + index * sizeof(TextureLanes::components[0]);
  Value* component = Resize(ToInt(ReadVector(operand, type)), 64, false);
  b_.CreateAlignedStore(component, ImageSlot(offset), llvm::Align(64));
}

// tex{.level,.grad}.GEOMETRY.v4.TYPE.COORDINATES {r, g, b, a}{|p}, [texture, {...}]{, level}
void FunctionEmitter::EmitTexture(const Instruction& instruction) {
  const auto geometry = GeometryOf(instruction);
  const bool gathers = instruction.opcode == Opcode::kTld4;
  const LevelChoice choice = ChoiceOf(instruction);
  const std::size_t operands = choice == LevelChoice::kBase    ? 2
                               : choice == LevelChoice::kLevel ? 3
                                                               : 4;
  if (!geometry || instruction.types.size() != 2 || instruction.operands.size() != operands ||
      !IsImage(instruction.operands[1], CoordinateCount(*geometry)) ||
      (gathers && *geometry != TextureGeometry::k2d)) {
    return Unsupported(instruction);
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
    return Unsupported(instruction);
  }
  for (std::size_t i = 2; i < operands; ++i) {
    const std::size_t count = choice == LevelChoice::kLevel ? 1 : Dimensions(*geometry);
    if (!HasElements(instruction.operands[i], count)) return Unsupported(instruction);
  }
  const TextureInstruction packed = {.geometry = *geometry,
                                     .choice = choice,
                                     .is_integer = is_integer,
                                     .gathers = gathers,
                                     .component = GatheredComponent(instruction)};
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    const Operand& image = instruction.operands[1];
    PutImageHandles(image);
    unsigned next = 0;
    for (unsigned i = 0; i < CoordinateCount(*geometry); ++i) {
      PutImageInput(next++, image.elements[i]);
    }
    const unsigned extra = choice == LevelChoice::kLevel ? 1 : Dimensions(*geometry);
    for (std::size_t operand = 2; operand < operands; ++operand) {
      for (unsigned i = 0; i < extra; ++i) {
        PutImageInput(next++, Element(instruction.operands[operand], i));
      }
    }
    CallRuntime(offsetof(RuntimeCalls, texture), b_.getVoidTy(),
                {context_, MaskBits(mask), ImageSlot(0),
                 b_.getInt64(std::bit_cast<std::uint64_t>(packed))});
    for (unsigned i = 0; i < kTexelComponents; ++i) {
      Write(instruction, results->elements[i], TakeImageComponent(i, 32), type);
    }
    // Sparse memory is not there: everything is resident.
    if (resident != nullptr) Write(instruction, *resident, AllLanes(), Type::kPred);
  });
}

// suld.b.GEOMETRY{.vec}.TYPE.BOUNDS {...}, [surface, {...}]
// sust.{b,p}.GEOMETRY{.vec}.TYPE.BOUNDS [surface, {...}], {...}
// sured.{b,p}.OPERATION.GEOMETRY.TYPE.BOUNDS [surface, {...}], operand
void FunctionEmitter::EmitSurface(const Instruction& instruction) {
  const auto geometry = GeometryOf(instruction);
  const auto action = ActionOf(instruction);
  const bool loads = instruction.opcode == Opcode::kSuld;
  const bool reduces = instruction.opcode == Opcode::kSured;
  if (!geometry || !action || !IsSurfaceGeometry(*geometry) || instruction.types.size() != 1 ||
      instruction.operands.size() != 2 || (loads && instruction.Has(Modifier::kP))) {
    return Unsupported(instruction);
  }
  const Operand& image = instruction.operands[loads ? 1 : 0];
  const Operand& data = instruction.operands[loads ? 0 : 1];
  const Type type = instruction.type();
  const unsigned count = instruction.vector_width();
  const unsigned bytes = ptx::ByteWidth(type);
  const bool fits = reduces ? (bytes == 4 || bytes == 8) && count == 1
                            : count <= kTexelComponents && bytes <= 8 && bytes * count <= 16;
  if (!IsImage(image, CoordinateCount(*geometry)) || !HasElements(data, count) || !fits ||
      (*action == SurfaceAction::kStoreFormatted && bytes != 4)) {
    return Unsupported(instruction);
  }
  const SurfaceInstruction packed = {.geometry = *geometry,
                                     .bounds = BoundsOf(instruction),
                                     .action = *action,
                                     .element_bytes = static_cast<std::uint8_t>(bytes),
                                     .count = static_cast<std::uint8_t>(count),
                                     .is_signed = ptx::IsSigned(type),
                                     .counts_texels = instruction.Has(Modifier::kP)};
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    PutImageHandles(image);
    for (unsigned i = 0; i < CoordinateCount(*geometry); ++i) {
      PutImageInput(i, image.elements[i]);
    }
    if (!loads) {
      for (unsigned i = 0; i < count; ++i) PutImageComponent(i, Element(data, i), type);
    }
    CallRuntime(offsetof(RuntimeCalls, surface), b_.getVoidTy(),
                {context_, MaskBits(mask), ImageSlot(0),
                 b_.getInt64(std::bit_cast<std::uint64_t>(packed))});
    if (!loads) return;
    for (unsigned i = 0; i < count; ++i) {
      Write(instruction, Element(data, i), TakeImageComponent(i, 8 * bytes), type);
    }
  });
}

// txq.QUERY.b32 d, [texture]; suq.QUERY.b32 d, [surface]
void FunctionEmitter::EmitImageQuery(const Instruction& instruction) {
  const auto query = QueryOf(instruction);
  if (!query || instruction.operands.size() != 2 || instruction.Has(Modifier::kLevel) ||
      !IsImage(instruction.operands[1], 0)) {
    return Unsupported(instruction);
  }
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    PutImageHandles(instruction.operands[1]);
    CallRuntime(
        offsetof(RuntimeCalls, texture_query), b_.getVoidTy(),
        {context_, MaskBits(mask), ImageSlot(0), b_.getInt64(static_cast<std::uint64_t>(*query))});
    Write(instruction, instruction.operands[0], TakeImageComponent(0, 32), Type::kB32);
  });
}

}  // namespace torpor::emulator
