// cudaHostRegister: the program's own pages, known to CUDA.
#include <vector>

#include "tests/e2e/programs/check.h"

__global__ void AddOne(int* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] += 1;
}

static constexpr int kCount = 1 << 20;
static constexpr std::size_t kBytes = kCount * sizeof(int);

static void Attributes(int* host) {
  cudaPointerAttributes attributes;
  CUDA(cudaPointerGetAttributes(&attributes, host));
  REQUIRE(attributes.type == cudaMemoryTypeUnregistered);
  CUDA(cudaHostRegister(host, kBytes, cudaHostRegisterDefault));
  EXPECT_CUDA(cudaHostRegister(host + 10, 100, cudaHostRegisterDefault),
              cudaErrorHostMemoryAlreadyRegistered);
  (void)cudaGetLastError();
  CUDA(cudaPointerGetAttributes(&attributes, host + kCount - 1));
  REQUIRE(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == host + kCount - 1);
}

static void Fill(void* host) {
  for (int i = 0; i < kCount; ++i) static_cast<int*>(host)[i] = i;
}

static void AddThousand(void* host) {
  for (int i = 0; i < kCount; ++i) static_cast<int*>(host)[i] += 1000;
}

// What is written to the memory in stream order is what a later copy of the stream reads.
static void StreamOrder(int* host) {
  cudaStream_t stream;
  int* device = nullptr;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaMalloc(&device, kBytes));
  CUDA(cudaLaunchHostFunc(stream, Fill, host));
  CUDA(cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice, stream));
  AddOne<<<kCount / 256, 256, 0, stream>>>(device, kCount);
  CUDA(cudaMemcpyAsync(host, device, kBytes, cudaMemcpyDeviceToHost, stream));
  CUDA(cudaLaunchHostFunc(stream, AddThousand, host));
  CUDA(cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice, stream));
  AddOne<<<kCount / 256, 256, 0, stream>>>(device, kCount);
  CUDA(cudaMemcpyAsync(host, device, kBytes, cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < kCount; ++i) REQUIRE(host[i] == i + 1002);
  CUDA(cudaFree(device));
  CUDA(cudaStreamDestroy(stream));
}

int main() {
  std::vector<int> host(kCount);
  Attributes(host.data());
  StreamOrder(host.data());
  CUDA(cudaHostUnregister(host.data()));
  EXPECT_CUDA(cudaHostUnregister(host.data()), cudaErrorHostMemoryNotRegistered);
  return Pass();
}
