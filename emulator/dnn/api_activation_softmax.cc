// Activations and softmax, with gradients.
#include "emulator/dnn/activation.h"
#include "emulator/dnn/handle.h"
#include "emulator/dnn/softmax.h"

using namespace torpor;            // NOLINT: this file only defines the C interface
using namespace torpor::emulator;  // NOLINT

namespace {

// Checks that both scaling factors are given.
cudnnStatus_t CheckScalars(const void* alpha, const void* beta) {
  return alpha == nullptr || beta == nullptr ? CUDNN_STATUS_BAD_PARAM_NULL_POINTER
                                             : CUDNN_STATUS_SUCCESS;
}

// Checks that the tensors are set, computable and of one shape.
cudnnStatus_t CheckAlike(std::initializer_list<const DnnTensor*> tensors) {
  const cudnnStatus_t status = CheckTensors(tensors);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  for (const DnnTensor* tensor : tensors) {
    if (!HaveOneShape(*tensor, **tensors.begin())) return CUDNN_STATUS_BAD_PARAM;
  }
  return status;
}

// Queues y = alpha * compute(x) + beta * y.
template <typename Compute>
cudnnStatus_t QueueMap(cudnnContext& context, const void* alpha, const DnnTensor* x_desc,
                       const void* x, const void* beta, const DnnTensor* y_desc, void* y,
                       Compute compute) {
  cudnnStatus_t status = CheckAlike({x_desc, y_desc});
  if (status == CUDNN_STATUS_SUCCESS) status = CheckScalars(alpha, beta);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const DnnTensor from = *x_desc;
  const DnnTensor to = *y_desc;
  const Blend blend = Blend::Read(alpha, beta, to.type);
  return Queue(context, {ReadExtent(from, x), WrittenExtent(to, y)}, [=] {
    InTypeOf(to.type, [&](auto type) {
      auto values = LoadTensor<decltype(type)>(from, x);
      compute(from, values);
      StoreTensor(to, y, values, blend.alpha, blend.beta);
    });
  });
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t activation,
                                     const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                     const void* x, const void* beta,
                                     const cudnnTensorDescriptor_t y_desc, void* y) {
  return WithHandle(handle, [&](cudnnContext& context) {
    if (activation == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    return QueueMap(context, alpha, x_desc, x, beta, y_desc, y,
                    [a = DnnActivation(*activation)](const DnnTensor&, auto& values) {
                      for (auto& value : values) value = Activate(a, value);
                    });
  });
}

// The derivative needs x or y, depending on the function.
cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t activation,
                                      const void* alpha, const cudnnTensorDescriptor_t y_desc,
                                      const void* y, const cudnnTensorDescriptor_t dy_desc,
                                      const void* dy, const cudnnTensorDescriptor_t x_desc,
                                      const void* x, const void* beta,
                                      const cudnnTensorDescriptor_t dx_desc, void* dx) {
  return WithHandle(handle, [&](cudnnContext& context) {
    if (activation == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    cudnnStatus_t status = CheckAlike({y_desc, dy_desc, x_desc, dx_desc});
    if (status == CUDNN_STATUS_SUCCESS) status = CheckScalars(alpha, beta);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const DnnActivation a = *activation;
    const DnnTensor ys = *y_desc;
    const DnnTensor dys = *dy_desc;
    const DnnTensor xs = *x_desc;
    const DnnTensor dxs = *dx_desc;
    const Blend blend = Blend::Read(alpha, beta, dxs.type);
    return Queue(
        context,
        {ReadExtent(ys, y), ReadExtent(dys, dy), ReadExtent(xs, x), WrittenExtent(dxs, dx)}, [=] {
          InTypeOf(dxs.type, [&](auto type) {
            using T = decltype(type);
            const auto from = LoadTensor<T>(xs, x);
            const auto made = LoadTensor<T>(ys, y);
            auto gradient = LoadTensor<T>(dys, dy);
            for (std::size_t i = 0; i < gradient.size(); ++i) {
              gradient[i] *= ActivationSlope(a, from[i], made[i]);
            }
            StoreTensor(dxs, dx, gradient, blend.alpha, blend.beta);
          });
        });
  });
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t mode, const void* alpha,
                                  const cudnnTensorDescriptor_t x_desc, const void* x,
                                  const void* beta, const cudnnTensorDescriptor_t y_desc, void* y) {
  return WithHandle(handle, [&](cudnnContext& context) {
    return QueueMap(context, alpha, x_desc, x, beta, y_desc, y,
                    [algorithm, mode](const DnnTensor& shape, auto& values) {
                      Softmax(algorithm, SoftmaxGroups(shape, mode), values);
                    });
  });
}

cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                   cudnnSoftmaxMode_t mode, const void* alpha,
                                   const cudnnTensorDescriptor_t y_desc, const void* y,
                                   const cudnnTensorDescriptor_t dy_desc, const void* dy,
                                   const void* beta, const cudnnTensorDescriptor_t dx_desc,
                                   void* dx) {
  return WithHandle(handle, [&](cudnnContext& context) {
    cudnnStatus_t status = CheckAlike({y_desc, dy_desc, dx_desc});
    if (status == CUDNN_STATUS_SUCCESS) status = CheckScalars(alpha, beta);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const DnnTensor ys = *y_desc;
    const DnnTensor dys = *dy_desc;
    const DnnTensor dxs = *dx_desc;
    const Blend blend = Blend::Read(alpha, beta, dxs.type);
    return Queue(context, {ReadExtent(ys, y), ReadExtent(dys, dy), WrittenExtent(dxs, dx)}, [=] {
      InTypeOf(dxs.type, [&](auto type) {
        using T = decltype(type);
        auto gradient = LoadTensor<T>(dys, dy);
        SoftmaxGradient(algorithm, SoftmaxGroups(ys, mode), LoadTensor<T>(ys, y), gradient);
        StoreTensor(dxs, dx, gradient, blend.alpha, blend.beta);
      });
    });
  });
}

}  // extern "C"
