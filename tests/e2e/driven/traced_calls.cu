// Calls whose number and kind the test of the tracer knows, in sections that it names.
#include <dlfcn.h>

#include <cstddef>

#include "tests/e2e/programs/check.h"

__global__ void Increment(int* value) { *value += 1; }

// For the trace: a function of the program that calls CUDA, with a name that its file shows.
extern "C" __attribute__((visibility("default"), noinline)) void FetchForTrace(int* to,
                                                                               const int* from) {
  CUDA(cudaMemcpy(to, from, sizeof *to, cudaMemcpyDeviceToHost));
}

int main() {
  using Mark = void (*)(const char*);
  const Mark mark = reinterpret_cast<Mark>(dlsym(RTLD_DEFAULT, "torporTraceMark"));
  REQUIRE(mark);
  int* value = nullptr;
  CUDA(cudaMalloc(&value, sizeof *value));
  CUDA(cudaMemset(value, 0, sizeof *value));
  Increment<<<1, 1>>>(value);
  CUDA(cudaDeviceSynchronize());
  for (const char* const section : {"first", "second"}) {
    mark(section);
    for (int i = 0; i < 10; ++i) Increment<<<1, 1>>>(value);
    CUDA(cudaGetLastError());
    int got = 0;
    FetchForTrace(&got, value);
    REQUIRE(got % 10 == 1);
  }
  mark(nullptr);
  int* pinned = nullptr;
  constexpr std::size_t kPinnedBytes = 1 << 20;
  CUDA(cudaMallocHost(&pinned, kPinnedBytes));
  int* buffer = nullptr;
  CUDA(cudaMalloc(&buffer, kPinnedBytes));
  mark("pinned");
  CUDA(cudaMemcpyAsync(buffer, pinned, kPinnedBytes, cudaMemcpyHostToDevice));
  CUDA(cudaStreamSynchronize(nullptr));
  mark(nullptr);
  mark("inputs");
  for (const int input : {1, 2}) {
    CUDA(cudaMemcpyAsync(value, &input, sizeof input, cudaMemcpyHostToDevice));
    CUDA(cudaStreamSynchronize(nullptr));
  }
  Increment<<<1, 1>>>(value);
  int got = 0;
  FetchForTrace(&got, value);
  REQUIRE(got == 3);
  mark(nullptr);
  return Pass();
}
