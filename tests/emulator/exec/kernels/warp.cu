// Turing has no instruction for these.
#if __CUDA_ARCH__ < 800
__device__ int __reduce_add_sync(unsigned, int value) {
  for (int i = 16; i > 0; i /= 2) value += __shfl_xor_sync(~0U, value, i);
  return value;
}
__device__ int __reduce_max_sync(unsigned, int value) {
  for (int i = 16; i > 0; i /= 2) value = max(value, __shfl_xor_sync(~0U, value, i));
  return value;
}
#endif

extern "C" {

// Row k of `out` (64 threads wide) holds the result of the k-th operation.
__global__ void shuffles(int* out, int lane_step) {
  const int t = threadIdx.x;
  const int v = t * 7 + 1;
  const int n = blockDim.x;
  out[t] = __shfl_sync(~0U, v, (t * 5) & 31);
  out[n + t] = __shfl_up_sync(~0U, v, 3);
  out[2 * n + t] = __shfl_down_sync(~0U, v, 5, 8);
  out[3 * n + t] = __shfl_xor_sync(~0U, v, 9, 16);
  out[4 * n + t] = __shfl_sync(~0U, v, 4);
  out[5 * n + t] = __shfl_down_sync(~0U, v, lane_step);
  out[6 * n + t] = static_cast<int>(__shfl_xor_sync(~0U, v * 1.5, 1));
  out[7 * n + t] = __shfl_sync(~0U, v, 2, 8);
}

__global__ void votes(int* out) {
  const int t = threadIdx.x;
  const int n = blockDim.x;
  const int v = t * 7 + 1;
  out[t] = static_cast<int>(__ballot_sync(~0U, v & 4));
  out[n + t] = __any_sync(~0U, v == 8) + 2 * __all_sync(~0U, v < 225);
  out[2 * n + t] = static_cast<int>(__reduce_add_sync(~0U, v));
  out[3 * n + t] = static_cast<int>(__match_any_sync(~0U, v & 6));
  out[4 * n + t] = 0;
  if (t % 3 != 0) out[4 * n + t] = static_cast<int>(__activemask());
  out[5 * n + t] = static_cast<int>(__reduce_max_sync(~0U, v ^ 21));
  int total = v;
  for (int i = 16; i > 0; i /= 2) total += __shfl_xor_sync(~0U, total, i);
  out[6 * n + t] = total;
  unsigned lower;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lower));
  out[7 * n + t] = __popc(lower & __ballot_sync(~0U, t & 1));
}

__global__ void atomics(int* i, float* f, double* d, unsigned long long* u) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&i[0], t);
  atomicMax(&i[1], t);
  atomicMin(&i[2], -t);
  atomicInc(reinterpret_cast<unsigned*>(&i[3]), 99);
  atomicXor(&i[4], t);
  atomicOr(&i[5], 1 << (t & 31));
  atomicAnd(&i[6], ~(1 << (t & 15)));
  atomicSub(&i[7], 1);
  atomicDec(reinterpret_cast<unsigned*>(&i[8]), 7);
  atomicAdd(&f[t & 3], 1.0f);
  atomicAdd(d, 0.5);
  atomicAdd(u, static_cast<unsigned long long>(t));
  atomicMax(&u[1], static_cast<unsigned long long>(t) << 33);
}

__global__ void histogram(const unsigned char* data, int n, int* bins) {
  __shared__ int local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[data[i]], 1);
  }
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
}
