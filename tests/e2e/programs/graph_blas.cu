// cuBLAS calls that are captured run with every launch of the graph, and not before.
#include <cublas_v2.h>

#include <vector>

#include "tests/e2e/programs/check.h"

#define BLAS(call) REQUIRE((call) == CUBLAS_STATUS_SUCCESS)

constexpr int kCount = 1000;

__global__ void AddOne(float* values) { values[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

static std::vector<float> Download(const float* device) {
  std::vector<float> values(kCount);
  CUDA(cudaMemcpy(values.data(), device, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  return values;
}

// Takes its time.
static void Work(void* done) {
  for (int i = 0; i < 20'000'000; ++i) *static_cast<volatile int*>(done) = i;
}

// What comes behind a function of the program is sent when that has run; a call of cuBLAS comes
// behind it all.
static void CallsFollowAWholeLaunch(cublasHandle_t handle, cudaStream_t stream, float* x,
                                    float* y) {
  CUDA(cudaMemset(x, 0, kCount * sizeof(float)));
  CUDA(cudaMemset(y, 0, kCount * sizeof(float)));
  CUDA(cudaDeviceSynchronize());
  int done = 0;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CUDA(cudaLaunchHostFunc(stream, Work, &done));
  AddOne<<<kCount / 100, 100, 0, stream>>>(x);
  cudaGraph_t graph = nullptr;
  CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  const float two = 2;
  CUDA(cudaGraphLaunch(exec, stream));
  BLAS(cublasSaxpy(handle, kCount, &two, x, 1, y, 1));
  CUDA(cudaStreamSynchronize(stream));
  for (const float value : Download(y)) REQUIRE(value == 2);
  CUDA(cudaGraphExecDestroy(exec));
}

int main() {
  float* x = nullptr;
  float* y = nullptr;
  CUDA(cudaMalloc(&x, kCount * sizeof(float)));
  CUDA(cudaMalloc(&y, kCount * sizeof(float)));
  CUDA(cudaMemset(x, 0, kCount * sizeof(float)));
  CUDA(cudaMemset(y, 0, kCount * sizeof(float)));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cublasHandle_t handle = nullptr;
  BLAS(cublasCreate(&handle));
  BLAS(cublasSetStream(handle, stream));

  const float two = 2;
  float sum = 0;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  AddOne<<<kCount / 100, 100, 0, stream>>>(x);
  BLAS(cublasSaxpy(handle, kCount, &two, x, 1, y, 1));
  AddOne<<<kCount / 100, 100, 0, stream>>>(y);
  cudaGraph_t graph = nullptr;
  CUDA(cudaStreamEndCapture(stream, &graph));
  for (const float value : Download(y)) REQUIRE(value == 0);

  cudaGraphExec_t exec = nullptr;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(exec, stream));
  CUDA(cudaStreamSynchronize(stream));
  // y: 0+2+1, then +4+1, then +6+1.
  for (const float value : Download(y)) REQUIRE(value == 15);

  // A result for the host cannot be captured.
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  REQUIRE(cublasSasum(handle, kCount, y, 1, &sum) != CUBLAS_STATUS_SUCCESS);
  EXPECT_CUDA(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  BLAS(cublasSasum(handle, kCount, y, 1, &sum));
  REQUIRE(sum == 15.0F * kCount);

  // The graph has taken over what it needs of the handle.
  BLAS(cublasDestroy(handle));
  CUDA(cudaGraphLaunch(exec, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (const float value : Download(y)) REQUIRE(value == 15 + 8 + 1);
  CUDA(cudaGraphExecDestroy(exec));

  BLAS(cublasCreate(&handle));
  BLAS(cublasSetStream(handle, stream));
  CallsFollowAWholeLaunch(handle, stream, x, y);
  BLAS(cublasDestroy(handle));
  return Pass();
}
