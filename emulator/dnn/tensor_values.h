#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/library/extent.h"
#include "nvidia/cudnn/descriptors.h"

// Conversion of tensors of any type and strides to and from dense values, in the order of the
// dimensions, in float or double.
namespace torpor::emulator {

// Whether the emulator computes with elements of this type.
bool IsComputable(std::int32_t type);

// Number of elements.
std::size_t CountOf(const DnnTensor& tensor);
// Describes a filter as a dense tensor; the channels of NHWC filters come last.
DnnTensor AsTensor(const DnnFilter& filter);

template <typename T>
std::vector<T> LoadTensor(const DnnTensor& tensor, const void* data);

// Stores alpha * values + beta * old values. With beta 0 the old values are not read.
template <typename T>
void StoreTensor(const DnnTensor& tensor, void* data, const std::vector<T>& values,
                 double alpha = 1, double beta = 0);

// The memory that a call reads or writes, from the first to the last element.
AccessExtent ReadExtent(const DnnTensor& tensor, const void* data);
AccessExtent WrittenExtent(const DnnTensor& tensor, const void* data);

// Enumerates all indices of some dimensions, the last dimension fastest.
class IndexWalk {
 public:
  IndexWalk(const std::int32_t* dims, int rank) : dims_(dims, dims + rank), index_(dims_.size()) {}

  const std::vector<std::int32_t>& index() const { return index_; }
  // Advances; returns false at the end.
  bool Next() {
    for (std::size_t i = dims_.size(); i-- > 0;) {
      if (++index_[i] < dims_[i]) return true;
      index_[i] = 0;
    }
    return false;
  }

 private:
  const std::vector<std::int32_t> dims_;
  std::vector<std::int32_t> index_;
};

}  // namespace torpor::emulator
