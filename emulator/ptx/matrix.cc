#include "emulator/ptx/matrix.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace torpor::ptx {
namespace {

using Action = MatrixInstruction::Action;
using BitOperation = MatrixInstruction::BitOperation;

constexpr unsigned kLanes = 32;

struct Shape {
  unsigned m;
  unsigned n;
  unsigned k;
};

// The shapes of a product with elements of A of one of these types.
struct Shapes {
  std::vector<Type> types;
  std::vector<Shape> wmma;
  std::vector<Shape> mma;
};

const std::vector<Shapes>& AllShapes() {
  static const std::vector<Shapes> table = {
      {{Type::kF16, Type::kBf16},
       {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}},
       {{16, 8, 8}, {16, 8, 16}}},
      {{Type::kS8, Type::kU8},
       {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}},
       {{8, 8, 16}, {16, 8, 16}, {16, 8, 32}}},
      {{Type::kTf32}, {{16, 16, 8}}, {{16, 8, 4}, {16, 8, 8}}},
      {{Type::kF64}, {{8, 8, 4}}, {{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}}},
      {{Type::kS4, Type::kU4}, {{8, 8, 32}}, {{8, 8, 32}, {16, 8, 32}, {16, 8, 64}}},
      {{Type::kB1}, {{8, 8, 128}}, {{8, 8, 128}, {16, 8, 128}, {16, 8, 256}}},
      {{Type::kE4m3, Type::kE5m2}, {}, {{16, 8, 16}, {16, 8, 32}}},
  };
  return table;
}

const Shapes* ShapesOf(Type type) {
  for (const Shapes& shapes : AllShapes()) {
    if (std::find(shapes.types.begin(), shapes.types.end(), type) != shapes.types.end()) {
      return &shapes;
    }
  }
  return nullptr;
}

bool IsIn(const std::vector<Shape>& shapes, const MatrixInstruction& matrix) {
  return std::any_of(shapes.begin(), shapes.end(), [&](const Shape& shape) {
    return shape.m == matrix.m && shape.n == matrix.n && shape.k == matrix.k;
  });
}

// Whether a product of `input` elements can be summed in `type`.
bool IsAccumulator(Type type, Type input) {
  switch (input) {
    case Type::kF64:
      return type == Type::kF64;
    case Type::kF16:
    case Type::kE4m3:
    case Type::kE5m2:
      return type == Type::kF16 || type == Type::kF32;
    case Type::kBf16:
    case Type::kTf32:
      return type == Type::kF32;
    default:
      return type == Type::kS32;
  }
}

// "m16n8k16"
bool ParseShape(std::string_view word, MatrixInstruction& matrix) {
  const char* at = word.data();
  const char* const end = at + word.size();
  for (auto [letter, number] : {std::pair{'m', &matrix.m}, {'n', &matrix.n}, {'k', &matrix.k}}) {
    if (at == end || *at != letter) return false;
    const auto parsed = std::from_chars(at + 1, end, *number);
    if (parsed.ec != std::errc()) return false;
    at = parsed.ptr;
  }
  return at == end;
}

// Decodes a spelling word by word, then checks the combination.
class Decoder {
 public:
  bool Decode(std::string_view spelling) {
    const std::string_view family = Next(spelling);
    if (family != "wmma" && family != "mma") return false;
    matrix_.wmma = family == "wmma";
    if (matrix_.wmma && !DecodeAction(spelling)) return false;
    while (!spelling.empty()) {
      if (!DecodeWord(Next(spelling))) return false;
    }
    return matrix_.action == Action::kMultiply ? FinishMultiply() : FinishTransfer();
  }

  const MatrixInstruction& matrix() const { return matrix_; }

 private:
  static std::string_view Next(std::string_view& rest) {
    const std::size_t end = rest.find('.');
    const std::string_view word = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    return word;
  }

  bool DecodeAction(std::string_view& rest) {
    const std::string_view action = Next(rest);
    if (action == "mma") return true;
    const std::string_view part = Next(rest);
    if (part.size() != 1 || part[0] < 'a' || part[0] > 'd') return false;
    matrix_.part = static_cast<MatrixPart>(part[0] - 'a');
    matrix_.action = action == "load" ? Action::kLoad : Action::kStore;
    return action == "load" ? part != "d" : action == "store" && part == "d";
  }

  bool DecodeWord(std::string_view word) {
    if (const auto type = ParseType(word)) {
      types_.push_back(*type);
    } else if (word == "row" || word == "col") {
      columns_.push_back(word == "col");
    } else if (word == "satfinite") {
      matrix_.saturates = true;
    } else if (word == "xor" || word == "and") {
      matrix_.bit_operation = word == "xor" ? BitOperation::kXor : BitOperation::kAnd;
    } else if (word != "sync" && word != "aligned" && word != "popc" && word != "rn" &&
               word != "global" && !word.starts_with("shared")) {
      return ParseShape(word, matrix_);
    }
    return true;
  }

  // Completes a load or store: one type and one layout, and a shape that some product has.
  bool FinishTransfer() {
    if (types_.size() != 1 || columns_.size() != 1) return false;
    matrix_.d = matrix_.a = matrix_.b = matrix_.c = types_[0];
    matrix_.column = columns_[0];
    if (matrix_.part <= MatrixPart::kB) {
      const Shapes* shapes = ShapesOf(types_[0]);
      const bool narrow = BitWidth(types_[0]) < 8;
      // Lines of parts of a byte run along k.
      if (narrow && matrix_.column != (matrix_.part == MatrixPart::kB)) return false;
      return shapes != nullptr && IsIn(shapes->wmma, matrix_);
    }
    return std::any_of(AllShapes().begin(), AllShapes().end(), [&](const Shapes& shapes) {
      return IsIn(shapes.wmma, matrix_) && IsAccumulator(types_[0], shapes.types[0]);
    });
  }

  // Completes a product: two types mean f16 for A and B, and the combination must exist.
  bool FinishMultiply() {
    if (columns_.size() != 2) return false;
    matrix_.a_column = columns_[0];
    matrix_.b_column = columns_[1];
    if (types_.size() == 2) {
      types_ = {types_[0], Type::kF16, Type::kF16, types_[1]};
    }
    if (types_.size() != 4) return false;
    matrix_.d = types_[0];
    matrix_.a = types_[1];
    matrix_.b = types_[2];
    matrix_.c = types_[3];
    const Shapes* shapes = ShapesOf(matrix_.a);
    const bool plain_layout = !matrix_.a_column && matrix_.b_column;
    const bool needs_plain = !matrix_.wmma || BitWidth(matrix_.a) < 8;
    const bool bits = matrix_.a == Type::kB1;
    return shapes != nullptr && ShapesOf(matrix_.b) == shapes &&
           BitWidth(matrix_.a) == BitWidth(matrix_.b) &&
           (matrix_.a == matrix_.b || BitWidth(matrix_.a) <= 8) &&
           IsIn(matrix_.wmma ? shapes->wmma : shapes->mma, matrix_) &&
           IsAccumulator(matrix_.c, matrix_.a) && IsAccumulator(matrix_.d, matrix_.a) &&
           (plain_layout || !needs_plain) && bits == (matrix_.bit_operation != BitOperation::kNone);
  }

  MatrixInstruction matrix_;
  std::vector<Type> types_;
  std::vector<bool> columns_;
};

}  // namespace

Type MatrixInstruction::type(MatrixPart of) const {
  switch (of) {
    case MatrixPart::kA:
      return a;
    case MatrixPart::kB:
      return b;
    case MatrixPart::kC:
      return c;
    case MatrixPart::kD:
      break;
  }
  return d;
}

unsigned MatrixInstruction::distinct_registers(MatrixPart of) const {
  return rows(of) * columns(of) * BitWidth(type(of)) / (kLanes * register_bits(of));
}

unsigned MatrixInstruction::registers(MatrixPart of) const {
  const bool repeated = wmma && of <= MatrixPart::kB && type(of) == Type::kF16;
  return repeated ? 8 : distinct_registers(of);
}

std::optional<MatrixInstruction> DecodeMatrix(std::string_view spelling) {
  Decoder decoder;
  if (!decoder.Decode(spelling)) return std::nullopt;
  return decoder.matrix();
}

}  // namespace torpor::ptx
