#include "emulator/exec/codegen/builder/texture_call_builder.h"

#include <cstddef>

namespace torpor::emulator {

using ptx::Operand;
using ptx::Type;

llvm::Value* TextureCallBuilder::Slot(std::size_t offset) {
  if (lanes_ == nullptr) {
    lanes_ = code_.Allocate(llvm::ArrayType::get(code_->getInt8Ty(), sizeof(TextureLanes)), 64);
  }
  return code_->CreateConstInBoundsGEP1_64(code_->getInt8Ty(), lanes_, offset);
}

void TextureCallBuilder::PutHandles(const Operand& object) {
  code_->CreateAlignedStore(code_.Resize(operands_.registers().Read(object.reg, false), 64, false),
                            Slot(offsetof(TextureLanes, handles)), llvm::Align(64));
}

void TextureCallBuilder::PutInput(unsigned index, const Operand& operand) {
  const std::size_t offset =
      offsetof(TextureLanes, inputs) + index * sizeof(TextureLanes::inputs[0]);
  // Immediates of coordinates are spelled as 32-bit numbers, 0f ones too.
  const Type type = operand.kind == Operand::Kind::kFloat ? Type::kF32 : Type::kB32;
  code_->CreateAlignedStore(code_.ToInt(operands_.ReadVector(operand, type)), Slot(offset),
                            llvm::Align(64));
}

void TextureCallBuilder::PutComponent(unsigned index, const Operand& operand, Type type) {
  const std::size_t offset =
      offsetof(TextureLanes, components) + index * sizeof(TextureLanes::components[0]);
  Value* component = code_.Resize(code_.ToInt(operands_.ReadVector(operand, type)), 64, false);
  code_->CreateAlignedStore(component, Slot(offset), llvm::Align(64));
}

void TextureCallBuilder::Call(std::size_t call, std::uint64_t instruction, Value* mask) {
  context_.Call(call, code_->getVoidTy(),
                {context_.pointer(), code_.MaskBits(mask), Slot(0), code_->getInt64(instruction)});
}

llvm::Value* TextureCallBuilder::TakeComponent(unsigned index, unsigned bits) {
  const std::size_t offset =
      offsetof(TextureLanes, components) + index * sizeof(TextureLanes::components[0]);
  Value* component =
      code_->CreateAlignedLoad(Lanes(code_->getInt64Ty()), Slot(offset), llvm::Align(64));
  return code_.Resize(component, bits, false);
}

}  // namespace torpor::emulator
