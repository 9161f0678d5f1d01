// Instructions by which the lanes of a warp see each other: shfl, vote, match, redux, barriers.
#include <bit>

#include "tests/conformance/address_space.h"
#include "tests/conformance/ptx_case.h"
#include "tests/conformance/word_operations.h"

namespace torpor::conformance {
namespace {

using U32 = std::uint32_t;
using S32 = std::int32_t;
using U64 = std::uint64_t;

template <typename T>
using Lanes = std::array<T, kWarpLanes>;

template <typename T>
T At(const Lanes<T>& values, int lane) {
  return values[static_cast<std::size_t>(lane)];
}

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

// PTX ISA's pseudocode of shfl.sync, for segments of `kWidth` lanes. The predicate is bit 32.
template <Shuffle kMode, int kOffset, int kWidth>
U64 Shuffled(int lane, const Lanes<U32>& a) {
  const int first = lane / kWidth * kWidth;
  const int last = first + kWidth - 1;
  int from = lane;
  bool inside = false;
  switch (kMode) {
    case Shuffle::kUp:
      from = lane - kOffset;
      inside = from >= first;
      break;
    case Shuffle::kDown:
      from = lane + kOffset;
      inside = from <= last;
      break;
    case Shuffle::kButterfly:
      from = lane ^ kOffset;
      inside = from <= last;
      break;
    case Shuffle::kIndex:
      from = first + (kOffset & (kWidth - 1));
      inside = from <= last;
      break;
  }
  return U64{inside} << 32 | At(a, inside ? from : lane);
}

template <Shuffle kMode, int kOffset, int kWidth>
void AddShuffle(const char* mode, std::vector<PtxCase>& cases) {
  // The third operand: segments in bits 8 to 12, the clamp below.
  const int clamp = (32 - kWidth) << 8 | (kMode == Shuffle::kUp ? 0 : 31);
  cases.push_back(Together("shfl",
                           std::string("shfl.sync.") + mode + ".b32 T0|P, A, " +
                               std::to_string(kOffset) + ", " + std::to_string(clamp) +
                               ", -1; selp.u32 T1, 1, 0, P; mov.b64 D, {T0, T1};",
                           Shuffled<kMode, kOffset, kWidth>));
}

void AddShuffles(std::vector<PtxCase>& cases) {
  AddShuffle<Shuffle::kUp, 1, 32>("up", cases);
  AddShuffle<Shuffle::kUp, 5, 8>("up", cases);
  AddShuffle<Shuffle::kDown, 16, 32>("down", cases);
  AddShuffle<Shuffle::kDown, 3, 16>("down", cases);
  AddShuffle<Shuffle::kButterfly, 1, 32>("bfly", cases);
  AddShuffle<Shuffle::kButterfly, 9, 32>("bfly", cases);
  AddShuffle<Shuffle::kButterfly, 6, 4>("bfly", cases);
  AddShuffle<Shuffle::kIndex, 0, 32>("idx", cases);
  AddShuffle<Shuffle::kIndex, 11, 8>("idx", cases);
  // The lane to read comes from a register.
  cases.push_back(Together(
      "shfl", "and.b32 T1, A, 31; shfl.sync.idx.b32 D, A, T1, 31, -1;",
      +[](int lane, const Lanes<U32>& a) { return At(a, static_cast<int>(At(a, lane) & 31)); }));
  cases.push_back(Together(
      "shfl",
      "mov.b64 {T0, T1}, A; shfl.sync.down.b32 T0, T0, 8, 31, -1;"
      " shfl.sync.down.b32 T1, T1, 8, 31, -1; mov.b64 D, {T0, T1};",
      +[](int lane, const Lanes<U64>& a) {
        return At(a, lane + 8 < kWarpLanes ? lane + 8 : lane);
      }));
}

U32 Negative(const Lanes<S32>& a) {
  U32 mask = 0;
  for (int lane = 0; lane < kWarpLanes; ++lane) mask |= U32{At(a, lane) < 0} << lane;
  return mask;
}

void AddVotes(std::vector<PtxCase>& cases) {
  const std::string condition = "setp.lt.s32 P, A, 0; ";
  cases.push_back(Together(
      "vote", condition + "vote.sync.ballot.b32 D, P, -1;",
      +[](int, const Lanes<S32>& a) { return Negative(a); }));
  cases.push_back(Together(
      "vote", condition + "vote.sync.any.pred Q, P, -1; selp.u32 D, 1, 0, Q;",
      +[](int, const Lanes<S32>& a) { return U32{Negative(a) != 0}; }));
  cases.push_back(Together(
      "vote", condition + "vote.sync.all.pred Q, P, -1; selp.u32 D, 1, 0, Q;",
      +[](int, const Lanes<S32>& a) { return U32{Negative(a) == ~U32{0}}; }));
  cases.push_back(Together(
      "vote", condition + "vote.sync.uni.pred Q, P, -1; selp.u32 D, 1, 0, Q;",
      +[](int, const Lanes<S32>& a) { return U32{Negative(a) == 0 || Negative(a) == ~U32{0}}; }));
  // Only the lanes of the branch take part.
  cases.push_back(Together(
      "vote",
      condition + "mov.u32 D, 0; @!P bra SKIP; activemask.b32 T0;"
                  " vote.sync.ballot.b32 D, 1, T0; SKIP:",
      +[](int lane, const Lanes<S32>& a) { return At(a, lane) < 0 ? Negative(a) : U32{0}; }));
  cases.push_back(Together(
      "activemask", "activemask.b32 D;", +[](int, const Lanes<U32>&) { return ~U32{0}; }));
  cases.push_back(Together(
      "elect", "elect.sync T0|P, -1; selp.u32 T1, 1, 0, P; mov.b64 D, {T0, T1};",
      +[](int lane, const Lanes<U32>&) { return U64{lane == 0} << 32; }));
}

template <typename T>
U32 Alike(int lane, const Lanes<T>& a) {
  U32 mask = 0;
  for (int other = 0; other < kWarpLanes; ++other)
    mask |= U32{At(a, other) == At(a, lane)} << other;
  return mask;
}

void AddMatches(std::vector<PtxCase>& cases) {
  const auto few = [](std::mt19937_64& random, Operands& operands) { operands[0] = random() % 3; };
  cases.push_back(Drawn(few, Together("match", "match.any.sync.b32 D, A, -1;", Alike<U32>)));
  cases.push_back(Drawn(few, Together("match", "match.any.sync.b64 D, A, -1;", Alike<U64>)));
  const auto all = +[](int lane, const Lanes<U32>& a) {
    return Alike(lane, a) == ~U32{0} ? U64{1} << 32 | ~U32{0} : U64{0};
  };
  const char* const text =
      "match.all.sync.b32 T0|P, A, -1; selp.u32 T1, 1, 0, P; mov.b64 D, {T0, T1};";
  cases.push_back(Drawn(few, Together("match", text, all)));
  const auto one = [](std::mt19937_64&, Operands& operands) { operands[0] = 7; };
  cases.push_back(Drawn(one, Together("match", text, all)));
}

template <typename T, T (*kModel)(T, T)>
T Reduced(int, const Lanes<T>& a) {
  T result = a[0];
  for (std::size_t lane = 1; lane < kWarpLanes; ++lane) result = kModel(result, a[lane]);
  return result;
}

template <typename T, T (*kModel)(T, T)>
void AddReduction(const std::string& name, std::vector<PtxCase>& cases) {
  cases.push_back(Together("redux", "redux.sync." + name + " D, A, -1;", Reduced<T, kModel>));
}

void AddReductions(std::vector<PtxCase>& cases) {
  AddReduction<U32, Sum>("add.u32", cases);
  AddReduction<U32, Sum>("add.s32", cases);
  AddReduction<U32, And>("and.b32", cases);
  AddReduction<U32, Or>("or.b32", cases);
  AddReduction<U32, Xor>("xor.b32", cases);
  AddReduction<U32, Least<U32>>("min.u32", cases);
  AddReduction<U32, Greatest<U32>>("max.u32", cases);
  AddReduction<S32, Least<S32>>("min.s32", cases);
  AddReduction<S32, Greatest<S32>>("max.s32", cases);
}

// Every warp of the block comes to the barrier; its neighbour's word is read behind it.
void AddBarriers(std::vector<PtxCase>& cases) {
  const auto next = +[](int lane, const Lanes<U32>& a) { return At(a, (lane + 1) % kWarpLanes); };
  const char* const text =
      "mul.lo.u32 T0, LANE, 4; add.u32 T0, WS, T0; st.shared.u32 [T0], A; $N;"
      " add.u32 T1, LANE, 1; and.b32 T1, T1, 31; mul.lo.u32 T1, T1, 4; add.u32 T1, WS, T1;"
      " ld.shared.u32 D, [T1];";
  for (const char* barrier : {"bar.warp.sync -1", "bar.sync 0", "barrier.sync 0", "barrier.sync 3"})
    cases.push_back(Together("bar/barrier", Filled(text, "$N", barrier), next));
  // Conditions that do not depend on data, so that a warp's model knows those of the block.
  const auto add = [&](const char* text, U32 (*model)()) {
    cases.push_back(Each("bar/barrier", text, model));
  };
  add("setp.ne.u32 P, LANE, 3; bar.red.popc.u32 D, 0, P;", [] { return U32{31 * kBlockWarps}; });
  add("setp.eq.u32 P, LANE, 9; bar.red.or.pred Q, 0, P; selp.u32 D, 1, 0, Q;",
      [] { return U32{1}; });
  add("setp.ne.u32 P, LANE, 9; bar.red.and.pred Q, 0, P; selp.u32 D, 1, 0, Q;",
      [] { return U32{0}; });
}

}  // namespace

std::vector<PtxCase> WarpCases() {
  std::vector<PtxCase> cases;
  AddShuffles(cases);
  AddVotes(cases);
  AddMatches(cases);
  AddReductions(cases);
  AddBarriers(cases);
  return cases;
}

}  // namespace torpor::conformance
