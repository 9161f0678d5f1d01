#pragma once

#include <cudnn.h>

#include <algorithm>
#include <new>

#include "nvidia/cudnn/shapes.h"

// Building blocks of the C entries of descriptors.
namespace torpor {

// Allocates a descriptor, owned by the program until DnnDestroy.
template <typename Descriptor>
cudnnStatus_t DnnCreate(Descriptor** descriptor) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *descriptor = new (std::nothrow) Descriptor;
  return *descriptor == nullptr ? CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
                                : CUDNN_STATUS_SUCCESS;
}

template <typename Descriptor>
cudnnStatus_t DnnDestroy(Descriptor* descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

// Assigns `value` to the descriptor, or returns CUDNN_STATUS_BAD_PARAM if the value is invalid.
template <typename Descriptor, typename Value>
cudnnStatus_t DnnSet(Descriptor* descriptor, const Value& value) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!DnnIsValid(value)) return CUDNN_STATUS_BAD_PARAM;
  static_cast<Value&>(*descriptor) = value;
  return CUDNN_STATUS_SUCCESS;
}

// Writes a result unless the program passed null.
template <typename To, typename From>
void DnnPut(To* to, From value) {
  if (to != nullptr) *to = static_cast<To>(value);
}

// Copies `rank` dimensions from the program; returns false for null and for illegal ranks.
inline bool DnnReadDims(const int* from, int rank, DnnDims& dims) {
  if (from == nullptr || !DnnRankIsValid(rank)) return false;
  std::copy_n(from, rank, dims.begin());
  return true;
}

// Copies `rank` dimensions, at most kDnnMaxDims, to the program unless the program passed null.
inline void DnnWriteDims(const DnnDims& dims, int rank, int* to) {
  if (to != nullptr) std::copy_n(dims.begin(), rank, to);
}

}  // namespace torpor
