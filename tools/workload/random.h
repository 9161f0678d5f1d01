#pragma once

#include <array>
#include <cstdint>

namespace torpor::workload {

// Random numbers equal on every machine, compiler and library for the same seed
// (docs/decisions/0022). The generator is xoshiro256** (seeded by SplitMix64). Sampling uses IEEE
// arithmetic and the logarithm and exponential below, without libm. Not thread-safe.
class Random {
 public:
  // The use of a stream of numbers. Streams of a seed are independent of each other.
  enum class Purpose : std::uint64_t { kArrivals = 1, kRows = 2, kRates = 3 };

  Random(std::uint64_t seed, Purpose purpose, std::uint64_t index = 0);
  explicit Random(const std::array<std::uint64_t, 4>& state) : state_(state) {}  // not all zero

  std::uint64_t Next();                      // 64 random bits
  double Uniform();                          // [0, 1)
  std::uint64_t Below(std::uint64_t bound);  // [0, bound), bound > 0
  double Exponential();                      // mean 1
  double Normal();                           // mean 0, deviation 1
  double Gamma(double shape);                // scale 1: mean and variance are `shape` (> 0)
  std::int64_t Poisson(double mean);         // [0, 1e9]

 private:
  double PositiveUniform();  // (0, 1]
  double GammaOfLargeShape(double shape);
  std::int64_t PoissonOfLargeMean(double mean);

  std::array<std::uint64_t, 4> state_;
};

// Logarithm and exponential with a relative error of about 1e-15. `x` is finite, and positive for
// the logarithm.
double PortableLog(double x);
double PortableExp(double x);

}  // namespace torpor::workload
