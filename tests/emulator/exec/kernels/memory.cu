#include "kernels/per_thread.h"

__constant__ float weights[4] = {1.0f, 2.5f, -3.0f, 4.0f};
__device__ int counter = 5;
__device__ int* counter_pointer = &counter;
__device__ int table[3] = {10, 20, 30};
__device__ int* row = &table[1];
extern __shared__ float dynamic[];

struct Aggregate {
  int values[20];
  double scale;
  char tag;
};

extern "C" {

__global__ void vector_add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

// Reversed, strided and byte-wide accesses: nothing contiguous.
__global__ void small_types(const unsigned char* in, unsigned char* out, const short* shorts,
                            short* shorts_out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[n - 1 - i] = static_cast<unsigned char>(in[(i * 7) % n] + 1);
  shorts_out[(i * 3) % n] = static_cast<short>(shorts[i] * 2);
}

__global__ void vectors(const float4* a, float4* b, const double2* c, double2* d, uchar4* e) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = a[i];
  v.x += 1;
  v.y *= 2;
  v.z -= 3;
  v.w = v.x + v.y;
  b[i] = v;
  const double2 w = c[(i * 3) % 64];
  d[i] = make_double2(w.y, w.x);
  e[i] = make_uchar4(i, i + 1, i + 2, i + 3);
}

__global__ void local_array(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int a[16];
  for (int k = 0; k < 16; k++) a[k] = in[(i + k) % n];
  int s = 0;
  for (int k = 0; k < n; k++) s += a[(in[k] + i) & 15] * k;
  out[i] = s;
}

__global__ void aggregate(Aggregate value, int* out) {
  out[threadIdx.x] = value.values[threadIdx.x % 20] + static_cast<int>(value.scale) + value.tag;
}

__global__ void globals(int* out, int which) {
  out[0] = *counter_pointer + row[1];
  out[1] = static_cast<int>(weights[which] * 10);
  dynamic[threadIdx.x] = weights[threadIdx.x % 4];
  __syncthreads();
  out[2 + threadIdx.x] = static_cast<int>(dynamic[blockDim.x - 1 - threadIdx.x] * 2);
  counter = 99;
}

// One pointer into global, shared or local memory, as the thread's number says.
__global__ void generic(int* global, int* out) {
  __shared__ int shared[64];
  int local[4] = {static_cast<int>(threadIdx.x), 2, 3, 4};
  shared[threadIdx.x] = 1000 + threadIdx.x;
  __syncthreads();
  int* p = threadIdx.x % 3 == 0
               ? &global[threadIdx.x]
               : (threadIdx.x % 3 == 1 ? &shared[63 - threadIdx.x] : &local[out[0]]);
  *p += 7;
  __syncthreads();
  out[threadIdx.x] = *p + (__isShared(p) ? 100000 : 0) + shared[0] * 0;
}

__global__ void wild(int* p, long offset) { p[offset + threadIdx.x] = 1; }
__global__ void wild_read(int* p, long offset) { p[threadIdx.x] = p[offset + threadIdx.x * 3]; }
__global__ void wild_uniform(int* p, long offset) { p[0] = p[offset]; }
__global__ void wild_atomic(int* p, long offset) { atomicAdd(&p[offset], 1); }
__global__ void wild_generic(int** p) { **p = 1; }
__global__ void wild_shared(int* p, int offset) {
  __shared__ int s[4];
  s[offset] = threadIdx.x;
  __syncthreads();
  p[0] = s[offset];
}
__global__ void misaligned(char* p) { *reinterpret_cast<int*>(p + 1 + 4 * threadIdx.x) = 1; }
__global__ void misaligned_shared(int* p, int offset) {
  __shared__ char s[64];
  *reinterpret_cast<int*>(s + offset) = 1;
  p[0] = *reinterpret_cast<int*>(s + offset);
}
// An index that wraps below zero within a warp, guarded by an unsigned comparison.
__global__ void wrapping(const int* in, int* out, unsigned n) {
  const unsigned i = threadIdx.x - 1U;
  int v = -5;
  if (i < n) v = in[i];
  out[threadIdx.x] = v;
}

__global__ void dimensions(int* out, int width) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z * blockDim.z + threadIdx.z;
  const int height = gridDim.y * blockDim.y;
  out[(z * height + y) * width + x] = x + 1000 * y + 100000 * z;
}
}
