#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/library/extent.h"
#include "nvidia/cudnn/descriptors.h"

// Tensors of any type and strides, as computations see them: dense, in the order of the dimensions,
// in float or double.
namespace torpor::emulator {

// Whether the emulator computes with elements of this type.
bool IsComputable(std::int32_t type);

std::size_t CountOf(const DnnTensor& tensor);
// Filters lie densely; of NHWC ones the channels are last.
DnnTensor AsTensor(const DnnFilter& filter);

template <typename T>
std::vector<T> LoadTensor(const DnnTensor& tensor, const void* data);

// alpha * values + beta * what is there, which is not looked at if beta is 0.
template <typename T>
void StoreTensor(const DnnTensor& tensor, void* data, const std::vector<T>& values,
                 double alpha = 1, double beta = 0);

Extent ReadExtent(const DnnTensor& tensor, const void* data);
Extent WrittenExtent(const DnnTensor& tensor, const void* data);

// Steps through all indices of some dimensions, the last one fastest.
class IndexWalk {
 public:
  IndexWalk(const std::int32_t* dims, int rank) : dims_(dims, dims + rank), index_(dims_.size()) {}

  const std::vector<std::int32_t>& index() const { return index_; }
  // False at the end.
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
