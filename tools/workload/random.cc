#include "tools/workload/random.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace torpor::workload {
namespace {

constexpr double kLn2 = 0.693147180559945309417;
// ln 2 in two parts. The first ends in zeros, so its small multiples are exact.
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kHalfLnTwoPi = 0.918938533204672741780;

// SplitMix64's output function: scatters near arguments.
std::uint64_t Scatter(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// k (>= 0): a product for small k, else Stirling's series, good to 1e-10 from 10 on.
double LogFactorial(double k) {
  if (k < 10) {
    double product = 1;
    for (int i = 2; i <= static_cast<int>(k); ++i) product *= i;
    return PortableLog(product);
  }
  const double x = k + 1;
  const double square = x * x;
  const double tail = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / x;
  return (x - 0.5) * PortableLog(x) - x + kHalfLnTwoPi + tail;
}

}  // namespace

double PortableLog(double x) {
  int exponent = 0;
  double fraction = std::frexp(x, &exponent);  // [0.5, 1)
  if (fraction < 0.707106781186547524) {
    fraction *= 2;
    --exponent;
  }
  // ln f = 2 artanh((f - 1) / (f + 1)); the argument is below 0.172.
  const double s = (fraction - 1) / (fraction + 1);
  const double square = s * s;
  double series = 0;
  for (int power = 21; power >= 3; power -= 2) series = (series + 1.0 / power) * square;
  return exponent * kLn2High + (exponent * kLn2Low + (2 * s * series + 2 * s));
}

double PortableExp(double x) {
  if (x < -745) return 0;  // below the smallest double
  const double power = std::floor(x / kLn2 + 0.5);
  const double rest = (x - power * kLn2High) - power * kLn2Low;
  double series = 1;
  for (int term = 15; term >= 1; --term) series = 1 + series * rest / term;
  return std::ldexp(series, static_cast<int>(power));
}

Random::Random(std::uint64_t seed, Purpose purpose, std::uint64_t index) : state_{} {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;
  std::uint64_t x = Scatter(seed + kGolden);
  x = Scatter(x + static_cast<std::uint64_t>(purpose) * kGolden);
  x = Scatter(x ^ (index + kGolden));
  for (std::uint64_t& word : state_) word = Scatter(x += kGolden);
}

std::uint64_t Random::Next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

double Random::PositiveUniform() { return static_cast<double>((Next() >> 11) + 1) * 0x1p-53; }

std::uint64_t Random::Below(std::uint64_t bound) {
  TORPOR_CHECK(bound > 0);
  // The numbers below 2^64 mod bound would favour small results.
  const std::uint64_t unfair = (0 - bound) % bound;
  std::uint64_t number = Next();
  while (number < unfair) number = Next();
  return number % bound;
}

double Random::Exponential() { return -PortableLog(PositiveUniform()); }

double Random::Normal() {
  // Marsaglia's polar method. Discards the second number, so a stream has no other state.
  while (true) {
    const double x = 2 * Uniform() - 1;
    const double y = 2 * Uniform() - 1;
    const double square = x * x + y * y;
    if (square < 1 && square > 0) return x * std::sqrt(-2 * PortableLog(square) / square);
  }
}

double Random::Gamma(double shape) {
  TORPOR_CHECK(shape > 0);
  if (shape >= 1) return GammaOfLargeShape(shape);
  return GammaOfLargeShape(shape + 1) * PortableExp(PortableLog(PositiveUniform()) / shape);
}

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
double Random::GammaOfLargeShape(double shape) {
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = Normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (PortableLog(PositiveUniform()) < x * x / 2 + d - d * v + d * PortableLog(v)) return d * v;
  }
}

std::int64_t Random::Poisson(double mean) {
  TORPOR_CHECK(mean >= 0 && mean <= 1e9);
  if (mean >= 10) return PoissonOfLargeMean(mean);
  // Count events with exponential gaps within a time of `mean`.
  std::int64_t events = -1;
  double at = 0;
  do {
    at += Exponential();
    ++events;
  } while (at < mean);
  return events;
}

// Hormann, "The transformed rejection method for generating Poisson random variables" (1993).
std::int64_t Random::PoissonOfLargeMean(double mean) {
  const double b = 0.931 + 2.53 * std::sqrt(mean);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double always = 0.9277 - 3.6224 / (b - 2);
  const double log_mean = PortableLog(mean);
  while (true) {
    const double u = Uniform() - 0.5;
    const double v = PositiveUniform();
    const double margin = 0.5 - std::abs(u);
    if (margin <= 0) continue;
    const double k = std::floor((2 * a / margin + b) * u + mean + 0.43);
    if (margin >= 0.07 && v <= always) return static_cast<std::int64_t>(k);
    if (k < 0 || (margin < 0.013 && v > margin)) continue;
    const double accepted = k * log_mean - mean - LogFactorial(k);
    if (PortableLog(v * inverse_alpha / (a / (margin * margin) + b)) <= accepted) {
      return static_cast<std::int64_t>(k);
    }
  }
}

}  // namespace torpor::workload
