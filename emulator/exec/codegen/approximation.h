#pragma once

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <initializer_list>

namespace torpor::emulator {

// Code for the special functions of f32, lane-wise and without a call. Arguments are floats or
// vectors of floats. Unless noted, errors, measured over all magnitudes, are a few units of the
// last place: less than the PTX manual allows. NaN stays NaN.
class Approximation {
 public:
  using Value = llvm::Value;

  explicit Approximation(llvm::IRBuilder<>& builder) : b_(builder) {}

  Value* Exp2(Value* x) const;
  Value* Log2(Value* x) const;
  // Absolute error. Beyond 2^20, where a float no longer tells the angle, it is taken for 0.
  Value* Sin(Value* x) const { return Wave(x, 0); }
  Value* Cos(Value* x) const { return Wave(x, 1); }
  Value* Tanh(Value* x) const;

 private:
  Value* Wave(Value* x, std::uint32_t quadrants) const;
  Value* Polynomial(Value* x, std::initializer_list<double> coefficients) const;
  Value* PowerOfTwo(Value* exponent) const;
  Value* Fma(Value* a, Value* b, Value* c) const;
  Value* Real(const Value* like, double number) const;
  Value* Whole(const Value* like, std::uint32_t number) const;
  Value* Bits(Value* x) const;
  Value* FromBits(Value* bits) const;

  llvm::IRBuilder<>& b_;
};

}  // namespace torpor::emulator
