// The C entries of the spatial transformer's descriptor. Both the replacement library and the
// emulated library compile this file.
#include <algorithm>

#include "nvidia/cudnn/descriptor_entries.h"
#include "nvidia/cudnn/spatial.h"

using namespace torpor;  // NOLINT: the rest only defines the C interface

#pragma GCC visibility push(default)
extern "C" {

cudnnStatus_t cudnnCreateSpatialTransformerDescriptor(
    cudnnSpatialTransformerDescriptor_t* transformer) {
  return DnnCreate(transformer);
}
cudnnStatus_t cudnnDestroySpatialTransformerDescriptor(
    cudnnSpatialTransformerDescriptor_t transformer) {
  return DnnDestroy(transformer);
}
cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(
    cudnnSpatialTransformerDescriptor_t transformer, cudnnSamplerType_t sampler,
    cudnnDataType_t type, int rank, const int* dims) {
  if (dims == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (rank != kDnnTransformedRank) return CUDNN_STATUS_NOT_SUPPORTED;  // as cuDNN's own calls
  DnnSpatialTransformer value{.sampler = sampler, .type = type};
  std::copy_n(dims, rank, value.dims.begin());
  return DnnSet(transformer, value);
}

}  // extern "C"
#pragma GCC visibility pop
