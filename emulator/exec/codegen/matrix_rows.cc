// ldmatrix, stmatrix and movmatrix. Lane l of a register holds the two elements at columns
// 2 * (l % 4) and 2 * (l % 4) + 1 of row l / 4: the 32 lanes are the matrix row by row.
#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using ptx::Opcode;

namespace {

constexpr unsigned kRows = 8;
constexpr unsigned kRowBytes = 16;
constexpr unsigned kRowLanes = kRowBytes / 4;

}  // namespace

llvm::Value* FunctionEmitter::TransposeHalves(Value* matrix) {
  std::vector<int> indices;
  for (unsigned i = 0; i < kRows * kRows; ++i) {
    indices.push_back(static_cast<int>(i % kRows * kRows + i / kRows));
  }
  Value* halves =
      b_.CreateBitCast(matrix, llvm::FixedVectorType::get(b_.getInt16Ty(), kRows * kRows));
  return b_.CreateBitCast(b_.CreateShuffleVector(halves, indices), Lanes(b_.getInt32Ty()));
}

// Where the words of matrix `index` are, of which each lane holds one: the addresses of its rows
// are those of lanes 8 * index to 8 * index + 7. `mask` becomes the lanes whose row is given.
FunctionEmitter::Address FunctionEmitter::MatrixWords(const Address& rows, unsigned index,
                                                      Value*& mask) {
  llvm::Type* number = rows.value->getType()->getScalarType();
  std::vector<int> suppliers;
  std::vector<llvm::Constant*> steps;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    suppliers.push_back(static_cast<int>(index * kRows + lane / kRowLanes));
    steps.push_back(llvm::ConstantInt::get(number, lane % kRowLanes * std::uint64_t{4}));
  }
  mask = b_.CreateShuffleVector(mask, suppliers);
  Address words = rows;
  words.value =
      b_.CreateAdd(b_.CreateShuffleVector(rows.value, suppliers), llvm::ConstantVector::get(steps));
  return words;
}

// ldmatrix {registers}, [row address of each lane]; stmatrix [row address], {registers}
void FunctionEmitter::EmitMatrixRows(const Instruction& instruction) {
  const bool load = instruction.opcode == Opcode::kLdmatrix;
  const auto& operands = instruction.operands;
  const unsigned count = instruction.Has(Modifier::kX4)   ? 4
                         : instruction.Has(Modifier::kX2) ? 2
                                                          : 1;
  const bool plain = operands.size() == 2 && instruction.Has(Modifier::kM8n8) &&
                     instruction.type() == Type::kB16 &&
                     operands[load ? 1 : 0].kind == Operand::Kind::kAddress;
  if (!plain) return Unsupported(instruction);
  const Operand& place = operands[load ? 1 : 0];
  const std::vector<Operand> registers = RegistersOf(operands[load ? 0 : 1]);
  if (registers.size() != count) return Unsupported(instruction, "operands");
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    Address rows = AddressOf(place, SpaceOf(instruction, place));
    if (rows.value == nullptr) return;
    rows.value = LaneAddresses(rows);
    rows.shape = ptx::LaneShape::Varying();
    Value* used = b_.CreateAnd(mask, BitsToMask(b_.getInt32(0xffffffffU >> (32 - kRows * count))));
    CheckAccess(rows, kRowBytes, used);
    for (unsigned i = 0; i < count; ++i) MoveMatrix(instruction, rows, i, registers[i], used);
  });
}

// Between memory and a register.
void FunctionEmitter::MoveMatrix(const Instruction& instruction, const Address& rows,
                                 unsigned index, const Operand& reg, Value* mask) {
  const Address words = MatrixWords(rows, index, mask);
  const Access access{b_.getInt32Ty(), 4, 1};
  const auto turned = [&](Value* matrix) {
    return instruction.Has(Modifier::kTrans) ? TransposeHalves(matrix) : matrix;
  };
  if (instruction.opcode == Opcode::kLdmatrix) {
    return Write(instruction, reg, turned(Load(words, access, mask)[0]), Type::kB32);
  }
  Store(words, access, {turned(ReadVector(reg, Type::kB32))}, mask);
}

void FunctionEmitter::EmitMatrixTranspose(const Instruction& instruction) {
  const bool plain = instruction.operands.size() == 2 && instruction.Has(Modifier::kM8n8) &&
                     instruction.Has(Modifier::kTrans) && instruction.type() == Type::kB16;
  if (!plain) return Unsupported(instruction);
  Value* matrix = ReadVector(instruction.operands[1], Type::kB32);
  Write(instruction, instruction.operands[0], TransposeHalves(matrix), Type::kB32);
}

}  // namespace torpor::emulator
