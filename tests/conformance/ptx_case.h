#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/conformance/lane_types.h"

// A piece of PTX that every lane of a warp runs, and an independent model of what it gives.
namespace torpor::conformance {

constexpr int kWarpLanes = 32;
constexpr int kBlockWarps = 4;
constexpr int kOperands = 3;

// What one lane gets: the bits of A, B and C.
using Operands = std::array<Word, kOperands>;

struct Warp {
  std::array<Operands, kWarpLanes> lanes;
};
using WarpResults = std::array<Word, kWarpLanes>;

// How a result may differ from the model's. Not-a-numbers are all alike.
struct Tolerance {
  double relative = 0;
  double absolute = 0;  // one of both must hold
};

enum class Compare { kBits, kFloat, kDouble, kHalf, kHalf2, kHalf4, kBfloat, kBfloat2 };

struct PtxCase {
  std::string family;  // of the instructions, as docs/emulator.md names them
  // May use, besides A, B, C and D: predicates P and Q; T0 to T3 of 32 bits, X0 to X3 of 64 and H0
  // to H3 of 16; LANE and THREAD, the numbers of the lane and of the thread in its block; GA, SA
  // and LA, generic addresses of 64 bytes of the thread's own in global, shared and local memory,
  // and GG, SS and LL, the same as addresses of those spaces (SS of 32 bits); WS, an address in
  // shared memory of 2 KiB of the warp's own; K, 64 bytes of constants.
  std::string text;
  int result_bits = 32;
  std::array<int, kOperands> operand_bits{};  // 16, 32 or 64; 0: there is none
  Compare compare = Compare::kBits;
  Tolerance tolerance;
  std::function<void(std::mt19937_64&, Operands&)> draw;
  std::function<void(const Warp&, WarpResults&)> model;
  std::string declarations;  // before the kernel: functions and variables
};

// The constants at K: byte i is (37 * i + 11) mod 256.
constexpr std::uint8_t ConstantByte(std::size_t i) {
  return static_cast<std::uint8_t>(37 * i + 11);
}

// One operand of that type: what programs use, what is rare, and what breaks things.
template <typename T>
T Draw(std::mt19937_64& random);

template <typename T>
constexpr Compare CompareOf() {
  if constexpr (std::is_same_v<T, float>) return Compare::kFloat;
  if constexpr (std::is_same_v<T, double>) return Compare::kDouble;
  if constexpr (std::is_same_v<T, Half>) return Compare::kHalf;
  if constexpr (std::is_same_v<T, Half2>) return Compare::kHalf2;
  if constexpr (std::is_same_v<T, Bfloat>) return Compare::kBfloat;
  if constexpr (std::is_same_v<T, Bfloat2>) return Compare::kBfloat2;
  return Compare::kBits;
}

template <typename R, typename... As>
PtxCase CaseOf(std::string family, std::string text) {
  PtxCase made;
  made.family = std::move(family);
  made.text = std::move(text);
  made.result_bits = 8 * static_cast<int>(sizeof(R));
  made.compare = CompareOf<R>();
  std::size_t operand = 0;
  ((made.operand_bits[operand++] = 8 * static_cast<int>(sizeof(As))), ...);
  made.draw = [](std::mt19937_64& random, Operands& operands) {
    std::size_t i = 0;
    ((operands[i++] = ToWord(Draw<As>(random))), ...);
  };
  return made;
}

template <typename R, typename... As, std::size_t... I>
R CallWith(R (*model)(As...), const Operands& operands, std::index_sequence<I...>) {
  return model(FromWord<As>(operands[I])...);
}

// Each lane by itself: the operands' and the result's types are those of `model`.
template <typename R, typename... As>
PtxCase Each(std::string family, std::string text, R (*model)(As...)) {
  PtxCase made = CaseOf<R, As...>(std::move(family), std::move(text));
  made.model = [model](const Warp& warp, WarpResults& results) {
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane)
      results[lane] = ToWord(CallWith(model, warp.lanes[lane], std::index_sequence_for<As...>()));
  };
  return made;
}

// Operand number `operand` of every lane.
template <typename T>
std::array<T, kWarpLanes> OfLanes(const Warp& warp, std::size_t operand) {
  std::array<T, kWarpLanes> values;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane)
    values[lane] = FromWord<T>(warp.lanes[lane][operand]);
  return values;
}

// Lanes that see each other: `model(lane, as)` with one operand, of all lanes, or two.
template <typename R, typename A>
PtxCase Together(std::string family, std::string text,
                 R (*model)(int lane, const std::array<A, kWarpLanes>& a)) {
  PtxCase made = CaseOf<R, A>(std::move(family), std::move(text));
  made.model = [model](const Warp& warp, WarpResults& results) {
    const auto a = OfLanes<A>(warp, 0);
    for (int lane = 0; lane < kWarpLanes; ++lane)
      results[static_cast<std::size_t>(lane)] = ToWord(model(lane, a));
  };
  return made;
}

// The same case with a tolerance, with other operands, or with declarations before the kernel.
PtxCase Within(Tolerance tolerance, PtxCase made);
PtxCase Drawn(std::function<void(std::mt19937_64&, Operands&)> draw, PtxCase made);
PtxCase Declaring(std::string declarations, PtxCase made);

// The cases of one subject a file.
std::vector<PtxCase> IntegerCases();
std::vector<PtxCase> BitCases();
std::vector<PtxCase> ComparisonCases();
std::vector<PtxCase> FloatCases();
std::vector<PtxCase> ApproximationCases();
std::vector<PtxCase> HalfCases();
std::vector<PtxCase> ConversionCases();
std::vector<PtxCase> MemoryCases();
std::vector<PtxCase> AtomicCases();
std::vector<PtxCase> WarpCases();
std::vector<PtxCase> MatrixCases();
std::vector<PtxCase> AsynchronousCopyCases();
std::vector<PtxCase> ControlCases();

}  // namespace torpor::conformance
