#include "emulator/exec/codegen/directed_rounding.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <numeric>

namespace torpor::emulator {
namespace {

constexpr unsigned kRegisterBits = 512;

// The instruction's rounding operand: the mode, and no exceptions.
std::uint32_t OperandOf(Rounding rounding) {
  switch (rounding) {
    case Rounding::kDown:
      return 0x9;
    case Rounding::kUp:
      return 0xa;
    case Rounding::kZero:
      return 0xb;
    case Rounding::kNearest:
      break;
  }
  return 0x8;
}

// not_intrinsic for operations without an AVX-512 instruction.
llvm::Intrinsic::ID InstructionOf(RoundedOperation operation, bool is_double) {
  using namespace llvm::Intrinsic;  // NOLINT(google-build-using-namespace): long names in a table
  switch (operation) {
    case RoundedOperation::kAdd:
      return is_double ? x86_avx512_add_pd_512 : x86_avx512_add_ps_512;
    case RoundedOperation::kSub:
      return is_double ? x86_avx512_sub_pd_512 : x86_avx512_sub_ps_512;
    case RoundedOperation::kMul:
      return is_double ? x86_avx512_mul_pd_512 : x86_avx512_mul_ps_512;
    case RoundedOperation::kDiv:
      return is_double ? x86_avx512_div_pd_512 : x86_avx512_div_ps_512;
    case RoundedOperation::kFma:
      return is_double ? x86_avx512_vfmadd_pd_512 : x86_avx512_vfmadd_ps_512;
    case RoundedOperation::kSqrt:
      return is_double ? x86_avx512_sqrt_pd_512 : x86_avx512_sqrt_ps_512;
    default:
      return not_intrinsic;
  }
}

}  // namespace

bool DirectedRounding::Has(RoundedOperation operation) {
  return InstructionOf(operation, false) != llvm::Intrinsic::not_intrinsic &&
         __builtin_cpu_supports("avx512f") != 0;
}

llvm::Value* DirectedRounding::Emit(RoundedOperation operation, Rounding rounding,
                                    const std::vector<Value*>& inputs) {
  const bool is_vector = inputs[0]->getType()->isVectorTy();
  std::vector<Value*> vectors;
  vectors.reserve(inputs.size());
  for (Value* input : inputs) vectors.push_back(is_vector ? input : Widen(input));
  const auto* const type = llvm::cast<llvm::FixedVectorType>(vectors[0]->getType());
  const unsigned step = kRegisterBits / type->getScalarSizeInBits();
  std::vector<Value*> results;
  for (unsigned begin = 0; begin < type->getNumElements(); begin += step) {
    std::vector<Value*> registers;
    registers.reserve(vectors.size());
    for (Value* vector : vectors) registers.push_back(Part(vector, begin, step));
    results.push_back(EmitRegister(operation, rounding, registers));
  }
  Value* const joined = Join(std::move(results));
  return is_vector ? joined : b_.CreateExtractElement(joined, std::uint64_t{0});
}

llvm::Value* DirectedRounding::EmitRegister(RoundedOperation operation, Rounding rounding,
                                            const std::vector<Value*>& registers) {
  const bool is_double = registers[0]->getType()->getScalarType()->isDoubleTy();
  std::vector<Value*> arguments = registers;
  arguments.push_back(b_.getInt32(OperandOf(rounding)));
  return b_.CreateIntrinsic(InstructionOf(operation, is_double), {}, arguments);
}

// A vector register with the number in each lane.
llvm::Value* DirectedRounding::Widen(Value* scalar) {
  return b_.CreateVectorSplat(kRegisterBits / scalar->getType()->getScalarSizeInBits(), scalar);
}

llvm::Value* DirectedRounding::Part(Value* vector, unsigned begin, unsigned count) {
  std::vector<int> lanes(count);
  std::iota(lanes.begin(), lanes.end(), static_cast<int>(begin));
  return b_.CreateShuffleVector(vector, lanes);
}

// Joins a power of two of registers to one vector.
llvm::Value* DirectedRounding::Join(std::vector<Value*> parts) {
  while (parts.size() > 1) {
    std::vector<Value*> pairs;
    for (std::size_t i = 0; i < parts.size(); i += 2) {
      const unsigned each =
          llvm::cast<llvm::FixedVectorType>(parts[i]->getType())->getNumElements();
      std::vector<int> lanes(std::size_t{2} * each);
      std::iota(lanes.begin(), lanes.end(), 0);
      pairs.push_back(b_.CreateShuffleVector(parts[i], parts[i + 1], lanes));
    }
    parts = std::move(pairs);
  }
  return parts[0];
}

}  // namespace torpor::emulator
