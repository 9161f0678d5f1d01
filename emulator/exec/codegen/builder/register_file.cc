#include "emulator/exec/codegen/builder/register_file.h"

namespace torpor::emulator {

RegisterFile::RegisterFile(LaneBuilder& code, const FunctionSource& source)
    : code_(code), source_(source) {
  std::vector<Value*> fragments;
  for (const auto& slot : source_.fragments.slots) {
    fragments.push_back(code_.VectorArray(slot.bits, slot.registers));
  }
  for (std::uint32_t reg = 0; reg < source_.function.registers.size(); ++reg) {
    const unsigned bits = ptx::BitWidth(source_.function.registers[reg]);
    const auto& place = source_.fragments.places[reg];
    if (place.slot != ptx::kNoIndex) {
      slots_.push_back(code_.VectorAt(fragments[place.slot], bits, place.index));
      continue;
    }
    llvm::Type* type = code_.IntType(bits);
    slots_.push_back(code_->CreateAlloca(source_.lanes.shape(reg).linear() ? type : Lanes(type)));
  }
}

llvm::Value* RegisterFile::Read(std::uint32_t reg, bool scalar) {
  Value* slot = slots_[reg];
  const ptx::LaneShape& shape = source_.lanes.shape(reg);
  llvm::Type* type = code_.IntType(ptx::BitWidth(source_.function.registers[reg]));
  if (shape.linear()) {
    Value* value = code_->CreateLoad(type, slot);
    return scalar ? value : code_.Spread(value, shape.stride, shape.row_stride);
  }
  Value* value = code_->CreateLoad(Lanes(type), slot);
  return scalar ? code_->CreateExtractElement(value, std::uint64_t{0}) : value;
}

}  // namespace torpor::emulator
