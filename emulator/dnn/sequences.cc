#include "emulator/dnn/sequences.h"

#include <algorithm>

#include "emulator/dnn/tensor_values.h"
#include "nvidia/cudnn/recurrent_checks.h"

namespace torpor::emulator {
namespace {

// Contiguous elements as a tensor of one dimension.
DnnTensor Line(std::int32_t type, std::size_t count) {
  return {.type = type, .rank = 1, .dims = {static_cast<std::int32_t>(count)}, .strides = {1}};
}

// Calls visit(index of the vector in memory, index among the dense values) for each vector.
template <typename Visit>
void ForEachVector(const DnnRnnData& shape, Visit visit) {
  const auto batch = static_cast<std::size_t>(shape.batch);
  const auto max_steps = static_cast<std::size_t>(shape.max_steps);
  std::size_t packed = 0;
  for (std::size_t step = 0; step < max_steps; ++step) {
    for (std::size_t i = 0; i < batch; ++i) {
      if (step >= static_cast<std::size_t>(shape.lengths[i])) continue;
      const std::size_t value = step * batch + i;
      switch (shape.layout) {
        case CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED:
          visit(packed++, value);
          break;
        case CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED:
          visit(i * max_steps + step, value);
          break;
        default:
          visit(value, value);
      }
    }
  }
}

}  // namespace

template <typename T>
std::vector<T> LoadElements(std::int32_t type, const void* data, std::size_t count) {
  return count == 0 ? std::vector<T>() : LoadTensor<T>(Line(type, count), data);
}

template <typename T>
void StoreElements(std::int32_t type, void* data, const std::vector<T>& values) {
  if (!values.empty()) StoreTensor(Line(type, values.size()), data, values);
}

template <typename T>
std::vector<T> LoadSequences(const DnnRnnData& shape, const void* data) {
  const auto size = static_cast<std::size_t>(shape.vector_size);
  const std::vector<T> stored = LoadElements<T>(shape.type, data, DnnRows(shape) * size);
  std::vector<T> values(static_cast<std::size_t>(shape.max_steps) *
                        static_cast<std::size_t>(shape.batch) * size);
  ForEachVector(shape, [&](std::size_t place, std::size_t value) {
    std::copy_n(stored.data() + place * size, size, values.data() + value * size);
  });
  return values;
}

// Elements outside the sequences keep their old values unless there is a filling.
template <typename T>
void StoreSequences(const DnnRnnData& shape, void* data, const std::vector<T>& values) {
  const auto size = static_cast<std::size_t>(shape.vector_size);
  const std::size_t count = DnnRows(shape) * size;
  std::vector<T> stored;
  if (shape.is_filled != 0) {
    alignas(double) const auto filling = shape.filling;
    stored.assign(count, LoadElements<T>(shape.type, filling.data(), 1).front());
  } else {
    stored = LoadElements<T>(shape.type, data, count);
  }
  ForEachVector(shape, [&](std::size_t place, std::size_t value) {
    std::copy_n(values.data() + value * size, size, stored.data() + place * size);
  });
  StoreElements(shape.type, data, stored);
}

#define TORPOR_SEQUENCES(T)                                                      \
  template std::vector<T> LoadSequences(const DnnRnnData&, const void*);         \
  template void StoreSequences(const DnnRnnData&, void*, const std::vector<T>&); \
  template std::vector<T> LoadElements(std::int32_t, const void*, std::size_t);  \
  template void StoreElements(std::int32_t, void*, const std::vector<T>&);
TORPOR_SEQUENCES(float)
TORPOR_SEQUENCES(double)

}  // namespace torpor::emulator
