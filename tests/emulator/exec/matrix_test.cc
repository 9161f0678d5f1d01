// Matrix instructions against products of small whole numbers, which every type holds exactly, so
// that results are compared bit for bit.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

// A type of matrix elements.
struct Element {
  const char* name;
  unsigned bits;
  unsigned exponent_bits;  // 0: an integer
  bool is_signed;

  bool is_real() const { return exponent_bits != 0; }
  unsigned register_bits() const { return bits == 64 ? 64 : 32; }
  unsigned packed() const { return register_bits() / bits; }
};

constexpr Element kF16 = {"f16", 16, 5, true};
constexpr Element kBf16 = {"bf16", 16, 8, true};
constexpr Element kTf32 = {"tf32", 32, 8, true};
constexpr Element kF32 = {"f32", 32, 8, true};
constexpr Element kF64 = {"f64", 64, 11, true};
constexpr Element kE4m3 = {"e4m3", 8, 4, true};
constexpr Element kE5m2 = {"e5m2", 8, 5, true};
constexpr Element kS8 = {"s8", 8, 0, true};
constexpr Element kU8 = {"u8", 8, 0, false};
constexpr Element kS4 = {"s4", 4, 0, true};
constexpr Element kU4 = {"u4", 4, 0, false};
constexpr Element kB1 = {"b1", 1, 0, false};
constexpr Element kS32 = {"s32", 32, 0, true};

// The bits of a small whole number.
std::uint64_t Encode(std::int64_t value, const Element& element) {
  const std::uint64_t mask =
      element.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << element.bits) - 1;
  if (!element.is_real()) return static_cast<std::uint64_t>(value) & mask;
  if (value == 0) return 0;
  const auto magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
  const auto exponent = static_cast<unsigned>(std::bit_width(magnitude)) - 1;
  const unsigned fraction_bits = element.bits - 1 - element.exponent_bits;
  const std::uint64_t bias = (std::uint64_t{1} << (element.exponent_bits - 1)) - 1;
  const std::uint64_t leading = std::uint64_t{1} << (std::bit_width(magnitude / 2) & 63);
  const std::uint64_t fraction = ((magnitude - leading) << fraction_bits) / leading;
  const std::uint64_t sign = value < 0 ? std::uint64_t{1} << (element.bits - 1) : 0;
  return sign | (exponent + bias) << fraction_bits | fraction;
}

// Numbers row by row.
struct Matrix {
  Matrix(unsigned row_count, unsigned column_count)
      : rows(row_count), columns(column_count), numbers(std::size_t{row_count} * column_count) {}
  std::int64_t& at(unsigned row, unsigned column) { return numbers[row * columns + column]; }
  std::int64_t at(unsigned row, unsigned column) const { return numbers[row * columns + column]; }

  unsigned rows;
  unsigned columns;
  std::vector<std::int64_t> numbers;
};

struct Shape {
  unsigned m;
  unsigned n;
  unsigned k;
  std::string text() const {
    return "m" + std::to_string(m) + "n" + std::to_string(n) + "k" + std::to_string(k);
  }
};

enum class BitOperation { kNone, kXor, kAnd };

Matrix Multiply(const Matrix& a, const Matrix& b, const Matrix& c, BitOperation operation) {
  Matrix d = c;
  for (unsigned i = 0; i < a.rows; ++i) {
    for (unsigned j = 0; j < b.columns; ++j) {
      for (unsigned k = 0; k < a.columns; ++k) {
        d.at(i, j) +=
            operation == BitOperation::kXor ? a.at(i, k) ^ b.at(k, j) : a.at(i, k) * b.at(k, j);
      }
    }
  }
  return d;
}

// Where the manual puts an element of a fragment of mma.sync.
struct Place {
  unsigned reg;
  unsigned lane;
  unsigned slot;  // in the register, from the lowest bits
};

Place PlaceInA(unsigned row, unsigned column, unsigned packed) {
  const unsigned group = row % 8;
  const unsigned high_row = row / 8;
  const unsigned thread = column / packed % 4;
  const unsigned high_column = column / packed / 4;
  return {high_row + 2 * high_column, group * 4 + thread, column % packed};
}

Place PlaceInB(unsigned row, unsigned column, unsigned packed) {
  return {row / packed / 4, column * 4 + row / packed % 4, row % packed};
}

Place PlaceInC(unsigned row, unsigned column, unsigned packed) {
  const unsigned lane = row % 8 * 4 + column / 2;
  if (packed == 2) return {row / 8, lane, column % 2};
  return {row / 8 * 2 + column % 2, lane, 0};
}

using Placement = Place (*)(unsigned row, unsigned column, unsigned packed);

// A fragment as words: register after register, 32 lanes each.
std::vector<std::uint8_t> ToFragment(const Matrix& matrix, const Element& element,
                                     Placement placement) {
  std::vector<std::uint8_t> bytes((matrix.numbers.size() * element.bits + 7) / 8);
  const unsigned lane_bytes = element.register_bits() / 8;
  for (unsigned row = 0; row < matrix.rows; ++row) {
    for (unsigned column = 0; column < matrix.columns; ++column) {
      const Place place = placement(row, column, element.packed());
      std::uint64_t word = 0;
      std::uint8_t* const at = &bytes[std::size_t{place.reg * 32 + place.lane} * lane_bytes];
      std::memcpy(&word, at, lane_bytes);
      word |= Encode(matrix.at(row, column), element) << (place.slot * element.bits);
      std::memcpy(at, &word, lane_bytes);
    }
  }
  return bytes;
}

// A matrix in memory, line by line.
std::vector<std::uint8_t> ToMemory(const Matrix& matrix, const Element& element, bool column_major,
                                   unsigned stride) {
  const unsigned lines = column_major ? matrix.columns : matrix.rows;
  const unsigned length = column_major ? matrix.rows : matrix.columns;
  std::vector<std::uint8_t> bytes(std::size_t{lines} * stride * element.bits / 8);
  for (unsigned line = 0; line < lines; ++line) {
    for (unsigned i = 0; i < length; ++i) {
      const std::int64_t value = column_major ? matrix.at(i, line) : matrix.at(line, i);
      const std::uint64_t bit = (std::uint64_t{line} * stride + i) * element.bits;
      std::uint64_t word = Encode(value, element) << (bit % 8);
      for (std::size_t byte = bit / 8; word != 0; ++byte, word >>= 8) {
        bytes[byte] |= static_cast<std::uint8_t>(word);
      }
    }
  }
  return bytes;
}

class MatrixTest : public KernelTest {
 protected:
  std::int64_t Random(const Element& element, bool accumulator) {
    if (element.bits == 1) return static_cast<std::int64_t>(random_() % 2);
    const auto span = static_cast<std::int64_t>(random_() % 15);
    if (accumulator || (element.is_real())) return span % 9 - 4;
    if (element.bits == 8) {
      const auto byte = static_cast<std::int64_t>(random_() % 256);
      return element.is_signed ? byte - 128 : byte;
    }
    return element.is_signed ? span % 16 - 8 : span;
  }

  Matrix RandomMatrix(unsigned rows, unsigned columns, const Element& element,
                      bool accumulator = false) {
    Matrix matrix(rows, columns);
    for (std::int64_t& number : matrix.numbers) number = Random(element, accumulator);
    return matrix;
  }

  DeviceArray<std::uint8_t>& Keep(const std::vector<std::uint8_t>& bytes) {
    arrays_.push_back(std::make_unique<DeviceArray<std::uint8_t>>(memory_, bytes.size()));
    std::copy(bytes.begin(), bytes.end(), arrays_.back()->data());
    return *arrays_.back();
  }

  static std::string Registers(char name, unsigned count) {
    std::string text = "{";
    for (unsigned i = 0; i < count; ++i) {
      text += (i == 0 ? "%" : ", %") + std::string(1, name) + std::to_string(i);
    }
    return text + "}";
  }

  static std::string Declare(char name, const Element& element, unsigned count) {
    return ".reg .b" + std::to_string(element.register_bits()) + " %" + std::string(1, name) + "<" +
           std::to_string(count) + ">;\n";
  }

  // Loads or stores all registers of a fragment; register i of lane l is word 32 * i + l.
  static std::string Move(char name, const Element& element, unsigned count, bool load) {
    const std::string type = std::to_string(element.register_bits());
    std::string text = "ld.param.u64 %at, [" + std::string(1, name) +
                       "]; mul.wide.u32 %step, %i, " + std::to_string(element.register_bits() / 8) +
                       "; add.u64 %at, %at, %step;\n";
    for (unsigned i = 0; i < count; ++i) {
      const std::string reg = "%" + std::string(1, name) + std::to_string(i);
      const std::string place = "[%at+" + std::to_string(i * 4 * element.register_bits()) + "]";
      text.append(load ? "ld" : "st").append(".global.b").append(type).append(" ");
      text.append(load ? reg : place).append(", ").append(load ? place : reg).append(";\n");
    }
    return text;
  }

  static std::string Kernel(const std::string& body) {
    return std::string(".version 8.7\n.target sm_90\n.address_size 64\n") +
           ".visible .entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c)\n{\n"
           ".reg .b64 %at, %step; .reg .b32 %i; mov.u32 %i, %tid.x;\n" +
           body + "ret;\n}\n";
  }

  static unsigned Count(unsigned rows, unsigned columns, const Element& element) {
    return rows * columns * element.bits / 32 / element.register_bits();
  }

  void CheckMma(const Shape& shape, const Element& a, const Element& b, const Element& d,
                BitOperation operation = BitOperation::kNone) {
    const std::string bits = operation == BitOperation::kXor   ? ".xor.popc"
                             : operation == BitOperation::kAnd ? ".and.popc"
                                                               : "";
    const std::string name = "mma.sync.aligned." + shape.text() + ".row.col." + d.name + "." +
                             a.name + "." + b.name + "." + d.name + bits;
    SCOPED_TRACE(name);
    const unsigned a_count = Count(shape.m, shape.k, a);
    const unsigned b_count = Count(shape.k, shape.n, b);
    const unsigned d_count = Count(shape.m, shape.n, d);
    LoadText(Kernel(Declare('a', a, a_count) + Declare('b', b, b_count) + Declare('c', d, d_count) +
                    Declare('d', d, d_count) + Move('a', a, a_count, true) +
                    Move('b', b, b_count, true) + Move('c', d, d_count, true) + name + " " +
                    Registers('d', d_count) + ", " + Registers('a', a_count) + ", " +
                    Registers('b', b_count) + ", " + Registers('c', d_count) + ";\n" +
                    Move('d', d, d_count, false)));
    const Matrix left = RandomMatrix(shape.m, shape.k, a);
    const Matrix right = RandomMatrix(shape.k, shape.n, b);
    const Matrix sum = RandomMatrix(shape.m, shape.n, d, true);
    const auto expected = ToFragment(Multiply(left, right, sum, operation), d, &PlaceInC);
    DeviceArray<std::uint8_t>& out = Keep(std::vector<std::uint8_t>(expected.size()));
    MustRun("k", {1, 1, 1}, {32, 1, 1}, out.data(), Keep(ToFragment(left, a, &PlaceInA)).data(),
            Keep(ToFragment(right, b, &PlaceInB)).data(),
            Keep(ToFragment(sum, d, &PlaceInC)).data());
    EXPECT_EQ(std::vector<std::uint8_t>(out.data(), out.data() + out.size()), expected);
  }

  struct Layout {
    bool a_column;
    bool b_column;
    bool c_column;
    const char* space;  // of all matrices: "" or ".global"
  };

  static unsigned WmmaCount(unsigned rows, unsigned columns, const Element& element) {
    return element.bits == 16 && element.exponent_bits == 5 ? 8 : Count(rows, columns, element);
  }

  void CheckWmma(const Shape& shape, const Element& a, const Element& c, const Element& d,
                 const Layout& layout, BitOperation operation = BitOperation::kNone) {
    const auto order = [](bool column) { return std::string(column ? ".col" : ".row"); };
    const std::string types = a.bits == 16 && a.exponent_bits == 5
                                  ? std::string(".") + d.name + "." + c.name
                                  : std::string(".") + d.name + "." + a.name + "." + a.name + "." +
                                        c.name + (a.bits == 64 ? ".rn" : "");
    const std::string bits = operation == BitOperation::kXor   ? ".xor.popc"
                             : operation == BitOperation::kAnd ? ".and.popc"
                                                               : "";
    const std::string name = "wmma.mma" + bits + ".sync.aligned" + order(layout.a_column) +
                             order(layout.b_column) + "." + shape.text() + types;
    SCOPED_TRACE(name + order(layout.c_column) + layout.space);
    const unsigned a_count = WmmaCount(shape.m, shape.k, a);
    const unsigned b_count = WmmaCount(shape.k, shape.n, a);
    const unsigned c_count = Count(shape.m, shape.n, c);
    const unsigned d_count = Count(shape.m, shape.n, d);
    constexpr unsigned kStride = 256;
    const auto load = [&](char part, bool column, const Element& element, unsigned count) {
      return "ld.param.u64 %at, [" + std::string(1, part) + "]; wmma.load." + part +
             ".sync.aligned" + order(column) + "." + shape.text() + layout.space + "." +
             element.name + " " + Registers(part, count) + ", [%at], " + std::to_string(kStride) +
             ";\n";
    };
    LoadText(Kernel(Declare('a', a, a_count) + Declare('b', a, b_count) + Declare('c', c, c_count) +
                    Declare('d', d, d_count) + load('a', layout.a_column, a, a_count) +
                    load('b', layout.b_column, a, b_count) +
                    load('c', layout.c_column, c, c_count) + name + " " + Registers('d', d_count) +
                    ", " + Registers('a', a_count) + ", " + Registers('b', b_count) + ", " +
                    Registers('c', c_count) +
                    ";\nld.param.u64 %at, [d]; wmma.store.d.sync.aligned" + order(layout.c_column) +
                    "." + shape.text() + layout.space + "." + d.name + " [%at], " +
                    Registers('d', d_count) + ", " + std::to_string(kStride) + ";\n"));
    const Matrix left = RandomMatrix(shape.m, shape.k, a);
    const Matrix right = RandomMatrix(shape.k, shape.n, a);
    const Matrix sum = RandomMatrix(shape.m, shape.n, c, true);
    const auto expected =
        ToMemory(Multiply(left, right, sum, operation), d, layout.c_column, kStride);
    DeviceArray<std::uint8_t>& out = Keep(std::vector<std::uint8_t>(expected.size()));
    MustRun("k", {1, 1, 1}, {32, 1, 1}, out.data(),
            Keep(ToMemory(left, a, layout.a_column, kStride)).data(),
            Keep(ToMemory(right, a, layout.b_column, kStride)).data(),
            Keep(ToMemory(sum, c, layout.c_column, kStride)).data());
    EXPECT_EQ(std::vector<std::uint8_t>(out.data(), out.data() + out.size()), expected);
  }

  std::mt19937_64 random_{11};
  std::vector<std::unique_ptr<DeviceArray<std::uint8_t>>> arrays_;
};

TEST_F(MatrixTest, MmaOfHalves) {
  for (const Shape& shape : {Shape{16, 8, 8}, Shape{16, 8, 16}}) {
    CheckMma(shape, kF16, kF16, kF32);
    CheckMma(shape, kF16, kF16, kF16);
    CheckMma(shape, kBf16, kBf16, kF32);
  }
}

TEST_F(MatrixTest, MmaOfF32AndF64) {
  for (const unsigned k : {4, 8}) CheckMma({16, 8, k}, kTf32, kTf32, kF32);
  CheckMma({8, 8, 4}, kF64, kF64, kF64);
  for (const unsigned k : {4, 8, 16}) CheckMma({16, 8, k}, kF64, kF64, kF64);
}

TEST_F(MatrixTest, MmaOfBytes) {
  for (const Shape& shape : {Shape{8, 8, 16}, Shape{16, 8, 16}, Shape{16, 8, 32}}) {
    CheckMma(shape, kS8, kS8, kS32);
    CheckMma(shape, kU8, kU8, kS32);
    CheckMma(shape, kS8, kU8, kS32);
  }
  for (const unsigned k : {16, 32}) {
    CheckMma({16, 8, k}, kE4m3, kE4m3, kF32);
    CheckMma({16, 8, k}, kE5m2, kE4m3, kF32);
    CheckMma({16, 8, k}, kE5m2, kE5m2, kF16);
  }
}

TEST_F(MatrixTest, MmaOfPartsOfBytes) {
  for (const Shape& shape : {Shape{8, 8, 32}, Shape{16, 8, 32}, Shape{16, 8, 64}}) {
    CheckMma(shape, kS4, kU4, kS32);
    CheckMma(shape, kU4, kS4, kS32);
  }
  for (const Shape& shape : {Shape{8, 8, 128}, Shape{16, 8, 128}, Shape{16, 8, 256}}) {
    CheckMma(shape, kB1, kB1, kS32, BitOperation::kXor);
    CheckMma(shape, kB1, kB1, kS32, BitOperation::kAnd);
  }
}

TEST_F(MatrixTest, WmmaInAllLayouts) {
  const Shape shapes[] = {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}};
  for (unsigned i = 0; i < 8; ++i) {
    const Layout layout = {(i & 1) != 0, (i & 2) != 0, (i & 4) != 0, i % 3 == 0 ? "" : ".global"};
    for (const Shape& shape : shapes) {
      CheckWmma(shape, kF16, kF32, kF32, layout);
      CheckWmma(shape, kF16, kF16, kF16, layout);
      CheckWmma(shape, kBf16, kF32, kF32, layout);
      CheckWmma(shape, kU8, kS32, kS32, layout);
      CheckWmma(shape, kS8, kS32, kS32, layout);
    }
    CheckWmma({16, 16, 8}, kTf32, kF32, kF32, layout);
    CheckWmma({8, 8, 4}, kF64, kF64, kF64, layout);
  }
}

TEST_F(MatrixTest, WmmaMixesAccumulators) {
  const Layout layout = {false, true, false, ""};
  CheckWmma({16, 16, 16}, kF16, kF16, kF32, layout);
  CheckWmma({16, 16, 16}, kF16, kF32, kF16, layout);
}

TEST_F(MatrixTest, WmmaOfPartsOfBytes) {
  const Layout layout = {false, true, false, ""};
  CheckWmma({8, 8, 32}, kS4, kS32, kS32, layout);
  CheckWmma({8, 8, 32}, kU4, kS32, kS32, layout);
  CheckWmma({8, 8, 128}, kB1, kS32, kS32, layout, BitOperation::kXor);
  CheckWmma({8, 8, 128}, kB1, kS32, kS32, layout, BitOperation::kAnd);
}

}  // namespace
}  // namespace torpor::emulator
