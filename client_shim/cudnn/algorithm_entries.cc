#include <algorithm>
#include <vector>

#include "client_shim/c_entry.h"
#include "client_shim/core/call_tracer.h"
#include "client_shim/cudnn/handle_table.h"
#include "client_shim/cudnn/overrides.h"
#include "client_shim/cudnn/questions.h"
#include "nvidia/cudnn/shapes.h"
#include "proto/cuda_api/cudnn_commands.h"
#include "proto/cuda_api/cudnn_values.h"

// The algorithms for a convolution, according to the executor's library.
namespace torpor::shim {
namespace {

enum Direction : std::uint32_t { kForward = 0, kData = 1, kFilter = 2 };

// The tensors of a convolution y = w * x, any of which may be the result.
struct Convolution {
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t convolution;
  cudnnTensorDescriptor_t y;
};

template <typename Performance>
cudnnStatus_t Ask(ClientCore& core, wire::CudnnConvolutionAlgorithms& command, int* returned,
                  Performance* performances) {
  const std::vector<std::uint8_t> fields = wire::Encoded(command);
  std::vector<std::uint8_t> encoded;
  const cudnnStatus_t status =
      CudnnQuestions::Get().Ask(core, wire::CudnnConvolutionAlgorithms::kCallId, fields, encoded);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  wire::CudnnConvolutionAlgorithmsResult result;
  wire::Reader reader(encoded);
  reader(result);
  if (!reader.done() || result.algorithms.size() > command.requested)
    return CUDNN_STATUS_INTERNAL_ERROR;
  for (const wire::CudnnAlgorithm& found : result.algorithms) {
    *performances = {};
    performances->algo = static_cast<decltype(performances->algo)>(found.algorithm);
    performances->status = static_cast<cudnnStatus_t>(found.status);
    performances->time = found.time_ms;
    performances->memory = found.workspace_bytes;
    performances->determinism = static_cast<cudnnDeterminism_t>(found.determinism);
    performances->mathType = static_cast<cudnnMathType_t>(found.math_type);
    ++performances;
  }
  *returned = static_cast<int>(result.algorithms.size());
  return CUDNN_STATUS_SUCCESS;
}

template <typename Performance>
cudnnStatus_t Algorithms(cudnnHandle_t handle, Direction direction, bool is_measured,
                         const Convolution& given, int requested, int* returned,
                         Performance* performances,
                         const char* entry = __builtin_FUNCTION()) noexcept {
  const TracedCall traced(entry);
  const CudnnHandle* const found = CudnnHandleTable::Get().Find(handle);
  if (!found) return CUDNN_STATUS_NOT_INITIALIZED;
  if (!given.x || !given.w || !given.convolution || !given.y || !returned || !performances)
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (requested < 1 || !DnnIsValid(*given.x) || !DnnIsValid(*given.w) ||
      !DnnIsValid(*given.convolution) || !DnnIsValid(*given.y)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  return WithoutExceptions<CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED>([&] {
    wire::CudnnConvolutionAlgorithms command;
    command.direction = direction;
    command.is_measured = is_measured ? 1 : 0;
    command.x = *given.x;
    command.w = *given.w;
    command.convolution = *given.convolution;
    command.y = *given.y;
    command.requested = static_cast<std::uint32_t>(std::min(requested, wire::kMaxDnnAlgorithms));
    return Ask(*found->core, command, returned, performances);
  });
}

// Keeps the algorithms for which the program's workspace suffices. The executor's library measures
// algorithms on memory of its own.
template <typename Performance>
cudnnStatus_t AlgorithmsWithin(std::size_t workspace_bytes, cudnnHandle_t handle,
                               Direction direction, const Convolution& given, int requested,
                               int* returned, Performance* performances) noexcept {
  const cudnnStatus_t status =
      Algorithms(handle, direction, true, given, requested, returned, performances);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const Performance* const end =
      std::remove_if(performances, performances + *returned,
                     [&](const Performance& one) { return one.memory > workspace_bytes; });
  *returned = static_cast<int>(end - performances);
  return status;
}

cudnnStatus_t PutCount(cudnnHandle_t handle, int value, int* count) {
  if (!CudnnHandleTable::Get().Find(handle)) return CUDNN_STATUS_NOT_INITIALIZED;
  if (!count) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *count = value;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT: the rest only defines the C interface

// Counts each algorithm with and without tensor cores.
cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return PutCount(handle, 2 * CUDNN_CONVOLUTION_FWD_ALGO_COUNT, count);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return PutCount(handle, 2 * CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, count);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return PutCount(handle, 2 * CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, count);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
    const cudnnFilterDescriptor_t filterDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t destDesc, const int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionFwdAlgoPerf_t* perfResults) {
  return Algorithms(handle, kForward, false, {srcDesc, filterDesc, convDesc, destDesc},
                    requestedAlgoCount, returnedAlgoCount, perfResults);
}
cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnFilterDescriptor_t wDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t yDesc,
    const int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionFwdAlgoPerf_t* perfResults) {
  return Algorithms(handle, kForward, true, {xDesc, wDesc, convDesc, yDesc}, requestedAlgoCount,
                    returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc,
    const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t gradDesc, const int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t* perfResults) {
  return Algorithms(handle, kData, false, {gradDesc, filterDesc, convDesc, diffDesc},
                    requestedAlgoCount, returnedAlgoCount, perfResults);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t dxDesc,
    const int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t* perfResults) {
  return Algorithms(handle, kData, true, {dxDesc, wDesc, convDesc, dyDesc}, requestedAlgoCount,
                    returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
    const cudnnTensorDescriptor_t diffDesc, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnFilterDescriptor_t gradDesc, const int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionBwdFilterAlgoPerf_t* perfResults) {
  return Algorithms(handle, kFilter, false, {srcDesc, gradDesc, convDesc, diffDesc},
                    requestedAlgoCount, returnedAlgoCount, perfResults);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnFilterDescriptor_t dwDesc,
    const int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionBwdFilterAlgoPerf_t* perfResults) {
  return Algorithms(handle, kFilter, true, {xDesc, dwDesc, convDesc, dyDesc}, requestedAlgoCount,
                    returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void*,
    const cudnnFilterDescriptor_t wDesc, const void*, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t yDesc, void*, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults, void*,
    size_t workSpaceSizeInBytes) {
  return AlgorithmsWithin(workSpaceSizeInBytes, handle, kForward, {xDesc, wDesc, convDesc, yDesc},
                          requestedAlgoCount, returnedAlgoCount, perfResults);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc, const void*,
    const cudnnTensorDescriptor_t dyDesc, const void*, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t dxDesc, void*, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t* perfResults, void*,
    size_t workSpaceSizeInBytes) {
  return AlgorithmsWithin(workSpaceSizeInBytes, handle, kData, {dxDesc, wDesc, convDesc, dyDesc},
                          requestedAlgoCount, returnedAlgoCount, perfResults);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void*,
    const cudnnTensorDescriptor_t dyDesc, const void*, const cudnnConvolutionDescriptor_t convDesc,
    const cudnnFilterDescriptor_t dwDesc, void*, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t* perfResults, void*,
    size_t workSpaceSizeInBytes) {
  return AlgorithmsWithin(workSpaceSizeInBytes, handle, kFilter, {xDesc, dwDesc, convDesc, dyDesc},
                          requestedAlgoCount, returnedAlgoCount, perfResults);
}
