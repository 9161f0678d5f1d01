#include "emulator/dnn/tensor_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "emulator/library/half.h"
#include "nvidia/cudnn/shapes.h"

namespace torpor::emulator {
namespace {

// Rounds to nearest even and clamps to the range of the integer.
template <typename Integer>
Integer Saturated(double value) {
  return static_cast<Integer>(std::clamp(std::nearbyint(value),
                                         double{std::numeric_limits<Integer>::min()},
                                         double{std::numeric_limits<Integer>::max()}));
}

// Elements `stride` apart.
template <typename T>
void LoadRow(const void* data, std::int32_t type, std::int64_t first, std::int64_t stride,
             std::int64_t count, T* to) {
  const auto copy = [&](const auto* from) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[first + i * stride]);
  };
  const auto widen = [&](const std::uint16_t* from, auto convert) {
    for (std::int64_t i = 0; i < count; ++i) {
      float wide = 0;
      convert(from + first + i * stride, &wide, 1);
      to[i] = static_cast<T>(wide);
    }
  };
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return copy(static_cast<const float*>(data));
    case CUDNN_DATA_DOUBLE:
      return copy(static_cast<const double*>(data));
    case CUDNN_DATA_INT32:
      return copy(static_cast<const std::int32_t*>(data));
    case CUDNN_DATA_INT8:
      return copy(static_cast<const std::int8_t*>(data));
    case CUDNN_DATA_UINT8:
      return copy(static_cast<const std::uint8_t*>(data));
    case CUDNN_DATA_HALF:
      return widen(static_cast<const std::uint16_t*>(data), HalfToFloat);
    default:
      return widen(static_cast<const std::uint16_t*>(data), Bfloat16ToFloat);
  }
}

// Stores `count` values, converted to `type`, `stride` elements apart.
template <typename T>
void StoreRow(void* data, std::int32_t type, std::int64_t first, std::int64_t stride,
              std::int64_t count, const T* from) {
  const auto copy = [&](auto* to, auto convert) {
    for (std::int64_t i = 0; i < count; ++i) to[first + i * stride] = convert(from[i]);
  };
  const auto narrow = [&](std::uint16_t* to, auto convert) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(from[i]);
      convert(&value, to + first + i * stride, 1);
    }
  };
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return copy(static_cast<float*>(data), [](T value) { return static_cast<float>(value); });
    case CUDNN_DATA_DOUBLE:
      return copy(static_cast<double*>(data), [](T value) { return double{value}; });
    case CUDNN_DATA_INT32:
      return copy(static_cast<std::int32_t*>(data), Saturated<std::int32_t>);
    case CUDNN_DATA_INT8:
      return copy(static_cast<std::int8_t*>(data), Saturated<std::int8_t>);
    case CUDNN_DATA_UINT8:
      return copy(static_cast<std::uint8_t*>(data), Saturated<std::uint8_t>);
    case CUDNN_DATA_HALF:
      return narrow(static_cast<std::uint16_t*>(data), FloatToHalf);
    default:
      return narrow(static_cast<std::uint16_t*>(data), FloatToBfloat16);
  }
}

// Calls row(index of the first element in memory, index among the dense values) for each row of the
// last dimension.
template <typename Row>
void ForEachRow(const DnnTensor& tensor, Row row) {
  const std::int32_t length = tensor.dims[tensor.rank - 1];
  IndexWalk walk(tensor.dims.data(), tensor.rank - 1);
  std::int64_t dense = 0;
  do {
    std::int64_t first = 0;
    for (int i = 0; i + 1 < tensor.rank; ++i) {
      first += std::int64_t{walk.index()[static_cast<std::size_t>(i)]} * tensor.strides[i];
    }
    row(first, dense);
    dense += length;
  } while (walk.Next());
}

}  // namespace

bool IsComputable(std::int32_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
    case CUDNN_DATA_INT32:
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
      return true;
    default:
      return false;
  }
}

std::size_t CountOf(const DnnTensor& tensor) {
  std::size_t count = 1;
  for (int i = 0; i < tensor.rank; ++i) count *= static_cast<std::size_t>(tensor.dims[i]);
  return count;
}

DnnTensor AsTensor(const DnnFilter& filter) {
  return DnnDense(filter.type, filter.format, filter.rank, filter.dims);
}

template <typename T>
std::vector<T> LoadTensor(const DnnTensor& tensor, const void* data) {
  std::vector<T> values(CountOf(tensor));
  const int last = tensor.rank - 1;
  ForEachRow(tensor, [&](std::int64_t first, std::int64_t dense) {
    LoadRow(data, tensor.type, first, tensor.strides[last], tensor.dims[last],
            values.data() + dense);
  });
  return values;
}

// Works row by row, so that beta needs no copy of the whole tensor.
template <typename T>
void StoreTensor(const DnnTensor& tensor, void* data, const std::vector<T>& values, double alpha,
                 double beta) {
  const int last = tensor.rank - 1;
  const std::int64_t length = tensor.dims[last];
  std::vector<T> there(static_cast<std::size_t>(length));
  ForEachRow(tensor, [&](std::int64_t first, std::int64_t dense) {
    const T* row = values.data() + dense;
    if (alpha != 1 || beta != 0) {
      if (beta != 0) {
        LoadRow(data, tensor.type, first, tensor.strides[last], length, there.data());
      }
      for (std::size_t i = 0; i < there.size(); ++i) {
        const T kept = beta == 0 ? T(0) : static_cast<T>(beta) * there[i];
        there[i] = static_cast<T>(alpha) * row[i] + kept;
      }
      row = there.data();
    }
    StoreRow(data, tensor.type, first, tensor.strides[last], length, row);
  });
}

template std::vector<float> LoadTensor(const DnnTensor&, const void*);
template std::vector<double> LoadTensor(const DnnTensor&, const void*);
template void StoreTensor(const DnnTensor&, void*, const std::vector<float>&, double, double);
template void StoreTensor(const DnnTensor&, void*, const std::vector<double>&, double, double);

AccessExtent ReadExtent(const DnnTensor& tensor, const void* data) {
  return {data, DnnBytes(tensor), false};
}
AccessExtent WrittenExtent(const DnnTensor& tensor, const void* data) {
  return {data, DnnBytes(tensor), true};
}

}  // namespace torpor::emulator
