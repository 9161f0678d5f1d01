// The C entries that create, change and read the descriptors of operations. Both the replacement
// library and the emulated library compile this file.
#include <cudnn.h>

#include <algorithm>

#include "nvidia/cudnn/descriptor_entries.h"
#include "nvidia/cudnn/descriptors.h"
#include "nvidia/cudnn/shapes.h"

namespace torpor {
namespace {

// Sets all values of a convolution at once, or none if any is invalid.
cudnnStatus_t SetConvolution(cudnnConvolutionDescriptor_t convolution, int rank, const int* padding,
                             const int* strides, const int* dilation, int mode, int compute_type) {
  if (convolution == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  DnnConvolution value = *convolution;  // keeps math type, groups and reordering
  value.rank = rank;
  value.mode = mode;
  value.compute_type = compute_type;
  if (!DnnReadDims(padding, rank, value.padding) || !DnnReadDims(strides, rank, value.strides) ||
      !DnnReadDims(dilation, rank, value.dilation)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  return DnnSet(convolution, value);
}

// Sets all values of a pooling at once, or none if any is invalid.
cudnnStatus_t SetPooling(cudnnPoolingDescriptor_t pooling, int mode, int nan, int rank,
                         const int* window, const int* padding, const int* strides) {
  DnnPooling value{.mode = mode, .nan = nan, .rank = rank};
  if (!DnnReadDims(window, rank, value.window) || !DnnReadDims(padding, rank, value.padding) ||
      !DnnReadDims(strides, rank, value.strides)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  return DnnSet(pooling, value);
}

// Changes one member to a value within [min, max].
template <typename Descriptor, typename Value>
cudnnStatus_t SetMember(Descriptor* descriptor, std::int32_t Value::*member, int value, int min,
                        int max) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (value < min || value > max) return CUDNN_STATUS_BAD_PARAM;
  descriptor->*member = value;
  return CUDNN_STATUS_SUCCESS;
}

// Returns one member, converted to the program's type.
template <typename Descriptor, typename Value, typename Member, typename To>
cudnnStatus_t GetMember(const Descriptor* descriptor, Member Value::*member, To* to) {
  if (descriptor == nullptr || to == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *to = static_cast<To>(descriptor->*member);
  return CUDNN_STATUS_SUCCESS;
}

// Returns the dimensions of a result; fails if the program has room for fewer.
cudnnStatus_t PutDims(bool valid, const DnnDims& dims, int rank, int given, int* to) {
  if (!valid || to == nullptr || given < rank) return CUDNN_STATUS_BAD_PARAM;
  DnnWriteDims(dims, rank, to);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace torpor

using namespace torpor;  // NOLINT: the rest only defines the C interface

#pragma GCC visibility push(default)
extern "C" {

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
  return DnnCreate(convolution);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  return DnnDestroy(convolution);
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h,
                                              int pad_w, int stride_h, int stride_w, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute_type) {
  const int padding[] = {pad_h, pad_w};
  const int strides[] = {stride_h, stride_w};
  const int dilation[] = {dilation_h, dilation_w};
  return SetConvolution(convolution, 2, padding, strides, dilation, mode, compute_type);
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convolution, int rank,
                                              const int* padding, const int* strides,
                                              const int* dilation, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute_type) {
  return SetConvolution(convolution, rank, padding, strides, dilation, mode, compute_type);
}
cudnnStatus_t cudnnGetConvolution2dDescriptor(const cudnnConvolutionDescriptor_t convolution,
                                              int* pad_h, int* pad_w, int* stride_h, int* stride_w,
                                              int* dilation_h, int* dilation_w,
                                              cudnnConvolutionMode_t* mode,
                                              cudnnDataType_t* compute_type) {
  if (convolution == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (convolution->rank != 2) return CUDNN_STATUS_BAD_PARAM;
  DnnPut(pad_h, convolution->padding[0]);
  DnnPut(pad_w, convolution->padding[1]);
  DnnPut(stride_h, convolution->strides[0]);
  DnnPut(stride_w, convolution->strides[1]);
  DnnPut(dilation_h, convolution->dilation[0]);
  DnnPut(dilation_w, convolution->dilation[1]);
  DnnPut(mode, convolution->mode);
  DnnPut(compute_type, convolution->compute_type);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionNdDescriptor(const cudnnConvolutionDescriptor_t convolution,
                                              int max, int* rank, int* padding, int* strides,
                                              int* dilation, cudnnConvolutionMode_t* mode,
                                              cudnnDataType_t* compute_type) {
  if (convolution == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (max < 0) return CUDNN_STATUS_BAD_PARAM;
  const int count = std::min(max, convolution->rank);
  DnnPut(rank, convolution->rank);
  DnnWriteDims(convolution->padding, count, padding);
  DnnWriteDims(convolution->strides, count, strides);
  DnnWriteDims(convolution->dilation, count, dilation);
  DnnPut(mode, convolution->mode);
  DnnPut(compute_type, convolution->compute_type);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution,
                                          cudnnMathType_t type) {
  return SetMember(convolution, &DnnConvolution::math_type, type, 0, CUDNN_FMA_MATH);
}
cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t convolution,
                                          cudnnMathType_t* type) {
  return GetMember(convolution, &DnnConvolution::math_type, type);
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int count) {
  return SetMember(convolution, &DnnConvolution::groups, count, 1, INT32_MAX);
}
cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int* count) {
  return GetMember(convolution, &DnnConvolution::groups, count);
}
cudnnStatus_t cudnnSetConvolutionReorderType(cudnnConvolutionDescriptor_t convolution,
                                             cudnnReorderType_t reorder) {
  return SetMember(convolution, &DnnConvolution::reorder, reorder, 0, CUDNN_NO_REORDER);
}
cudnnStatus_t cudnnGetConvolutionReorderType(cudnnConvolutionDescriptor_t convolution,
                                             cudnnReorderType_t* reorder) {
  return GetMember(convolution, &DnnConvolution::reorder, reorder);
}
cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t convolution,
                                                    const cudnnTensorDescriptor_t x,
                                                    const cudnnFilterDescriptor_t w, int given,
                                                    int* dims) {
  if (convolution == nullptr || x == nullptr || w == nullptr) {
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  }
  DnnDims output{};
  return PutDims(DnnOutputDims(*convolution, *x, *w, output), output, x->rank, given, dims);
}
cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t convolution,
                                                    const cudnnTensorDescriptor_t x,
                                                    const cudnnFilterDescriptor_t filter, int* n,
                                                    int* c, int* h, int* w) {
  int dims[kDnnMaxDims] = {};
  const cudnnStatus_t status =
      cudnnGetConvolutionNdForwardOutputDim(convolution, x, filter, 4, dims);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  int* const sizes[] = {n, c, h, w};
  for (int i = 0; i < 4; ++i) DnnPut(sizes[i], dims[i]);
  return status;
}

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* pooling) {
  return DnnCreate(pooling);
}
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t pooling) {
  return DnnDestroy(pooling);
}
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int window_h, int window_w,
                                          int pad_h, int pad_w, int stride_h, int stride_w) {
  const int window[] = {window_h, window_w};
  const int padding[] = {pad_h, pad_w};
  const int strides[] = {stride_h, stride_w};
  return SetPooling(pooling, mode, nan, 2, window, padding, strides);
}
cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t pooling,
                                          const cudnnPoolingMode_t mode,
                                          const cudnnNanPropagation_t nan, int rank,
                                          const int* window, const int* padding,
                                          const int* strides) {
  return SetPooling(pooling, mode, nan, rank, window, padding, strides);
}
cudnnStatus_t cudnnGetPooling2dDescriptor(const cudnnPoolingDescriptor_t pooling,
                                          cudnnPoolingMode_t* mode, cudnnNanPropagation_t* nan,
                                          int* window_h, int* window_w, int* pad_h, int* pad_w,
                                          int* stride_h, int* stride_w) {
  if (pooling == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (pooling->rank != 2) return CUDNN_STATUS_BAD_PARAM;
  DnnPut(mode, pooling->mode);
  DnnPut(nan, pooling->nan);
  DnnPut(window_h, pooling->window[0]);
  DnnPut(window_w, pooling->window[1]);
  DnnPut(pad_h, pooling->padding[0]);
  DnnPut(pad_w, pooling->padding[1]);
  DnnPut(stride_h, pooling->strides[0]);
  DnnPut(stride_w, pooling->strides[1]);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetPoolingNdDescriptor(const cudnnPoolingDescriptor_t pooling, int max,
                                          cudnnPoolingMode_t* mode, cudnnNanPropagation_t* nan,
                                          int* rank, int* window, int* padding, int* strides) {
  if (pooling == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (max < 0) return CUDNN_STATUS_BAD_PARAM;
  const int count = std::min(max, pooling->rank);
  DnnPut(mode, pooling->mode);
  DnnPut(nan, pooling->nan);
  DnnPut(rank, pooling->rank);
  DnnWriteDims(pooling->window, count, window);
  DnnWriteDims(pooling->padding, count, padding);
  DnnWriteDims(pooling->strides, count, strides);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetPoolingNdForwardOutputDim(const cudnnPoolingDescriptor_t pooling,
                                                const cudnnTensorDescriptor_t x, int given,
                                                int* dims) {
  if (pooling == nullptr || x == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  DnnDims output{};
  return PutDims(DnnOutputDims(*pooling, *x, output), output, x->rank, given, dims);
}
cudnnStatus_t cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t pooling,
                                                const cudnnTensorDescriptor_t x, int* n, int* c,
                                                int* h, int* w) {
  int dims[kDnnMaxDims] = {};
  const cudnnStatus_t status = cudnnGetPoolingNdForwardOutputDim(pooling, x, 4, dims);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  int* const sizes[] = {n, c, h, w};
  for (int i = 0; i < 4; ++i) DnnPut(sizes[i], dims[i]);
  return status;
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* activation) {
  return DnnCreate(activation);
}
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t activation) {
  return DnnDestroy(activation);
}
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activation,
                                           cudnnActivationMode_t mode, cudnnNanPropagation_t nan,
                                           double coefficient) {
  return DnnSet(activation, DnnActivation{.mode = mode, .nan = nan, .coefficient = coefficient});
}
cudnnStatus_t cudnnGetActivationDescriptor(const cudnnActivationDescriptor_t activation,
                                           cudnnActivationMode_t* mode, cudnnNanPropagation_t* nan,
                                           double* coefficient) {
  if (activation == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  DnnPut(mode, activation->mode);
  DnnPut(nan, activation->nan);
  DnnPut(coefficient, activation->coefficient);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activation,
                                                    double beta) {
  if (activation == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  activation->swish_beta = beta;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activation,
                                                    double* beta) {
  return GetMember(activation, &DnnActivation::swish_beta, beta);
}

cudnnStatus_t cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t* operation) {
  return DnnCreate(operation);
}
cudnnStatus_t cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t operation) {
  return DnnDestroy(operation);
}
cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t operation, cudnnOpTensorOp_t op,
                                         cudnnDataType_t compute_type, cudnnNanPropagation_t nan) {
  return DnnSet(operation, DnnOpTensor{.operation = op, .compute_type = compute_type, .nan = nan});
}
cudnnStatus_t cudnnGetOpTensorDescriptor(const cudnnOpTensorDescriptor_t operation,
                                         cudnnOpTensorOp_t* op, cudnnDataType_t* compute_type,
                                         cudnnNanPropagation_t* nan) {
  if (operation == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  DnnPut(op, operation->operation);
  DnnPut(compute_type, operation->compute_type);
  DnnPut(nan, operation->nan);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t* reduction) {
  return DnnCreate(reduction);
}
cudnnStatus_t cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduction) {
  return DnnDestroy(reduction);
}
cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduction,
                                             cudnnReduceTensorOp_t op, cudnnDataType_t compute_type,
                                             cudnnNanPropagation_t nan,
                                             cudnnReduceTensorIndices_t indices,
                                             cudnnIndicesType_t indices_type) {
  return DnnSet(reduction, DnnReduceTensor{.operation = op,
                                           .compute_type = compute_type,
                                           .nan = nan,
                                           .indices = indices,
                                           .indices_type = indices_type});
}
cudnnStatus_t cudnnGetReduceTensorDescriptor(const cudnnReduceTensorDescriptor_t reduction,
                                             cudnnReduceTensorOp_t* op,
                                             cudnnDataType_t* compute_type,
                                             cudnnNanPropagation_t* nan,
                                             cudnnReduceTensorIndices_t* indices,
                                             cudnnIndicesType_t* indices_type) {
  if (reduction == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  DnnPut(op, reduction->operation);
  DnnPut(compute_type, reduction->compute_type);
  DnnPut(nan, reduction->nan);
  DnnPut(indices, reduction->indices);
  DnnPut(indices_type, reduction->indices_type);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateLRNDescriptor(cudnnLRNDescriptor_t* norm) { return DnnCreate(norm); }
cudnnStatus_t cudnnDestroyLRNDescriptor(cudnnLRNDescriptor_t norm) { return DnnDestroy(norm); }
cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t norm, unsigned size, double alpha,
                                    double beta, double k) {
  if (k < CUDNN_LRN_MIN_K || beta < CUDNN_LRN_MIN_BETA) return CUDNN_STATUS_BAD_PARAM;
  return DnnSet(norm, DnnLrn{.size = size, .alpha = alpha, .beta = beta, .k = k});
}
cudnnStatus_t cudnnGetLRNDescriptor(cudnnLRNDescriptor_t norm, unsigned* size, double* alpha,
                                    double* beta, double* k) {
  if (norm == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  DnnPut(size, norm->size);
  DnnPut(alpha, norm->alpha);
  DnnPut(beta, norm->beta);
  DnnPut(k, norm->k);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
