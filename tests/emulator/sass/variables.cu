// Everything that a cubin holds beside code.
#include <cstdio>

__device__ int counters[3] = {1, 2, 3};
__device__ int* second = &counters[1];
__device__ float zeros[100];
__constant__ float uninitialised[16];
__constant__ int table[4] = {5, 6, 7, 8};

struct Large {
  int values[20];
  char last;
};

__global__ void Sum(Large large, int* out, long long divisor) {
  __shared__ int staged[64];
  extern __shared__ int dynamic[];
  staged[threadIdx.x % 64] = large.values[threadIdx.x % 20];
  dynamic[threadIdx.x] = static_cast<int>(zeros[threadIdx.x % 100]);
  __syncthreads();
  out[threadIdx.x] = staged[63 - threadIdx.x % 64] + *second + table[threadIdx.x & 3] +
                     static_cast<int>(uninitialised[threadIdx.x & 15]) + counters[2] +
                     static_cast<int>(1000000007LL * large.last / divisor) + dynamic[threadIdx.x];
}

__global__ void __launch_bounds__(256) Print(int* value) { printf("value %d\n", *value); }

extern "C" __global__ void Choose(int* value) {
  switch (value[0]) {
    case 0:
      value[1] = 3;
      break;
    case 1:
      value[4] = 9;
      break;
    case 2:
      value[7] = 1;
      break;
    case 3:
      value[8] = value[9];
      break;
    case 4:
      value[11] = 4;
      break;
    case 5:
      value[10] = 11;
      [[fallthrough]];
    case 6:
      value[3] = 4;
      break;
  }
}

extern "C" __global__ void Nothing() {}

extern "C" __global__ void Last(char* out, bool last) { *out = last; }
