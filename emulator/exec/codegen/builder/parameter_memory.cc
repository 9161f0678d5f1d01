#include "emulator/exec/codegen/builder/parameter_memory.h"

namespace torpor::emulator {

void ParameterMemory::Spill(MemoryAccess& memory, Value* mask) {
  for (const std::uint32_t symbol : source_.function.parameters) {
    if (!source_.layout.local_offsets.contains(symbol)) continue;
    ptx::Operand operand;
    operand.kind = ptx::Operand::Kind::kSymbol;
    operand.symbol = symbol;
    const LaneAddress address = memory.addresses().Of(operand, ptx::Space::kLocal);
    for (std::uint64_t offset = 0; offset < source_.module.variables[symbol].bytes; offset += 4) {
      Value* word = Load(Of(symbol), offset, 4);
      memory.Store(memory.addresses().Advanced(address, offset), {code_->getInt32Ty(), 4, 1},
                   {word}, mask);
    }
  }
}

// The function's own parameters are arguments of the LLVM function, behind context and lanes.
// Variables of call sequences have stack memory.
llvm::Value* ParameterMemory::Of(std::uint32_t symbol) {
  Value*& memory = memory_[symbol];
  if (memory != nullptr) return memory;
  unsigned argument = 2;
  for (const auto* list : {&source_.function.results, &source_.function.parameters}) {
    for (const std::uint32_t own : *list) {
      if (own == symbol && !source_.function.is_kernel) {
        return memory = code_.function().getArg(argument);
      }
      ++argument;
    }
  }
  const std::uint64_t words = (source_.module.variables[symbol].bytes + 3) / 4;
  return memory = code_.Allocate(llvm::ArrayType::get(code_->getInt32Ty(), words * kWarpLanes), 64);
}

llvm::Value* ParameterMemory::WordPointer(Value* memory, std::uint64_t word) {
  return code_->CreateConstInBoundsGEP1_64(code_->getInt32Ty(), memory, word * kWarpLanes);
}

// 8 bytes are two words; 1 and 2 bytes are a field of a word.
llvm::Value* ParameterMemory::Load(Value* memory, std::uint64_t offset, unsigned bytes) {
  llvm::Type* words = Lanes(code_->getInt32Ty());
  const auto word = [&](std::uint64_t index) {
    return code_->CreateAlignedLoad(words, WordPointer(memory, index), llvm::Align(64));
  };
  Value* low = word(offset / 4);
  if (bytes == 8) {
    Value* high = code_.Resize(word(offset / 4 + 1), 64, false);
    return code_->CreateOr(code_.Resize(low, 64, false), code_->CreateShl(high, Like(high, 32)));
  }
  low = code_->CreateLShr(low, Like(low, offset % 4 * 8));
  return code_.Resize(low, 8 * bytes, false);
}

void ParameterMemory::Store(Value* memory, std::uint64_t offset, Value* value, Value* mask) {
  const unsigned bits = Bits(value);
  if (bits == 64) {
    Store(memory, offset, code_.Resize(value, 32, false), mask);
    value = code_->CreateLShr(value, Like(value, 32));
    return Store(memory, offset + 4, code_.Resize(value, 32, false), mask);
  }
  Value* at = WordPointer(memory, offset / 4);
  Value* old = code_->CreateAlignedLoad(Lanes(code_->getInt32Ty()), at, llvm::Align(64));
  if (bits < 32) {
    const auto shift = static_cast<unsigned>(offset % 4 * 8);
    const std::uint64_t field = ((std::uint64_t{1} << bits) - 1) << shift;
    value = code_.Resize(value, 32, false);
    value = code_->CreateShl(value, Like(value, shift));
    value = code_->CreateOr(value, code_->CreateAnd(old, Like(old, ~field)));
  }
  // Lanes may store at different times, so inactive lanes keep old values.
  code_->CreateAlignedStore(code_->CreateSelect(mask, value, old), at, llvm::Align(64));
}

}  // namespace torpor::emulator
