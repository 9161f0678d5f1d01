// Products of matrices by a warp: PTX ISA, section "Warp Level Matrix Multiply-Accumulate
// Instructions". Sums of what is drawn are exact in f32.
#include <cmath>
#include <cstring>

#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr std::size_t kResultAt = 512;  // in the warp's shared memory, behind the operands

// A's words of all lanes, then B's: 512 bytes, as the text stores them.
struct WarpBytes {
  explicit WarpBytes(const Warp& warp) {
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      std::memcpy(&bytes[8 * lane], &warp.lanes[lane][0], 8);
      std::memcpy(&bytes[256 + 8 * lane], &warp.lanes[lane][1], 8);
    }
  }
  template <typename T>
  T At(std::size_t element, std::size_t begin = 0) const {
    T value;
    std::memcpy(&value, &bytes[begin + element * sizeof(T)], sizeof(T));
    return value;
  }
  std::array<std::uint8_t, 512> bytes{};
};

constexpr const char* kStoreOperands =
    "mul.lo.u32 T0, LANE, 8; add.u32 T0, T0, WS; st.shared.u64 [T0], A; st.shared.u64 [T0+256], B;"
    " bar.warp.sync -1; ";

// Each lane gets 8 bytes of the result: which of its 32 (or of a result of 512 bytes, its 16) C
// says.
std::string LoadResult(int bytes_a_lane) {
  return " bar.warp.sync -1; and.b32 T1, C, " + std::to_string(bytes_a_lane - 8) +
         "; mul.lo.u32 T0, LANE, " + std::to_string(bytes_a_lane) +
         "; add.u32 T0, T0, WS; add.u32 T0, T0, T1; ld.shared.u64 D, [T0+512];";
}

// The result in memory, row by row, of which each lane's word is taken.
template <typename T>
void TakeResults(const Warp& warp, const std::vector<T>& result, WarpResults& results) {
  const std::size_t bytes_a_lane = result.size() * sizeof(T) / kWarpLanes;
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(result.data());
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const std::size_t within = warp.lanes[lane][2] & (bytes_a_lane - 8);
    std::memcpy(&results[lane], bytes + lane * bytes_a_lane + within, 8);
  }
}

struct Shape {
  std::size_t m;
  std::size_t n;
  std::size_t k;
};

double Value(Half value) { return ToDouble(value); }
double Value(Bfloat value) { return ToDouble(value); }
double Value(float value) { return value; }
double Value(double value) { return value; }
double Value(std::uint8_t value) { return value; }
double Value(std::int8_t value) { return value; }

// The first operand's rows times the second's columns, which begin at `second_at`. Exact in f64 for
// what is drawn, but for f64 itself.
template <typename In, typename Out>
std::vector<Out> Product(const Warp& warp, const Shape& shape, std::size_t second_at) {
  const WarpBytes operands(warp);
  std::vector<Out> result(shape.m * shape.n);
  for (std::size_t row = 0; row < shape.m; ++row) {
    for (std::size_t column = 0; column < shape.n; ++column) {
      double sum = 0;
      for (std::size_t i = 0; i < shape.k; ++i)
        sum += Value(operands.At<In>(row * shape.k + i)) *
               Value(operands.At<In>(column * shape.k + i, second_at));
      if constexpr (std::is_same_v<Out, Half>)
        result[row * shape.n + column] = ToHalf(Wide{sum});
      else
        result[row * shape.n + column] = static_cast<Out>(sum);
    }
  }
  return result;
}

template <typename In>
In DrawElement(std::mt19937_64& random) {
  if constexpr (std::is_integral_v<In>) {
    return static_cast<In>(random());
  } else {
    const double value = static_cast<double>(static_cast<int>(random() % 65) - 32) / 8;
    if constexpr (std::is_same_v<In, Half>) return ToHalf(Wide{value});
    if constexpr (std::is_same_v<In, Bfloat>) return ToBfloat(Wide{value});
    if constexpr (std::is_floating_point_v<In>) return static_cast<In>(value);
  }
}

template <typename In>
void DrawElements(std::mt19937_64& random, Operands& operands) {
  for (std::size_t operand = 0; operand < 2; ++operand) {
    for (std::size_t i = 0; i < sizeof(Word) / sizeof(In); ++i) {
      const In element = DrawElement<In>(random);
      std::memcpy(reinterpret_cast<std::uint8_t*>(&operands[operand]) + i * sizeof(In), &element,
                  sizeof(In));
    }
  }
  operands[2] = random();
}

std::string Registers(const std::string& prefix, int count) {
  std::string list = "{";
  for (int i = 0; i < count; ++i) list += (i > 0 ? ", " : "") + prefix + std::to_string(i);
  return list + "}";
}

// How a wmma of one combination of types is written.
struct Wmma {
  std::string shape;   // as in the instruction
  std::string in;      // type of A and B
  std::string out;     // type of C and D
  std::string suffix;  // of wmma.mma: the types
  int in_registers;
  int out_registers;
  std::string in_kind;  // of registers
  std::string out_kind;
  std::string zero;  // moves zero into a register of the result
};

std::string WmmaText(const Wmma& wmma, const Shape& shape, std::size_t second_at,
                     int result_bytes) {
  const std::string a = Registers("fa", wmma.in_registers);
  const std::string b = Registers("fb", wmma.in_registers);
  const std::string d = Registers("fd", wmma.out_registers);
  const std::string ins = std::to_string(wmma.in_registers);
  const std::string outs = std::to_string(wmma.out_registers);
  std::string text = "{ .reg " + wmma.in_kind + " fa<" + ins + ">, fb<" + ins + ">; .reg " +
                     wmma.out_kind + " fd<" + outs + ">; .reg .b32 at; " + kStoreOperands;
  for (int i = 0; i < wmma.out_registers; ++i)
    text += wmma.zero + " fd" + std::to_string(i) + ", 0; ";
  const std::string stride = std::to_string(shape.k);
  text += "add.u32 at, WS, " + std::to_string(second_at) + "; wmma.load.a.sync.aligned.row." +
          wmma.shape + ".shared." + wmma.in + " " + a + ", [WS], " + stride +
          "; wmma.load.b.sync.aligned.col." + wmma.shape + ".shared." + wmma.in + " " + b +
          ", [at], " + stride + "; wmma.mma.sync.aligned.row.col." + wmma.shape + wmma.suffix +
          " " + d + ", " + a + ", " + b + ", " + d + "; add.u32 at, WS, " +
          std::to_string(kResultAt) + "; wmma.store.d.sync.aligned.row." + wmma.shape + ".shared." +
          wmma.out + " [at], " + d + ", " + std::to_string(shape.n) + "; }" +
          LoadResult(result_bytes / kWarpLanes);
  return text;
}

template <typename In, typename Out>
PtxCase WmmaCase(const Wmma& wmma, const Shape& shape, std::size_t second_at, Compare compare,
                 Tolerance tolerance) {
  PtxCase made;
  made.family = "wmma";
  made.text = WmmaText(wmma, shape, second_at, static_cast<int>(shape.m * shape.n * sizeof(Out)));
  made.result_bits = 64;
  made.operand_bits = {64, 64, 32};
  made.compare = compare;
  made.tolerance = tolerance;
  made.draw = DrawElements<In>;
  made.model = [shape, second_at](const Warp& warp, WarpResults& results) {
    TakeResults(warp, Product<In, Out>(warp, shape, second_at), results);
  };
  return made;
}

void AddWmma(std::vector<PtxCase>& cases) {
  const Wmma half = {"m16n16k16", "f16", "f32", ".f32.f32", 8, 8, ".b32", ".f32", "mov.b32"};
  cases.push_back(WmmaCase<Half, float>(half, {16, 16, 16}, 0, Compare::kBits, {}));
  const Wmma halves = {"m16n16k16", "f16", "f16", ".f16.f16", 8, 4, ".b32", ".b32", "mov.b32"};
  cases.push_back(WmmaCase<Half, Half>(halves, {16, 16, 16}, 0, Compare::kHalf4,
                                       {.relative = 0x1p-9, .absolute = 0x1p-3}));
  const Wmma bfloat = {"m16n16k16", "bf16", "f32",    ".f32.bf16.bf16.f32", 4, 8,
                       ".b32",      ".f32", "mov.b32"};
  cases.push_back(WmmaCase<Bfloat, float>(bfloat, {16, 16, 16}, 0, Compare::kBits, {}));
  const Wmma tf32 = {"m16n16k8", "tf32", "f32",    ".f32.tf32.tf32.f32", 4, 8,
                     ".b32",     ".f32", "mov.b32"};
  cases.push_back(WmmaCase<float, float>(tf32, {16, 16, 8}, 0, Compare::kBits, {}));
  const Wmma bytes = {"m16n16k16", "u8", "s32", ".s32.u8.u8.s32", 2, 8, ".b32", ".b32", "mov.b32"};
  cases.push_back(
      WmmaCase<std::uint8_t, std::int32_t>(bytes, {16, 16, 16}, 256, Compare::kBits, {}));
  const Wmma signed_bytes = {"m16n16k16", "s8",   "s32",  ".s32.s8.s8.s32", 2,
                             8,           ".b32", ".b32", "mov.b32"};
  cases.push_back(
      WmmaCase<std::int8_t, std::int32_t>(signed_bytes, {16, 16, 16}, 256, Compare::kBits, {}));
  const Wmma doubles = {"m8n8k4", "f64",  "f64",    ".f64.f64.f64.f64.rn", 1, 2,
                        ".f64",   ".f64", "mov.b64"};
  cases.push_back(WmmaCase<double, double>(doubles, {8, 8, 4}, 256, Compare::kBits, {}));
}

// mma.m16n8k16: register r of lane l holds, of A, the elements (row, column) and the one right of
// it, row = l / 4 + 8 * (r % 2), column = 2 * (l % 4) + 8 * (r / 2); of B, (row, column) and the
// one below, row = 2 * (l % 4) + 8 * r, column = l / 4; element e of the result is at row l / 4 + 8
// * (e / 2), column 2 * (l % 4) + e % 2. A is in the operands A and B, B in operand C.
template <typename In, std::size_t kFirst>
void MmaModel(const Warp& warp, WarpResults& results) {
  double a[16][16];
  double b[16][8];
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t r = i / 2;
      const auto bits = static_cast<std::uint16_t>(warp.lanes[lane][i / 4] >> (16 * (i % 4)));
      a[lane / 4 + 8 * (r % 2)][2 * (lane % 4) + 8 * (r / 2) + i % 2] = ToDouble(In{bits});
    }
    for (std::size_t i = 0; i < 4; ++i) {
      const auto bits = static_cast<std::uint16_t>(warp.lanes[lane][2] >> (16 * i));
      b[2 * (lane % 4) + 8 * (i / 2) + i % 2][lane / 4] = ToDouble(In{bits});
    }
  }
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    std::array<float, 2> pair{};
    for (std::size_t e = 0; e < 2; ++e) {
      double sum = 0;
      for (std::size_t i = 0; i < 16; ++i)
        sum += a[lane / 4 + 8 * (kFirst / 2)][i] * b[i][2 * (lane % 4) + e];
      pair[e] = static_cast<float>(sum);
    }
    results[lane] = ToWord(pair);
  }
}

template <typename In, std::size_t kFirst>
PtxCase MmaCase(const std::string& type) {
  PtxCase made;
  made.family = "mma";
  const std::string first = "f" + std::to_string(kFirst);
  const std::string second = "f" + std::to_string(kFirst + 1);
  made.text =
      "{ .reg .b32 a<4>, b<2>; .reg .f32 f<4>; mov.b64 {a0, a1}, A; mov.b64 {a2, a3}, B;"
      " mov.b64 {b0, b1}, C; mov.f32 f0, 0f00000000; mov.f32 f1, f0; mov.f32 f2, f0;"
      " mov.f32 f3, f0; mma.sync.aligned.m16n8k16.row.col.f32." +
      type + "." + type +
      ".f32 {f0, f1, f2, f3}, {a0, a1, a2, a3}, {b0, b1}, {f0, f1, f2, f3};"
      " mov.b64 D, {" +
      first + ", " + second + "}; }";
  made.result_bits = 64;
  made.operand_bits = {64, 64, 64};
  made.draw = [](std::mt19937_64& random, Operands& operands) {
    Operands more{};
    DrawElements<In>(random, operands);
    DrawElements<In>(random, more);
    operands[2] = more[0];
  };
  made.model = MmaModel<In, kFirst>;
  return made;
}

// Eight rows of 16 bytes, given by lanes 0 to 7 (8 to 15 for the second matrix, ...): lane l gets
// the word l % 4 of row l / 4, or transposed, two elements of column l / 4.
template <bool kTransposed>
U64 LoadedMatrices(int lane, const std::array<U64, kWarpLanes>& a) {
  std::array<std::uint16_t, 128> elements;
  std::memcpy(elements.data(), a.data(), sizeof elements);
  U64 result = 0;
  for (std::size_t matrix = 0; matrix < 2; ++matrix) {
    for (std::size_t e = 0; e < 2; ++e) {
      const std::size_t major = static_cast<std::size_t>(lane) / 4;
      const std::size_t minor = 2 * (static_cast<std::size_t>(lane) % 4) + e;
      const std::size_t at = kTransposed ? minor * 8 + major : major * 8 + minor;
      result |= U64{elements[64 * matrix + at]} << (32 * matrix + 16 * e);
    }
  }
  return result;
}

void AddLoads(std::vector<PtxCase>& cases) {
  const std::string store =
      "mul.lo.u32 T0, LANE, 8; add.u32 T0, T0, WS; st.shared.u64 [T0], A;"
      " bar.warp.sync -1; and.b32 T1, LANE, 15; mul.lo.u32 T1, T1, 16;"
      " add.u32 T1, T1, WS; ldmatrix.sync.aligned.m8n8.x2";
  const std::string load = ".shared.b16 {T2, T3}, [T1]; mov.b64 D, {T2, T3};";
  cases.push_back(Together("ldmatrix", store + load, LoadedMatrices<false>));
  cases.push_back(Together("ldmatrix", store + ".trans" + load, LoadedMatrices<true>));
}

}  // namespace

std::vector<PtxCase> MatrixCases() {
  std::vector<PtxCase> cases;
  AddWmma(cases);
  cases.push_back(MmaCase<Half, 0>("f16"));
  cases.push_back(MmaCase<Half, 2>("f16"));
  cases.push_back(MmaCase<Bfloat, 0>("bf16"));
  cases.push_back(MmaCase<Bfloat, 2>("bf16"));
  AddLoads(cases);
  return cases;
}

}  // namespace torpor::conformance
