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

// Kernels and the program use the same bytes, each at its own address.
static void Mapped(int* host) {
  for (int i = 0; i < kCount; ++i) host[i] = i;
  int* device = nullptr;
  CUDA(cudaHostGetDevicePointer(&device, host, 0));
  AddOne<<<kCount / 256, 256>>>(device, kCount);
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; ++i) REQUIRE(host[i] == i + 1);
  int* part = nullptr;
  CUDA(cudaHostGetDevicePointer(&part, host + 1000, 0));
  REQUIRE(part == device + 1000);
  AddOne<<<1, 1>>>(part, 1);
  int copied = 0;
  CUDA(cudaMemcpy(&copied, host + 1000, sizeof copied, cudaMemcpyDefault));
  REQUIRE(copied == 1002);
  REQUIRE(host[1000] == 1002);
}

// A copy of the program's pages comes behind the kernel that writes to them, in three dimensions
// too.
static void CopiesFollowKernels(int* host) {
  constexpr std::size_t kRow = 4096;
  constexpr std::size_t kRows = 16;
  for (int i = 0; i < kCount; ++i) host[i] = i;
  int* mapped = nullptr;
  int* device = nullptr;
  cudaStream_t stream = nullptr;
  CUDA(cudaHostGetDevicePointer(&mapped, host, 0));
  CUDA(cudaMalloc(&device, kBytes));
  CUDA(cudaStreamCreate(&stream));
  AddOne<<<kCount / 256, 256, 0, stream>>>(mapped, kCount);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(host, kRow, kRow, kRows);
  copy.dstPtr = make_cudaPitchedPtr(device, kRow, kRow, kRows);
  copy.extent = make_cudaExtent(kRow, kRows, kBytes / kRow / kRows);
  copy.kind = cudaMemcpyHostToDevice;
  CUDA(cudaMemcpy3DAsync(&copy, stream));
  std::vector<int> copied(kCount);
  CUDA(cudaMemcpyAsync(copied.data(), device, kBytes, cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < kCount; ++i) REQUIRE(copied[i] == i + 1);
  CUDA(cudaFree(device));
  CUDA(cudaStreamDestroy(stream));
}

// Memory that neither begins nor ends with a page stays usable, and its neighbours too.
static void MappedParts() {
  std::vector<char> heap(100'000, 'x');
  CUDA(cudaHostRegister(heap.data() + 5000, 70'000, cudaHostRegisterMapped));
  char* device = nullptr;
  CUDA(cudaHostGetDevicePointer(&device, heap.data() + 5000, 0));
  CUDA(cudaMemset(device, 'y', 70'000));
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaHostUnregister(heap.data() + 5000));
  heap.push_back('x');
  for (int i = 0; i < 100'001; ++i) REQUIRE(heap[i] == (i >= 5000 && i < 75'000 ? 'y' : 'x'));
}

int main() {
  std::vector<int> host(kCount);
  Attributes(host.data());
  StreamOrder(host.data());
  Mapped(host.data());
  CopiesFollowKernels(host.data());
  StreamOrder(host.data());
  MappedParts();
  CUDA(cudaHostUnregister(host.data()));
  EXPECT_CUDA(cudaHostUnregister(host.data()), cudaErrorHostMemoryNotRegistered);
  return Pass();
}
