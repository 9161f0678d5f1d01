// Kernels for launch_test.cc, which loads them as a fatbin through the driver API.
struct Scale {
  float factor;
  double offset;
};

__constant__ float table[4];
__device__ int counter;

extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void scale(float* x, Scale by, char last) {
  x[threadIdx.x] = static_cast<float>(x[threadIdx.x] * by.factor + by.offset + last);
}

extern "C" __global__ void lookup(float* x) {
  x[threadIdx.x] = table[threadIdx.x % 4];
  atomicAdd(&counter, 1);
}

extern "C" __global__ void reverse(int* x) {
  extern __shared__ int staged[];
  staged[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = staged[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void roomy(int* x) {
  __shared__ int fixed[4096];
  fixed[(threadIdx.x * 64) % 4096] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = fixed[((blockDim.x - 1 - threadIdx.x) * 64) % 4096];
}

extern "C" __global__ void poke(int* where) { *where = 1; }

extern "C" __global__ void __launch_bounds__(128) bounded(int* x) { x[threadIdx.x] = 1; }
