#pragma once

#include <optional>
#include <string_view>

#include "emulator/ptx/type.h"

namespace torpor::ptx {

// The matrices of D = A * B + C.
enum class MatrixPart : std::uint8_t { kA, kB, kC, kD };

// A decoded wmma.load, wmma.store, wmma.mma or mma.sync: D = A * B + C, where A is m x k and B is k
// x n.
struct MatrixInstruction {
  enum class Action : std::uint8_t { kLoad, kStore, kMultiply };
  enum class BitOperation : std::uint8_t { kNone, kXor, kAnd };

  Action action = Action::kMultiply;
  bool wmma = false;  // the layout of fragments is the implementation's choice
  unsigned m = 0;
  unsigned n = 0;
  unsigned k = 0;
  // Multiply: the layouts of A and B. Load and store: `part`, with layout `column` and type `d`.
  bool a_column = false;
  bool b_column = false;
  MatrixPart part = MatrixPart::kD;
  bool column = false;
  Type d = Type::kNone;
  Type a = Type::kNone;
  Type b = Type::kNone;
  Type c = Type::kNone;
  bool saturates = false;
  BitOperation bit_operation = BitOperation::kNone;

  unsigned rows(MatrixPart of) const { return of == MatrixPart::kB ? k : m; }
  unsigned columns(MatrixPart of) const { return of == MatrixPart::kA ? k : n; }
  Type type(MatrixPart of) const;
  // The width of a fragment's registers: 32, or 64 for f64.
  unsigned register_bits(MatrixPart of) const { return type(of) == Type::kF64 ? 64 : 32; }
  // The number of a lane's registers with elements that no other register holds.
  unsigned distinct_registers(MatrixPart of) const;
  // The number of registers in the instruction; wmma repeats the elements of A and B in f16.
  unsigned registers(MatrixPart of) const;
};

// Returns nullopt for the spelling of another instruction, and for combinations of shape, types and
// layouts that PTX lacks.
std::optional<MatrixInstruction> DecodeMatrix(std::string_view spelling);

}  // namespace torpor::ptx
