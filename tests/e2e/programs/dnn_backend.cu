// cuDNN's backend API: a convolution, what may follow it in one graph, and its gradients, in single
// and half precision, on a stream and in a CUDA graph.
#include <cuda_fp16.h>

#include <algorithm>

#include "tests/e2e/programs/dnn_plan.h"

namespace {

void OnAStream(cudnnHandle_t handle) {
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  DNN(cudnnSetStream(handle, stream));
  const Tensors<float> t;
  const Descriptor x = Tensor('x', CUDNN_DATA_FLOAT, kXShape);
  const Descriptor w = Tensor('w', CUDNN_DATA_FLOAT, kWShape);
  const Descriptor y = Tensor('y', CUDNN_DATA_FLOAT, kYShape);
  const std::vector<int64_t> ids = {'x', 'w', 'y'};

  const Descriptor forward = Forward(x, w, y);
  const Plan plan(handle, {&forward});
  for (int again = 0; again < 50; ++again) plan.Execute(ids, {t.x.get(), t.w.get(), t.y.get()});
  CUDA(cudaStreamSynchronize(stream));
  ExpectNear(t.y.Download(), t.Product(), 1e-3f);

  const Memory<float> dx{Values(Count(kXShape))};
  const Memory<float> dw{Values(Count(kWShape))};
  const Descriptor data = BackwardData(x, w, y);
  const Descriptor filter = BackwardFilter(x, w, y);
  Plan(handle, {&data}).Execute(ids, {dx.get(), t.w.get(), t.z.get()});
  Plan(handle, {&filter}).Execute(ids, {t.x.get(), dw.get(), t.z.get()});
  CUDA(cudaStreamSynchronize(stream));
  const Values xs = t.x.Download();
  const Values ws = t.w.Download();
  const Values ys = t.z.Download();
  Values of_x(xs.size());
  Values of_w(ws.size());
  ForEachProduct([&](size_t i, size_t j, size_t k) {
    of_x[i] += ws[j] * ys[k];
    of_w[j] += xs[i] * ys[k];
  });
  ExpectNear(dx.Download(), of_x, 1e-3f);
  ExpectNear(dw.Download(), of_w, 1e-3f);
  DNN(cudnnSetStream(handle, nullptr));
  CUDA(cudaStreamDestroy(stream));
}

// relu(x * w + z + bias), the sums in single precision.
void FusedInAGraph(cudnnHandle_t handle) {
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  DNN(cudnnSetStream(handle, stream));
  const Tensors<__half> t;
  const Descriptor product = Tensor('C', CUDNN_DATA_FLOAT, kYShape, true);
  const Descriptor sum = Tensor('A', CUDNN_DATA_FLOAT, kYShape, true);
  const Descriptor total = Tensor('B', CUDNN_DATA_FLOAT, kYShape, true);
  const Descriptor z = Tensor('z', CUDNN_DATA_HALF, kYShape);
  const Descriptor bias = Tensor('b', CUDNN_DATA_HALF, kBiasShape);
  const Descriptor convolve = Forward(Tensor('x', CUDNN_DATA_HALF, kXShape),
                                      Tensor('w', CUDNN_DATA_HALF, kWShape), product);
  const Descriptor add = Pointwise(CUDNN_POINTWISE_ADD, product, &z, sum);
  const Descriptor add_bias = Pointwise(CUDNN_POINTWISE_ADD, sum, &bias, total);
  const Descriptor relu =
      Pointwise(CUDNN_POINTWISE_RELU_FWD, total, nullptr, Tensor('y', CUDNN_DATA_HALF, kYShape));
  const Plan plan(handle, {&convolve, &add, &add_bias, &relu});
  const auto execute = [&] {
    plan.Execute({'x', 'w', 'z', 'b', 'y'},
                 {t.x.get(), t.w.get(), t.z.get(), t.bias.get(), t.y.get()});
  };
  execute();  // whatever the library makes at its first call
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemset(t.y.get(), 0, 16));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  execute();
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CUDA(cudaGraphLaunch(executable, stream));
  CUDA(cudaStreamSynchronize(stream));
  Values expected = t.Product();
  const Values added = t.z.Download();
  const Values biases = t.bias.Download();
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = std::max(0.0f, expected[i] + added[i] + biases[i / (kSide * kSide) % kOutputs]);
  ExpectNear(t.y.Download(), expected, 1e-2f);
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
  DNN(cudnnSetStream(handle, nullptr));
  CUDA(cudaStreamDestroy(stream));
}

void Refusals(cudnnHandle_t handle) {
  Descriptor open(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  REQUIRE(cudnnBackendFinalize(open.real()) != CUDNN_STATUS_SUCCESS);
  REQUIRE(cudnnBackendExecute(handle, open.real(), open.real()) != CUDNN_STATUS_SUCCESS);
  const Descriptor x = Tensor('x', CUDNN_DATA_FLOAT, kXShape);
  const int64_t id = 1;
  REQUIRE(cudnnBackendSetAttribute(x.real(), CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1,
                                   &id) != CUDNN_STATUS_SUCCESS);
  CUDA(cudaDeviceSynchronize());
}

}  // namespace

int main() {
  cudnnHandle_t handle = nullptr;
  DNN(cudnnCreate(&handle));
  OnAStream(handle);
  FusedInAGraph(handle);
  Refusals(handle);
  DNN(cudnnDestroy(handle));
  return Pass();
}
