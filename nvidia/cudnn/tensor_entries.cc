// The C entries that create, change and read the descriptors of tensors and filters. Both the
// replacement library and the emulated library compile this file.
#include <cudnn.h>

#include <algorithm>

#include "nvidia/cudnn/descriptor_entries.h"
#include "nvidia/cudnn/descriptors.h"
#include "nvidia/cudnn/shapes.h"

namespace torpor {
namespace {

constexpr bool IsFormat(int format) {
  return format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC;
}

// Whether elements share bytes or lie in vectors; such tensors are not supported.
bool IsPacked(int format, int type) {
  return format == CUDNN_TENSOR_NCHW_VECT_C || type == CUDNN_DATA_INT8x4 ||
         type == CUDNN_DATA_UINT8x4 || type == CUDNN_DATA_INT8x32 || type == CUDNN_DATA_FP4_E2M1 ||
         type == CUDNN_DATA_INT4 || type == CUDNN_DATA_UINT4;
}

cudnnStatus_t SetDense(cudnnTensorDescriptor_t tensor, int format, int type, int rank,
                       const int* dims) {
  if (IsPacked(format, type)) return CUDNN_STATUS_NOT_SUPPORTED;
  DnnDims read{};
  if (!IsFormat(format) || !DnnReadDims(dims, rank, read)) return CUDNN_STATUS_BAD_PARAM;
  return DnnSet(tensor, DnnDense(type, format, rank, read));
}

cudnnStatus_t SetStrided(cudnnTensorDescriptor_t tensor, int type, int rank, const int* dims,
                         const int* strides) {
  if (IsPacked(CUDNN_TENSOR_NCHW, type)) return CUDNN_STATUS_NOT_SUPPORTED;
  DnnTensor value{.type = type, .rank = rank};
  if (!DnnReadDims(dims, rank, value.dims) || !DnnReadDims(strides, rank, value.strides)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  return DnnSet(tensor, value);
}

cudnnStatus_t SetFilter(cudnnFilterDescriptor_t filter, int type, int format, int rank,
                        const int* dims) {
  if (IsPacked(format, type)) return CUDNN_STATUS_NOT_SUPPORTED;
  DnnFilter value{.type = type, .format = format, .rank = rank};
  if (!DnnReadDims(dims, rank, value.dims)) return CUDNN_STATUS_BAD_PARAM;
  return DnnSet(filter, value);
}

// Derives the tensor of scale, bias and statistics: one per channel, or one per activation.
cudnnStatus_t Derive(cudnnTensorDescriptor_t derived, cudnnTensorDescriptor_t x,
                     bool per_activation) {
  if (derived == nullptr || x == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!DnnIsValid(*x) || x->rank < 4) return CUDNN_STATUS_BAD_PARAM;
  DnnDims dims = x->dims;
  dims[0] = 1;
  for (int i = 2; i < x->rank && !per_activation; ++i) dims[i] = 1;
  const int type = x->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  return DnnSet(derived, DnnDense(type, CUDNN_TENSOR_NCHW, x->rank, dims));
}

}  // namespace
}  // namespace torpor

using namespace torpor;  // NOLINT: the rest only defines the C interface

#pragma GCC visibility push(default)
extern "C" {

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  return DnnCreate(tensor);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return DnnDestroy(tensor);
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  const int dims[] = {n, c, h, w};
  return SetDense(tensor, format, type, 4, dims);
}
cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                                           int n, int c, int h, int w, int n_stride, int c_stride,
                                           int h_stride, int w_stride) {
  const int dims[] = {n, c, h, w};
  const int strides[] = {n_stride, c_stride, h_stride, w_stride};
  return SetStrided(tensor, type, 4, dims, strides);
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                                         int rank, const int* dims, const int* strides) {
  return SetStrided(tensor, type, rank, dims, strides);
}
cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensor,
                                           cudnnTensorFormat_t format, cudnnDataType_t type,
                                           int rank, const int* dims) {
  return SetDense(tensor, format, type, rank, dims);
}
cudnnStatus_t cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t tensor,
                                         cudnnDataType_t* type, int* n, int* c, int* h, int* w,
                                         int* n_stride, int* c_stride, int* h_stride,
                                         int* w_stride) {
  if (tensor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (tensor->rank != 4) return CUDNN_STATUS_BAD_PARAM;
  DnnPut(type, tensor->type);
  int* const sizes[] = {n, c, h, w};
  int* const strides[] = {n_stride, c_stride, h_stride, w_stride};
  for (int i = 0; i < 4; ++i) {
    DnnPut(sizes[i], tensor->dims[i]);
    DnnPut(strides[i], tensor->strides[i]);
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor, int requested,
                                         cudnnDataType_t* type, int* rank, int* dims,
                                         int* strides) {
  if (tensor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (requested < 0) return CUDNN_STATUS_BAD_PARAM;
  DnnPut(type, tensor->type);
  DnnPut(rank, tensor->rank);
  DnnWriteDims(tensor->dims, std::min(requested, tensor->rank), dims);
  DnnWriteDims(tensor->strides, std::min(requested, tensor->rank), strides);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t tensor, size_t* bytes) {
  if (tensor == nullptr || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *bytes = tensor->rank == 0 ? 0 : DnnBytes(*tensor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived,
                                            const cudnnTensorDescriptor_t x,
                                            cudnnBatchNormMode_t mode) {
  return Derive(derived, x, mode == CUDNN_BATCHNORM_PER_ACTIVATION);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  return DnnCreate(filter);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  return DnnDestroy(filter);
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  const int dims[] = {k, c, h, w};
  return SetFilter(filter, type, format, 4, dims);
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int* dims) {
  return SetFilter(filter, type, format, rank, dims);
}
cudnnStatus_t cudnnGetFilter4dDescriptor(const cudnnFilterDescriptor_t filter,
                                         cudnnDataType_t* type, cudnnTensorFormat_t* format, int* k,
                                         int* c, int* h, int* w) {
  if (filter == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (filter->rank != 4) return CUDNN_STATUS_BAD_PARAM;
  DnnPut(type, filter->type);
  DnnPut(format, filter->format);
  int* const sizes[] = {k, c, h, w};
  for (int i = 0; i < 4; ++i) DnnPut(sizes[i], filter->dims[i]);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filter, int requested,
                                         cudnnDataType_t* type, cudnnTensorFormat_t* format,
                                         int* rank, int* dims) {
  if (filter == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (requested < 0) return CUDNN_STATUS_BAD_PARAM;
  DnnPut(type, filter->type);
  DnnPut(format, filter->format);
  DnnPut(rank, filter->rank);
  DnnWriteDims(filter->dims, std::min(requested, filter->rank), dims);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t filter, size_t* bytes) {
  if (filter == nullptr || bytes == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *bytes = filter->rank == 0 ? 0 : DnnBytes(*filter);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
