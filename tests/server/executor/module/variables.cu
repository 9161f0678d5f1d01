// A module with variables that its code does not use, as those of libraries are; with a macro, with
// one that it does.
#include <cassert>
#include <cstdio>

__device__ int tag = 5;
__device__ int other_tag[7];
__constant__ float table[4];
#ifdef HOLDS_ADDRESS
__device__ int* pointer = &tag;
#endif

extern "C" __global__ void check(float* values, int* which) {
  const float value = values[threadIdx.x];
  assert(value >= 0);
  values[threadIdx.x] = sinf(1e5F * value) + table[threadIdx.x & 3];
  if (value == 7) printf("%f\n", value);
#ifdef USES_VARIABLE
  other_tag[threadIdx.x] = *which;
#endif
#ifdef USES_LOCAL
  static int count;
  *which = atomicAdd(&count, 1);
#endif
}
