// Parameters of kernels, and those of calls: words of 32 lanes, so that a call that is inlined
// leaves nothing of them.
#include <algorithm>
#include <cstddef>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

void FunctionEmitter::EmitKernelParameterLoad(const Instruction& instruction) {
  const Operand& source = instruction.operands[1];
  const Operand& destination = instruction.operands[0];
  const ptx::Variable& variable = module_.variables[source.symbol];
  const Type type = instruction.type();
  const unsigned bytes = ptx::ByteWidth(type);
  const unsigned count = instruction.vector_width();
  const bool fits = bytes <= 8 && source.bits <= variable.bytes &&
                    source.bits + std::uint64_t{bytes} * count <= variable.bytes &&
                    (count == 1 || destination.elements.size() == count);
  if (!fits) return Unsupported(instruction, "outside the parameter");
  Value* base = ContextField(offsetof(WarpContext, parameters), b_.getPtrTy());
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t offset = variable.parameter_offset + source.bits + std::uint64_t{i} * bytes;
    Value* at = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, offset);
    llvm::LoadInst* load = b_.CreateAlignedLoad(IntType(8 * bytes), at, llvm::Align(1));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
    Write(instruction, count == 1 ? destination : destination.elements[i], load, type);
  }
}

// A parameter whose address is taken has a place in local memory, too. Nobody may write to it.
void FunctionEmitter::SpillParameters() {
  mask_ = b_.CreateLoad(Lanes(b_.getInt1Ty()), mask_slots_[0]);
  for (const std::uint32_t symbol : function_.parameters) {
    if (!unit_.layout().local_offsets.contains(symbol)) continue;
    Operand operand;
    operand.kind = Operand::Kind::kSymbol;
    operand.symbol = symbol;
    const Address address = AddressOf(operand, ptx::Space::kLocal);
    for (std::uint64_t offset = 0; offset < module_.variables[symbol].bytes; offset += 4) {
      Value* word = LoadParameter(ParameterMemory(symbol), offset, 4);
      Store(Advanced(address, offset), {b_.getInt32Ty(), 4, 1}, {word}, mask_);
    }
  }
}

llvm::Value* FunctionEmitter::ParameterMemory(std::uint32_t symbol) {
  Value*& memory = parameter_memory_[symbol];
  if (memory != nullptr) return memory;
  unsigned argument = 2;
  for (const auto* list : {&function_.results, &function_.parameters}) {
    for (const std::uint32_t own : *list) {
      if (own == symbol && !function_.is_kernel) return memory = target_->getArg(argument);
      ++argument;
    }
  }
  const std::uint64_t words = (module_.variables[symbol].bytes + 3) / 4;
  llvm::IRBuilder<> entry(entry_, entry_->begin());
  llvm::AllocaInst* array =
      entry.CreateAlloca(llvm::ArrayType::get(b_.getInt32Ty(), words * kWarpLanes));
  array->setAlignment(llvm::Align(64));
  return memory = array;
}

llvm::Value* FunctionEmitter::WordPointer(Value* memory, std::uint64_t word) {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt32Ty(), memory, word * kWarpLanes);
}

llvm::Value* FunctionEmitter::LoadParameter(Value* memory, std::uint64_t offset, unsigned bytes) {
  llvm::Type* words = Lanes(b_.getInt32Ty());
  const auto word = [&](std::uint64_t index) {
    return b_.CreateAlignedLoad(words, WordPointer(memory, index), llvm::Align(64));
  };
  Value* low = word(offset / 4);
  if (bytes == 8) {
    Value* high = Resize(word(offset / 4 + 1), 64, false);
    return b_.CreateOr(Resize(low, 64, false), b_.CreateShl(high, Like(high, 32)));
  }
  low = b_.CreateLShr(low, Like(low, offset % 4 * 8));
  return Resize(low, 8 * bytes, false);
}

void FunctionEmitter::StoreParameter(Value* memory, std::uint64_t offset, Value* value,
                                     Value* mask) {
  const unsigned bits = Bits(value);
  if (bits == 64) {
    StoreParameter(memory, offset, Resize(value, 32, false), mask);
    value = b_.CreateLShr(value, Like(value, 32));
    return StoreParameter(memory, offset + 4, Resize(value, 32, false), mask);
  }
  Value* at = WordPointer(memory, offset / 4);
  Value* old = b_.CreateAlignedLoad(Lanes(b_.getInt32Ty()), at, llvm::Align(64));
  if (bits < 32) {
    const auto shift = static_cast<unsigned>(offset % 4 * 8);
    const std::uint64_t field = ((std::uint64_t{1} << bits) - 1) << shift;
    value = Resize(value, 32, false);
    value = b_.CreateShl(value, Like(value, shift));
    value = b_.CreateOr(value, b_.CreateAnd(old, Like(old, ~field)));
  }
  // Lanes come by one after the other: those that left their value keep it.
  b_.CreateAlignedStore(b_.CreateSelect(mask, value, old), at, llvm::Align(64));
}

void FunctionEmitter::EmitParameterLoad(const Instruction& instruction) {
  const Operand& source = instruction.operands[1];
  const Operand& destination = instruction.operands[0];
  const Type type = instruction.type();
  const unsigned bytes = ptx::ByteWidth(type);
  const unsigned count = instruction.vector_width();
  const std::uint64_t size = module_.variables[source.symbol].bytes;
  const bool fits = bytes <= 8 && source.bits % std::min(bytes, 4U) == 0 && source.bits <= size &&
                    source.bits + std::uint64_t{bytes} * count <= size &&
                    (count == 1 || destination.elements.size() == count);
  if (!fits) return Unsupported(instruction, "outside the parameter");
  Value* memory = ParameterMemory(source.symbol);
  for (unsigned i = 0; i < count; ++i) {
    Value* value = LoadParameter(memory, source.bits + std::uint64_t{i} * bytes, bytes);
    Write(instruction, count == 1 ? destination : destination.elements[i], value, type);
  }
}

void FunctionEmitter::EmitParameterStore(const Instruction& instruction) {
  const Operand& target = instruction.operands[0];
  const Operand& source = instruction.operands[1];
  const Type type = instruction.type();
  const unsigned bytes = ptx::ByteWidth(type);
  const unsigned count = instruction.vector_width();
  if (target.symbol == ptx::kNoIndex) return Unsupported(instruction, "computed address");
  const std::uint64_t size = module_.variables[target.symbol].bytes;
  const bool fits = bytes <= 8 && target.bits % std::min(bytes, 4U) == 0 && target.bits <= size &&
                    target.bits + std::uint64_t{bytes} * count <= size &&
                    (count == 1 || source.elements.size() == count);
  if (!fits) return Unsupported(instruction, "outside the parameter");
  Value* memory = ParameterMemory(target.symbol);
  Value* mask = ActiveMask(instruction);
  for (unsigned i = 0; i < count; ++i) {
    Value* value = ToInt(ReadVector(count == 1 ? source : source.elements[i], type));
    StoreParameter(memory, target.bits + std::uint64_t{i} * bytes, value, mask);
  }
}

}  // namespace torpor::emulator
