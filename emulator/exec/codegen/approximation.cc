// The polynomials are least-maximum fits, computed in double precision; each comment gives the
// error of the fit. Adding 1.5 * 2^23 to a number below 2^22 rounds to an integer in the low bits,
// without a conversion, undefined for NaN.
#include "emulator/exec/codegen/approximation.h"

#include <limits>

namespace torpor::emulator {
namespace {

constexpr double kRoundingMagic = 0x1.8p23;
constexpr std::uint32_t kRoundingMagicBits = 0x4b400000;
constexpr unsigned kMantissaBits = 23;
constexpr std::uint32_t kExponentBias = 127;

llvm::Type* WithElements(llvm::Type* shape, llvm::Type* element) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape);
  return vector == nullptr ? element
                           : llvm::FixedVectorType::get(element, vector->getNumElements());
}

}  // namespace

llvm::Value* Approximation::Real(const Value* like, double number) const {
  return llvm::ConstantFP::get(WithElements(like->getType(), b_.getFloatTy()), number);
}

llvm::Value* Approximation::Whole(const Value* like, std::uint32_t number) const {
  return llvm::ConstantInt::get(WithElements(like->getType(), b_.getInt32Ty()), number);
}

llvm::Value* Approximation::Bits(Value* x) const {
  return b_.CreateBitCast(x, WithElements(x->getType(), b_.getInt32Ty()));
}

llvm::Value* Approximation::FromBits(Value* bits) const {
  return b_.CreateBitCast(bits, WithElements(bits->getType(), b_.getFloatTy()));
}

llvm::Value* Approximation::Fma(Value* a, Value* b, Value* c) const {
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

// The constant coefficient comes first.
llvm::Value* Approximation::Polynomial(Value* x, std::initializer_list<double> coefficients) const {
  Value* sum = nullptr;
  for (auto it = std::rbegin(coefficients); it != std::rend(coefficients); ++it) {
    Value* coefficient = Real(x, *it);
    sum = sum == nullptr ? coefficient : Fma(sum, x, coefficient);
  }
  return sum;
}

llvm::Value* Approximation::PowerOfTwo(Value* exponent) const {
  Value* biased = b_.CreateAdd(exponent, Whole(exponent, kExponentBias));
  return FromBits(b_.CreateShl(biased, Whole(biased, kMantissaBits)));
}

// 2^x = 2^n * 2^f with n the nearest integer: a polynomial for 2^f, and n in the exponent bits.
llvm::Value* Approximation::Exp2(Value* x) const {
  // Beyond the limits the result is 0 or infinite anyway.
  constexpr double kLimit = 200;
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, Real(x, kLimit)), Real(x, kLimit), x);
  x = b_.CreateSelect(b_.CreateFCmpOLT(x, Real(x, -kLimit)), Real(x, -kLimit), x);
  Value* rounded = b_.CreateFAdd(x, Real(x, kRoundingMagic));
  Value* exponent = b_.CreateSub(Bits(rounded), Whole(x, kRoundingMagicBits));
  Value* fraction = b_.CreateFSub(x, b_.CreateFSub(rounded, Real(x, kRoundingMagic)));
  // (2^f - 1) / f on [-1/2, 1/2], 2^-28.9 of 2^f
  Value* slope =
      Polynomial(fraction, {0.6931472028809907, 0.24022647910287598, 0.05550332409575936,
                            0.009618437605986496, 0.0013398900207524827, 0.00015353341134869683});
  Value* power = Fma(fraction, slope, Real(x, 1));
  // In two steps, since neither the least nor the greatest result has a power of two of its own.
  Value* half = b_.CreateAShr(exponent, Whole(x, 1));
  power = b_.CreateFMul(power, PowerOfTwo(half));
  return b_.CreateFMul(power, PowerOfTwo(b_.CreateSub(exponent, half)));
}

// log2(m * 2^e) = e + log2(m), with a polynomial for log2(m). Scales subnormals first; handles 0,
// negative numbers and infinity at the end.
llvm::Value* Approximation::Log2(Value* x) const {
  constexpr std::uint32_t kHalfRootOfTwo = 0x3f3504f3;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Value* tiny = b_.CreateFCmpOLT(x, Real(x, 0x1p-126));
  Value* normal = b_.CreateSelect(tiny, b_.CreateFMul(x, Real(x, 0x1p23)), x);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)]
  Value* bits = Bits(normal);
  Value* exponent =
      b_.CreateAShr(b_.CreateSub(bits, Whole(bits, kHalfRootOfTwo)), Whole(bits, kMantissaBits));
  Value* mantissa =
      FromBits(b_.CreateSub(bits, b_.CreateShl(exponent, Whole(bits, kMantissaBits))));
  Value* whole = b_.CreateSIToFP(exponent, x->getType());
  whole = b_.CreateSelect(tiny, b_.CreateFSub(whole, Real(x, kMantissaBits)), whole);
  Value* above_one = b_.CreateFSub(mantissa, Real(x, 1));
  // log2(1 + f) / f, 2^-24.6
  Value* slope =
      Polynomial(above_one, {1.4426950048451312, -0.7213471997966632, 0.48091029132861635,
                             -0.3607162122970135, 0.2879385991869487, -0.238676894916127,
                             0.2152192924271658, -0.20892616579745496, 0.1292317046332469});
  Value* result = Fma(above_one, slope, whole);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, Real(x, kInfinity)), x, result);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, Real(x, 0)), Real(x, -kInfinity), result);
  return b_.CreateSelect(b_.CreateFCmpULT(x, Real(x, 0)),
                         Real(x, std::numeric_limits<double>::quiet_NaN()), result);
}

// The sine of x plus so many right angles.
llvm::Value* Approximation::Wave(Value* x, std::uint32_t quadrants) const {
  // The products keep infinity's NaN.
  Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  x = b_.CreateSelect(b_.CreateFCmpOLE(magnitude, Real(x, 0x1p20)), x,
                      b_.CreateFMul(x, Real(x, 0)));
  constexpr double kTwoByPi = 0.63661977236758134;
  Value* rounded = Fma(x, Real(x, kTwoByPi), Real(x, kRoundingMagic));
  Value* turns = b_.CreateFSub(rounded, Real(x, kRoundingMagic));
  // x minus turns * pi/2, with pi/2 as the sum of three floats
  Value* angle = Fma(turns, Real(x, -0x1.921fb6p+0), x);
  angle = Fma(turns, Real(x, 0x1.777a5cp-25), angle);
  angle = Fma(turns, Real(x, 0x1.ee59dap-50), angle);
  Value* square = b_.CreateFMul(angle, angle);
  // (sin(r) - r) / r^3 on [-pi/4, pi/4], 2^-28 of sin(r)
  Value* bend =
      Polynomial(square, {-0.16666654908635262, 0.008332175846488996, -0.00019516977487742617});
  Value* sine = Fma(b_.CreateFMul(angle, square), bend, angle);
  // (cos(r) - 1 + r^2 / 2) / r^4, 2^-33
  bend = Polynomial(square, {0.04166664680717819, -0.0013887364485007034, 2.443809091170348e-05});
  Value* cosine = Fma(b_.CreateFMul(square, square), bend, Fma(square, Real(x, -0.5), Real(x, 1)));
  Value* quadrant = b_.CreateAdd(Bits(rounded), Whole(x, quadrants));
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(quadrant, Whole(x, 1)), Whole(x, 0));
  Value* sign = b_.CreateShl(b_.CreateAnd(quadrant, Whole(x, 2)), Whole(x, 30));
  return FromBits(b_.CreateXor(Bits(b_.CreateSelect(odd, cosine, sine)), sign));
}

// A polynomial for small magnitudes, Exp2 for large ones, and the sign of x.
llvm::Value* Approximation::Tanh(Value* x) const {
  constexpr double kTwoLog2E = 2.8853900817779268;
  Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* square = b_.CreateFMul(magnitude, magnitude);
  // (tanh(r) - r) / r^3 below 0.626, 2^-27.8 of tanh(r)
  Value* bend = Polynomial(square, {-0.3333328320311476, 0.13331470171947696, -0.05374162280725685,
                                    0.020644136194191486, -0.005709497402933694});
  Value* small = Fma(b_.CreateFMul(magnitude, square), bend, magnitude);
  // 1 - 2 / (e^2r + 1)
  Value* power = Exp2(b_.CreateFMul(magnitude, Real(x, kTwoLog2E)));
  Value* rest = b_.CreateFDiv(Real(x, 2), b_.CreateFAdd(power, Real(x, 1)));
  Value* large = b_.CreateFSub(Real(x, 1), rest);
  Value* result = b_.CreateSelect(b_.CreateFCmpOLT(magnitude, Real(x, 0.625)), small, large);
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, x);
}

}  // namespace torpor::emulator
