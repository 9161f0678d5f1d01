// The kernels that the probe launches.
#include <cassert>
#include <cstdio>

namespace {

constexpr int kStackWords = 512;

__device__ unsigned long long Now() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

}  // namespace

extern "C" {

__global__ void Nothing() {}

// A second kernel, to be launched for the first time late.
__global__ void NothingElse() {}

// Occupies the GPU until the host sets the flag, at most `patience_ns`.
__global__ void Wait(const volatile unsigned* flag, unsigned long long patience_ns) {
  const unsigned long long begin = Now();
  while (*flag == 0 && Now() - begin < patience_ns) {
  }
}

__global__ void WriteToNowhere() { *reinterpret_cast<volatile int*>(16) = 1; }

__global__ void Print() { printf("the probe's kernel prints\n"); }

__global__ void Deny() { assert(blockDim.x > 1024 && "the probe's kernel denies"); }

__global__ void Allocate(unsigned char** result) {
  *result = static_cast<unsigned char*>(malloc(64));
  free(*result);
}

// Has a frame that no compiler keeps in registers: the index is the caller's.
__global__ void UseStack(int* values, int count) {
  volatile int frame[kStackWords];
  for (int i = 0; i < count; ++i) frame[values[i] % kStackWords] = i;
  values[threadIdx.x] = frame[values[0] % kStackWords];
}

}  // extern "C"
