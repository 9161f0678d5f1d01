#include <cudnn.h>

#include "client_shim/cudnn/handle_table.h"
#include "client_shim/cudnn/overrides.h"
#include "client_shim/unsupported.h"

// The extended forms of batch normalisation. Without activation and addition they equal the plain
// forms and need neither workspace nor reserved space.
namespace torpor::shim {
namespace {

cudnnStatus_t CheckPlain(cudnnBatchNormOps_t operations, const char* symbol) {
  if (operations == CUDNN_BATCHNORM_OPS_BN) return CUDNN_STATUS_SUCCESS;
  return static_cast<cudnnStatus_t>(Unsupported(symbol));
}

cudnnStatus_t NeedsNoBytes(cudnnHandle_t handle, cudnnBatchNormOps_t operations, const char* symbol,
                           std::size_t* bytes) {
  if (!CudnnHandleTable::Get().Find(handle)) return CUDNN_STATUS_NOT_INITIALIZED;
  if (!bytes) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  const cudnnStatus_t status = CheckPlain(operations, symbol);
  if (status == CUDNN_STATUS_SUCCESS) *bytes = 0;
  return status;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT: the rest only defines the C interface

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t bnOps,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnActivationDescriptor_t, size_t* sizeInBytes) {
  return NeedsNoBytes(handle, bnOps, __func__, sizeInBytes);
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t bnOps,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnActivationDescriptor_t, size_t* sizeInBytes) {
  return NeedsNoBytes(handle, bnOps, __func__, sizeInBytes);
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t bnOps,
    const cudnnActivationDescriptor_t, const cudnnTensorDescriptor_t, size_t* sizeInBytes) {
  return NeedsNoBytes(handle, bnOps, __func__, sizeInBytes);
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps, const void* alpha,
    const void* beta, const cudnnTensorDescriptor_t xDesc, const void* xData,
    const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t yDesc, void* yData,
    const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void* bnScale, const void* bnBias,
    double exponentialAverageFactor, void* resultRunningMean, void* resultRunningVariance,
    double epsilon, void* resultSaveMean, void* resultSaveInvVariance, cudnnActivationDescriptor_t,
    void*, size_t, void*, size_t) {
  const cudnnStatus_t status = CheckPlain(bnOps, __func__);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return cudnnBatchNormalizationForwardTraining(
      handle, mode, alpha, beta, xDesc, xData, yDesc, yData, bnScaleBiasMeanVarDesc, bnScale,
      bnBias, exponentialAverageFactor, resultRunningMean, resultRunningVariance, epsilon,
      resultSaveMean, resultSaveInvVariance);
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
    const void* alphaDataDiff, const void* betaDataDiff, const void* alphaParamDiff,
    const void* betaParamDiff, const cudnnTensorDescriptor_t xDesc, const void* xData,
    const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t dyDesc,
    const void* dyData, const cudnnTensorDescriptor_t, void*, const cudnnTensorDescriptor_t dxDesc,
    void* dxData, const cudnnTensorDescriptor_t dBnScaleBiasDesc, const void* bnScaleData,
    const void*, void* dBnScaleData, void* dBnBiasData, double epsilon, const void* savedMean,
    const void* savedInvVariance, cudnnActivationDescriptor_t, void*, size_t, void*, size_t) {
  const cudnnStatus_t status = CheckPlain(bnOps, __func__);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return cudnnBatchNormalizationBackward(handle, mode, alphaDataDiff, betaDataDiff, alphaParamDiff,
                                         betaParamDiff, xDesc, xData, dyDesc, dyData, dxDesc,
                                         dxData, dBnScaleBiasDesc, bnScaleData, dBnScaleData,
                                         dBnBiasData, epsilon, savedMean, savedInvVariance);
}
