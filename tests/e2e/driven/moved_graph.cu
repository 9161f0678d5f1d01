// A graph that was instantiated and changed on one GPU is launched on another. Its test moves the
// program while it waits for the pipe that its argument names.
#include "tests/e2e/driven/wait.h"
#include "tests/e2e/programs/check.h"

constexpr int kCount = 256;

__device__ int table[kCount];

__global__ void AddTo(int* values, int term) { values[threadIdx.x] += term; }

static cudaKernelNodeParams Kernel(void** arguments) {
  cudaKernelNodeParams parameters{};
  parameters.func = reinterpret_cast<void*>(AddTo);
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(kCount);
  parameters.kernelParams = arguments;
  return parameters;
}

// Adds 1 to `values` and, beside it, 3 to the table, of which a copy ends up in `pinned`.
int main(int count, char** arguments) {
  REQUIRE(count == 2);
  int* values = nullptr;
  int* pinned = nullptr;
  void* address = nullptr;
  CUDA(cudaMalloc(&values, kCount * sizeof(int)));
  CUDA(cudaMemset(values, 0, kCount * sizeof(int)));
  CUDA(cudaMallocHost(&pinned, kCount * sizeof(int)));
  CUDA(cudaGetSymbolAddress(&address, table));
  int one = 1;
  int two = 2;
  void* to_values[] = {&values, &one};
  void* to_table[] = {&address, &two};
  cudaKernelNodeParams parameters = Kernel(to_values);
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t first = nullptr;
  cudaGraphNode_t second = nullptr;
  cudaGraphNode_t copy = nullptr;
  CUDA(cudaGraphCreate(&graph, 0));
  CUDA(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &parameters));
  parameters = Kernel(to_table);
  CUDA(cudaGraphAddKernelNode(&second, graph, nullptr, 0, &parameters));
  CUDA(cudaGraphAddMemcpyNodeFromSymbol(&copy, graph, &second, 1, pinned, table,
                                        kCount * sizeof(int), 0, cudaMemcpyDeviceToHost));
  cudaGraphExec_t exec = nullptr;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  two = 3;
  CUDA(cudaGraphExecKernelNodeSetParams(exec, second, &parameters));
  CUDA(cudaGraphLaunch(exec, nullptr));
  CUDA(cudaDeviceSynchronize());
  Wait(arguments[1]);
  CUDA(cudaGraphLaunch(exec, nullptr));
  CUDA(cudaGraphLaunch(exec, nullptr));
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; ++i) REQUIRE(pinned[i] == 9);
  CUDA(cudaMemcpy(pinned, values, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) REQUIRE(pinned[i] == 3);
  CUDA(cudaGraphExecDestroy(exec));
  return Pass();
}
