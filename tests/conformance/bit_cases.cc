// Logic, shifts and bit fields: PTX ISA, sections "Logic and Shift Instructions" and, for the
// latter, "Integer Arithmetic Instructions"; prmt of "Data Movement and Conversion Instructions".
#include <bit>

#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {
namespace {

using U32 = std::uint32_t;
using S32 = std::int32_t;
using U64 = std::uint64_t;

template <typename T>
constexpr U32 kBitsOf = 8 * sizeof(T);

template <typename T>
void AddLogic(const std::string& bits, std::vector<PtxCase>& cases) {
  const auto two = [&](const char* name, T (*model)(T, T)) {
    cases.push_back(Each("logic/shift", std::string(name) + "." + bits + " D, A, B;", model));
  };
  two("and", [](T a, T b) { return static_cast<T>(a & b); });
  two("or", [](T a, T b) { return static_cast<T>(a | b); });
  two("xor", [](T a, T b) { return static_cast<T>(a ^ b); });
  cases.push_back(Each(
      "logic/shift", "not." + bits + " D, A;", +[](T a) { return static_cast<T>(~a); }));
  cases.push_back(Each(
      "logic/shift", "cnot." + bits + " D, A;",
      +[](T a) { return static_cast<T>(a == 0 ? 1 : 0); }));
}

template <typename T>
void DrawShift(std::mt19937_64& random, Operands& operands) {
  operands = {ToWord(Draw<T>(random)), random() % 8 == 0 ? random() % 4096 : random() % 70};
}

// Shifts by more than the width leave zero, or the sign.
template <typename T>
T ShiftRight(T a, U32 by) {
  if (by < kBitsOf<T>) return static_cast<T>(a >> by);
  return static_cast<T>(a < 0 ? -1 : 0);
}

template <typename T>
void AddShiftRight(const std::string& type, std::vector<PtxCase>& cases) {
  cases.push_back(
      Drawn(DrawShift<T>, Each("logic/shift", "shr." + type + " D, A, B;", ShiftRight<T>)));
}

template <typename T>
void AddShiftLeft(const std::string& type, std::vector<PtxCase>& cases) {
  cases.push_back(Drawn(DrawShift<T>,
                        Each(
                            "logic/shift", "shl." + type + " D, A, B;", +[](T a, U32 by) {
                              return static_cast<T>(by < kBitsOf<T> ? static_cast<T>(a << by) : 0);
                            })));
}

void AddPredicates(std::vector<PtxCase>& cases) {
  const auto two = [&](const char* name, U32 (*model)(S32, S32)) {
    cases.push_back(Each("logic/shift",
                         "setp.lt.s32 P, A, 0; setp.lt.s32 Q, B, 0; " + std::string(name) +
                             ".pred P, P, Q; selp.u32 D, 1, 0, P;",
                         model));
  };
  two("and", [](S32 a, S32 b) { return U32{a < 0 && b < 0}; });
  two("or", [](S32 a, S32 b) { return U32{a < 0 || b < 0}; });
  two("xor", [](S32 a, S32 b) { return U32{(a < 0) != (b < 0)}; });
  cases.push_back(Each(
      "logic/shift", "setp.lt.s32 P, A, 0; not.pred P, P; selp.u32 D, 1, 0, P;",
      +[](S32 a) { return U32{a >= 0}; }));
}

// Bit i of the table is the result for inputs a, b, c whose bits make i.
template <int kTable>
U32 Lop3(U32 a, U32 b, U32 c) {
  U32 result = 0;
  for (int bit = 0; bit < 32; ++bit) {
    const U32 index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1);
    result |= (U32{kTable} >> index & 1) << bit;
  }
  return result;
}

void AddLop3(std::vector<PtxCase>& cases) {
  cases.push_back(Each("logic/shift", "lop3.b32 D, A, B, C, 0x96;", Lop3<0x96>));
  cases.push_back(Each("logic/shift", "lop3.b32 D, A, B, C, 0xe8;", Lop3<0xe8>));
  cases.push_back(Each("logic/shift", "lop3.b32 D, A, B, C, 0x1b;", Lop3<0x1b>));
  cases.push_back(Each("logic/shift", "lop3.b32 D, A, B, C, 0xca;", Lop3<0xca>));
}

void AddFunnelShifts(std::vector<PtxCase>& cases) {
  const auto add = [&](const char* name, U32 (*model)(U32, U32, U32)) {
    cases.push_back(Each("bitops(shf)", std::string("shf.") + name + ".b32 D, A, B, C;", model));
    cases.back().draw = [](std::mt19937_64& random, Operands& operands) {
      operands = {ToWord(Draw<U32>(random)), ToWord(Draw<U32>(random)), random() % 70};
    };
  };
  add("l.wrap",
      [](U32 a, U32 b, U32 c) { return static_cast<U32>((U64{b} << 32 | a) << (c & 31) >> 32); });
  add("r.wrap",
      [](U32 a, U32 b, U32 c) { return static_cast<U32>((U64{b} << 32 | a) >> (c & 31)); });
  add("l.clamp", [](U32 a, U32 b, U32 c) {
    return c >= 32 ? a : static_cast<U32>((U64{b} << 32 | a) << c >> 32);
  });
  add("r.clamp",
      [](U32 a, U32 b, U32 c) { return c >= 32 ? b : static_cast<U32>((U64{b} << 32 | a) >> c); });
}

template <typename T>
T Reversed(T a) {
  T result = 0;
  for (U32 bit = 0; bit < kBitsOf<T>; ++bit)
    result = static_cast<T>(result | (a >> bit & 1) << (kBitsOf<T> - 1 - bit));
  return result;
}

// The highest bit that is not the sign's; none: all ones.
template <typename T>
U32 HighestBit(T a) {
  using U = std::make_unsigned_t<T>;
  const auto bits = static_cast<U>(a < 0 ? ~a : a);
  return static_cast<U32>(std::bit_width(bits)) - 1;
}

template <typename T>
void AddFindBit(const std::string& type, std::vector<PtxCase>& cases) {
  cases.push_back(Each("bitops(bfind)", "bfind." + type + " D, A;", HighestBit<T>));
  cases.push_back(Each(
      "bitops(bfind)", "bfind.shiftamt." + type + " D, A;", +[](T a) {
        const U32 bit = HighestBit(a);
        return bit == ~U32{0} ? bit : kBitsOf<T> - 1 - bit;
      }));
}

template <typename T>
void AddCounts(const std::string& bits, std::vector<PtxCase>& cases) {
  cases.push_back(Each(
      "bitops(popc)", "popc." + bits + " D, A;",
      +[](T a) { return static_cast<U32>(std::popcount(a)); }));
  cases.push_back(Each(
      "bitops(clz)", "clz." + bits + " D, A;",
      +[](T a) { return static_cast<U32>(std::countl_zero(a)); }));
  cases.push_back(Each("bitops(brev)", "brev." + bits + " D, A;", Reversed<T>));
}

// PTX ISA restricts position and length to 0..255; GPUs differ beyond.
void DrawField(std::mt19937_64& random, Operands& operands) {
  operands = {random(), random() % 80, random() % 80};
  if (random() % 8 == 0) operands[1 + random() % 2] = 80 + random() % 176;
}

// PTX ISA's own pseudocode of bfe.
template <typename T>
T Field(T a, U32 at, U32 count) {
  constexpr int kTop = static_cast<int>(kBitsOf<T>) - 1;
  const int begin = static_cast<int>(at);
  const int length = static_cast<int>(count);
  const bool sign =
      std::is_signed_v<T> && length != 0 && (a >> std::min(begin + length - 1, kTop) & 1) != 0;
  std::make_unsigned_t<T> result = 0;
  for (int i = 0; i <= kTop; ++i) {
    const bool bit = i < length && begin + i <= kTop ? (a >> (begin + i) & 1) != 0 : sign;
    result = static_cast<std::make_unsigned_t<T>>(result | (std::make_unsigned_t<T>{bit} << i));
  }
  return static_cast<T>(result);
}

template <typename T>
void AddExtract(const std::string& type, std::vector<PtxCase>& cases) {
  cases.push_back(Drawn(DrawField, Each("bitops(bfe)", "bfe." + type + " D, A, B, C;", Field<T>)));
}

// A inserted into the constant: C = position, length taken of the upper half.
template <typename T>
T Inserted(T a, T b, U32 where) {
  const U32 begin = where & 255;
  const U32 length = where >> 8 & 255;
  T result = b;
  for (U32 i = 0; i < length && begin + i < kBitsOf<T>; ++i) {
    const T mask = T{1} << (begin + i);
    result = static_cast<T>((result & ~mask) | ((a >> i & 1) << (begin + i)));
  }
  return result;
}

template <typename T>
void AddInsert(const std::string& bits, std::vector<PtxCase>& cases) {
  cases.push_back(Drawn(
      [](std::mt19937_64& random, Operands& operands) {
        operands = {random(), random(), random() % 80 | (random() % 80) << 8};
      },
      Each("bitops(bfi)", "and.b32 T0, C, 255; shr.u32 T1, C, 8; bfi." + bits + " D, A, B, T0, T1;",
           Inserted<T>)));
}

template <bool kWrap>
U32 Mask(U32 at, U32 count) {
  const U32 begin = kWrap ? at & 31 : std::min(at, 32U);
  const U32 length = kWrap ? count & 31 : std::min(count, 32U);
  U32 mask = 0;
  for (U32 i = begin; i < begin + length && i < 32; ++i) mask |= U32{1} << i;
  return mask;
}

template <bool kWrap>
S32 SignExtended(S32 a, U32 count) {
  const U32 bits = kWrap ? count & 31 : std::min(count, 32U);
  if (bits == 0) return 0;
  return static_cast<S32>(static_cast<U32>(a) << (32 - bits)) >> (32 - bits);
}

void AddMasks(std::vector<PtxCase>& cases) {
  const auto small = [](std::mt19937_64& random, Operands& operands) {
    operands = {random() % 40, random() % 40};
  };
  cases.push_back(Drawn(small, Each("bitops(bmsk)", "bmsk.clamp.b32 D, A, B;", Mask<false>)));
  cases.push_back(Drawn(small, Each("bitops(bmsk)", "bmsk.wrap.b32 D, A, B;", Mask<true>)));
  const auto extended = [](std::mt19937_64& random, Operands& operands) {
    operands = {ToWord(Draw<S32>(random)), random() % 40};
  };
  cases.push_back(Drawn(extended, Each("szext", "szext.clamp.s32 D, A, B;", SignExtended<false>)));
  cases.push_back(Drawn(extended, Each("szext", "szext.wrap.s32 D, A, B;", SignExtended<true>)));
}

U32 Byte(U64 bytes, U32 index) { return static_cast<U32>(bytes >> (8 * index)) & 255; }

U32 Permuted(U32 a, U32 b, U32 selectors) {
  const U64 both = U64{b} << 32 | a;
  U32 result = 0;
  for (U32 i = 0; i < 4; ++i) {
    const U32 selector = selectors >> (4 * i) & 15;
    const U32 byte = Byte(both, selector & 7);
    const U32 chosen = (selector & 8) == 0 ? byte : (byte & 128) != 0 ? 255U : 0U;
    result |= chosen << (8 * i);
  }
  return result;
}

// The four bytes that a mode takes for the low two bits of C = 0, 1, 2, 3; digits are bytes of
// {b, a}, the most significant of the result first.
template <U32 kZero, U32 kOne, U32 kTwo, U32 kThree>
U32 PermutedBy(U32 a, U32 b, U32 c) {
  const U32 tables[] = {kZero, kOne, kTwo, kThree};
  return Permuted(a, b, tables[c & 3]);
}

void AddPermutations(std::vector<PtxCase>& cases) {
  const auto add = [&](const char* mode, U32 (*model)(U32, U32, U32)) {
    cases.push_back(Each("prmt", std::string("prmt.b32") + mode + " D, A, B, C;", model));
  };
  add("", Permuted);
  add(".f4e", PermutedBy<0x3210, 0x4321, 0x5432, 0x6543>);
  add(".b4e", PermutedBy<0x5670, 0x6701, 0x7012, 0x0123>);
  add(".rc8", PermutedBy<0x0000, 0x1111, 0x2222, 0x3333>);
  add(".ecl", PermutedBy<0x3210, 0x3211, 0x3222, 0x3333>);
  add(".ecr", PermutedBy<0x0000, 0x1110, 0x2210, 0x3210>);
  add(".rc16", PermutedBy<0x1010, 0x3232, 0x1010, 0x3232>);
}

}  // namespace

std::vector<PtxCase> BitCases() {
  std::vector<PtxCase> cases;
  AddLogic<std::uint16_t>("b16", cases);
  AddLogic<U32>("b32", cases);
  AddLogic<U64>("b64", cases);
  AddShiftLeft<std::uint16_t>("b16", cases);
  AddShiftLeft<U32>("b32", cases);
  AddShiftLeft<U64>("b64", cases);
  AddShiftRight<std::uint16_t>("u16", cases);
  AddShiftRight<std::int16_t>("s16", cases);
  AddShiftRight<U32>("b32", cases);
  AddShiftRight<U32>("u32", cases);
  AddShiftRight<S32>("s32", cases);
  AddShiftRight<U64>("u64", cases);
  AddShiftRight<std::int64_t>("s64", cases);
  AddPredicates(cases);
  AddLop3(cases);
  AddFunnelShifts(cases);
  AddCounts<U32>("b32", cases);
  AddCounts<U64>("b64", cases);
  AddFindBit<U32>("u32", cases);
  AddFindBit<S32>("s32", cases);
  AddFindBit<U64>("u64", cases);
  AddFindBit<std::int64_t>("s64", cases);
  AddExtract<U32>("u32", cases);
  AddExtract<S32>("s32", cases);
  AddExtract<U64>("u64", cases);
  AddExtract<std::int64_t>("s64", cases);
  AddInsert<U32>("b32", cases);
  AddInsert<U64>("b64", cases);
  AddMasks(cases);
  AddPermutations(cases);
  return cases;
}

}  // namespace torpor::conformance
