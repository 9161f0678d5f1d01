// __managed__ variables, named by the program and by kernels alike.
#include <atomic>
#include <thread>

#include "tests/e2e/programs/check.h"

__managed__ int counter = 7;
__managed__ float table[1000];

__global__ void Count() { atomicAdd(&counter, 1); }

// By name and by address: the same variable.
__global__ void Scale(float* values, float factor) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 1000) return;
  values[i] *= factor;
  if (i == 999) table[0] = -1;
}

// The program's own copy has what kernels wrote, and kernels get what is copied to it, whatever
// call copies.
static void CopiesOfEveryShape() {
  float* device = nullptr;
  CUDA(cudaMalloc(&device, 16 * sizeof(float)));
  for (int i = 0; i < 1000; ++i) table[i] = static_cast<float>(i);
  Scale<<<4, 256>>>(table, 2.0f);
  float rows[2][2];
  CUDA(cudaMemcpy2D(rows, sizeof rows[0], &table[10], 4 * sizeof(float), sizeof rows[0], 2,
                    cudaMemcpyDefault));
  REQUIRE(rows[0][0] == 20 && rows[0][1] == 22 && rows[1][0] == 28 && rows[1][1] == 30);
  REQUIRE(table[999] == 2 * 999);

  Scale<<<4, 256>>>(table, 2.0f);
  cudaMemcpy3DParms volume{};
  volume.srcPtr = make_cudaPitchedPtr(&table[100], 4 * sizeof(float), 4 * sizeof(float), 2);
  volume.dstPtr = make_cudaPitchedPtr(device, 2 * sizeof(float), 2 * sizeof(float), 2);
  volume.extent = make_cudaExtent(2 * sizeof(float), 2, 2);
  volume.kind = cudaMemcpyDefault;
  CUDA(cudaMemcpy3D(&volume));
  float volumes[2][2][2];
  CUDA(cudaMemcpy(volumes, device, sizeof volumes, cudaMemcpyDeviceToHost));
  REQUIRE(volumes[0][0][0] == 400 && volumes[0][1][1] == 4 * 105 && volumes[1][1][1] == 4 * 113);

  Scale<<<4, 256>>>(table, 2.0f);
  volume.srcPtr.ptr = device;
  volume.srcPtr.pitch = volume.srcPtr.xsize = 2 * sizeof(float);
  volume.dstPtr = make_cudaPitchedPtr(&table[200], 2 * sizeof(float), 2 * sizeof(float), 2);
  CUDA(cudaMemcpy3D(&volume));
  REQUIRE(table[200] == 400 && table[199] == 8 * 199);
  Scale<<<4, 256>>>(table, 2.0f);
  CUDA(cudaDeviceSynchronize());
  REQUIRE(table[200] == 800);
  CUDA(cudaFree(device));
}

static void CopiesByName() {
  void* address = nullptr;
  std::size_t bytes = 0;
  CUDA(cudaGetSymbolAddress(&address, table));
  CUDA(cudaGetSymbolSize(&bytes, table));
  REQUIRE(address == table && bytes == sizeof table);
  const float seven = 7;
  CUDA(cudaMemcpyToSymbol(table, &seven, sizeof seven, 3 * sizeof(float)));
  REQUIRE(table[3] == 7);
  Scale<<<4, 256>>>(table, 2.0f);
  float copied = 0;
  CUDA(cudaMemcpyFromSymbol(&copied, table, sizeof copied, 3 * sizeof(float)));
  REQUIRE(copied == 14 && table[3] == 14);
}

// A thread that synchronises does not hide from another what its kernel has written.
static void ThreadsSynchronise() {
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    cudaStream_t stream = nullptr;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    while (!is_over) CUDA(cudaStreamSynchronize(stream));
  });
  const int before = counter;
  for (int i = 1; i <= 100; ++i) {
    Count<<<1, 1>>>();
    CUDA(cudaDeviceSynchronize());
    REQUIRE(counter == before + i);
  }
  is_over = true;
  other.join();
}

int main() {
  Count<<<1, 32>>>();
  CUDA(cudaDeviceSynchronize());
  REQUIRE(counter == 39);

  for (int i = 0; i < 1000; ++i) table[i] = static_cast<float>(i);
  Scale<<<4, 256>>>(table, 2.0f);
  Scale<<<4, 256>>>(table, 2.0f);
  CUDA(cudaStreamSynchronize(nullptr));
  REQUIRE(table[0] == -1);
  for (int i = 1; i < 1000; ++i) REQUIRE(table[i] == 4.0f * static_cast<float>(i));

  counter = 100;
  table[5] = 1;
  Count<<<1, 1>>>();
  Scale<<<4, 256>>>(table, 3.0f);
  float copied = 0;
  CUDA(cudaMemcpy(&copied, &table[5], sizeof copied, cudaMemcpyDefault));
  REQUIRE(copied == 3 && table[5] == 3 && counter == 101);

  CUDA(cudaMemset(table, 0, sizeof table));
  Scale<<<4, 256>>>(table, 3.0f);
  CUDA(cudaDeviceSynchronize());
  REQUIRE(table[0] == -1 && table[5] == 0 && table[999] == 0);

  CopiesOfEveryShape();
  CopiesByName();
  ThreadsSynchronise();

  // What the variables hold after a reset is not defined.
  CUDA(cudaDeviceReset());
  Count<<<1, 1>>>();
  CUDA(cudaDeviceSynchronize());
  return Pass();
}
