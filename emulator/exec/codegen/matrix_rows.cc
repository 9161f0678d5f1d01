// ldmatrix, stmatrix and movmatrix. Lane l of a register holds the two elements at columns
// 2 * (l % 4) and 2 * (l % 4) + 1 of row l / 4: the 32 lanes are the matrix row by row.
#include "emulator/exec/codegen/builder/fragment_memory.h"
#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

constexpr unsigned kRows = 8;
constexpr unsigned kRowBytes = 16;
constexpr unsigned kRowLanes = kRowBytes / 4;

Value* TransposeHalves(LaneBuilder& code, Value* matrix) {
  std::vector<int> indices;
  for (unsigned i = 0; i < kRows * kRows; ++i) {
    indices.push_back(static_cast<int>(i % kRows * kRows + i / kRows));
  }
  Value* halves =
      code->CreateBitCast(matrix, llvm::FixedVectorType::get(code->getInt16Ty(), kRows * kRows));
  return code->CreateBitCast(code->CreateShuffleVector(halves, indices), Lanes(code->getInt32Ty()));
}

// Addresses of the words of matrix `index`, a word for each lane. Lanes 8 * index to 8 * index + 7
// give the addresses of the matrix's rows. Reduces `mask` to lanes with a given row.
LaneAddress MatrixWords(LaneBuilder& code, const LaneAddress& rows, unsigned index, Value*& mask) {
  llvm::Type* number = rows.value->getType()->getScalarType();
  std::vector<int> suppliers;
  std::vector<llvm::Constant*> steps;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    suppliers.push_back(static_cast<int>(index * kRows + lane / kRowLanes));
    steps.push_back(llvm::ConstantInt::get(number, lane % kRowLanes * std::uint64_t{4}));
  }
  mask = code->CreateShuffleVector(mask, suppliers);
  LaneAddress words = rows;
  words.value = code->CreateAdd(code->CreateShuffleVector(rows.value, suppliers),
                                llvm::ConstantVector::get(steps));
  return words;
}

// Between memory and a register.
void MoveMatrix(OperandBuilder& to, MemoryAccess& memory, const Instruction& instruction,
                const LaneAddress& rows, unsigned index, const Operand& reg, Value* mask) {
  LaneBuilder& code = to.code();
  const LaneAddress words = MatrixWords(code, rows, index, mask);
  const Access access{code->getInt32Ty(), 4, 1};
  const auto turned = [&](Value* matrix) {
    return instruction.Has(Modifier::kTrans) ? TransposeHalves(code, matrix) : matrix;
  };
  if (instruction.opcode == Opcode::kLdmatrix) {
    return to.Write(instruction, reg, turned(memory.Load(words, access, mask)[0]), Type::kB32);
  }
  memory.Store(words, access, {turned(to.ReadVector(reg, Type::kB32))}, mask);
}

}  // namespace

// ldmatrix {registers}, [row address of each lane]; stmatrix [row address], {registers}
void EmitMatrixRows(OperandBuilder& to, MemoryAccess& memory, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const bool load = instruction.opcode == Opcode::kLdmatrix;
  const auto& operands = instruction.operands;
  const unsigned count = instruction.Has(Modifier::kX4)   ? 4
                         : instruction.Has(Modifier::kX2) ? 2
                                                          : 1;
  const bool plain = operands.size() == 2 && instruction.Has(Modifier::kM8n8) &&
                     instruction.type() == Type::kB16 &&
                     operands[load ? 1 : 0].kind == Operand::Kind::kAddress;
  if (!plain) return to.Unsupported(instruction);
  const Operand& place = operands[load ? 1 : 0];
  const std::vector<Operand> registers = RegistersOf(operands[load ? 0 : 1]);
  if (registers.size() != count) return to.Unsupported(instruction, "operands");
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    LaneAddress rows = memory.addresses().Of(place, memory.addresses().SpaceOf(instruction, place));
    if (rows.value == nullptr) return;
    rows.value = memory.addresses().LaneAddresses(rows);
    rows.shape = ptx::LaneShape::Varying();
    Value* used =
        code->CreateAnd(mask, code.BitsToMask(code->getInt32(0xffffffffU >> (32 - kRows * count))));
    memory.check().Check(rows, kRowBytes, used);
    for (unsigned i = 0; i < count; ++i) {
      MoveMatrix(to, memory, instruction, rows, i, registers[i], used);
    }
  });
}

void EmitMatrixTranspose(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const bool plain = instruction.operands.size() == 2 && instruction.Has(Modifier::kM8n8) &&
                     instruction.Has(Modifier::kTrans) && instruction.type() == Type::kB16;
  if (!plain) return to.Unsupported(instruction);
  Value* matrix = to.ReadVector(instruction.operands[1], Type::kB32);
  to.Write(instruction, instruction.operands[0], TransposeHalves(code, matrix), Type::kB32);
}

}  // namespace torpor::emulator
