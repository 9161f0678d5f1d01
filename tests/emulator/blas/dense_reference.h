#pragma once

#include <cublas_v2.h>

#include <complex>
#include <cstdint>
#include <vector>

// What cuBLAS's functions compute, told in dense matrices of complex<double> and plain loops.
namespace torpor::emulator {

using Wide = std::complex<double>;

// A matrix of its own, or a view of nothing else.
class Dense {
 public:
  Dense(int rows, int columns)
      : rows_(rows),
        columns_(columns),
        elements_(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns)) {}

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  Wide& operator()(int row, int column) { return elements_[Place(row, column)]; }
  const Wide& operator()(int row, int column) const { return elements_[Place(row, column)]; }

 private:
  std::size_t Place(int row, int column) const {
    return static_cast<std::size_t>(row) +
           static_cast<std::size_t>(column) * static_cast<std::size_t>(rows_);
  }

  int rows_;
  int columns_;
  std::vector<Wide> elements_;
};

template <typename Element>
Dense Make(int rows, int columns, Element element) {
  Dense matrix(rows, columns);
  for (int column = 0; column < columns; ++column) {
    for (int row = 0; row < rows; ++row) matrix(row, column) = element(row, column);
  }
  return matrix;
}

// Readings of what is stored.

template <typename T>
Wide At(const std::vector<T>& stored, std::int64_t index) {
  return Wide(stored.at(static_cast<std::size_t>(index)));
}

template <typename T>
Dense General(const std::vector<T>& a, int rows, int columns, int leading) {
  return Make(rows, columns, [&](int row, int column) { return At(a, row + column * leading); });
}

// Element i of a vector of n: with a negative increment the last is stored first.
inline int Step(int i, int n, int increment) {
  return increment * (increment < 0 ? i - (n - 1) : i);
}
template <typename T>
Dense Column(const std::vector<T>& x, int n, int increment) {
  return Make(n, 1, [&](int row, int) { return At(x, Step(row, n, increment)); });
}

inline bool IsStored(cublasFillMode_t fill, int row, int column) {
  return fill == CUBLAS_FILL_MODE_LOWER ? row >= column : row <= column;
}

// From one half of `full`, of which the other may hold anything.
inline Dense Symmetric(const Dense& full, cublasFillMode_t fill) {
  return Make(full.rows(), full.rows(), [&](int row, int column) {
    return IsStored(fill, row, column) ? full(row, column) : full(column, row);
  });
}
inline Dense Hermitian(const Dense& full, cublasFillMode_t fill) {
  return Make(full.rows(), full.rows(), [&](int row, int column) {
    if (row == column) return Wide(full(row, row).real());
    return IsStored(fill, row, column) ? full(row, column) : std::conj(full(column, row));
  });
}
inline Dense Triangle(const Dense& full, cublasFillMode_t fill, cublasDiagType_t diagonal) {
  return Make(full.rows(), full.rows(), [&](int row, int column) {
    if (row == column && diagonal == CUBLAS_DIAG_UNIT) return Wide(1);
    return IsStored(fill, row, column) ? full(row, column) : Wide(0);
  });
}

// A matrix of `rows` rows from its diagonals: element (i, j) is in row ku + i - j.
template <typename T>
Dense Band(const std::vector<T>& a, int rows, int columns, int kl, int ku, int leading) {
  return Make(rows, columns, [&](int row, int column) {
    const bool inside = row - column <= kl && column - row <= ku;
    return inside ? At(a, ku + row - column + column * leading) : Wide(0);
  });
}

// The half that is packed; the other is zero.
template <typename T>
Dense Packed(const std::vector<T>& packed, int n, cublasFillMode_t fill) {
  Dense full(n, n);
  int next = 0;
  for (int column = 0; column < n; ++column) {
    for (int row = 0; row < n; ++row) {
      if (IsStored(fill, row, column)) full(row, column) = At(packed, next++);
    }
  }
  return full;
}

// Arithmetic.

inline Dense Op(const Dense& a, cublasOperation_t op) {
  if (op == CUBLAS_OP_N) return a;
  return Make(a.columns(), a.rows(), [&](int row, int column) {
    return op == CUBLAS_OP_C ? std::conj(a(column, row)) : a(column, row);
  });
}

inline Dense operator*(const Dense& a, const Dense& b) {
  return Make(a.rows(), b.columns(), [&](int row, int column) {
    Wide sum = 0;
    for (int i = 0; i < a.columns(); ++i) sum += a(row, i) * b(i, column);
    return sum;
  });
}
inline Dense operator*(Wide factor, const Dense& a) {
  return Make(a.rows(), a.columns(), [&](int row, int column) { return factor * a(row, column); });
}
inline Dense operator+(const Dense& a, const Dense& b) {
  return Make(a.rows(), a.columns(),
              [&](int row, int column) { return a(row, column) + b(row, column); });
}

}  // namespace torpor::emulator
