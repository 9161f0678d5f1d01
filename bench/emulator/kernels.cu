// What bench/emulator measures: the shapes that kernels come in. native_kernels.cc does the same
// work in C++.

extern "C" {

__global__ void empty() {}

__global__ void vector_add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

// A grid-stride loop.
__global__ void axpy(const float* a, const float* b, float* c, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    c[i] = 2.5f * a[i] + b[i];
  }
}

__global__ void logistic(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = logf(1 + expf(-a[i])) * sqrtf(b[i]);
}

// One block of 256 threads leaves one sum.
__global__ void reduce(const float* in, float* out, int n) {
  __shared__ float sums[256];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    sum += in[i];
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

// Two elements a thread, all of the rest in shared memory and by shuffles: many small blocks.
__global__ void reduce_shuffle(const float* in, float* out, int n) {
  __shared__ float sums[32];
  const int i = blockIdx.x * blockDim.x * 2 + threadIdx.x;
  float sum = (i < n ? in[i] : 0) + (i + blockDim.x < n ? in[i + blockDim.x] : 0);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// Rows are read together, columns written apart.
__global__ void transpose_naive(const float* in, float* out, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  out[x * n + y] = in[y * n + x];
}

// By way of a padded tile, with blocks of 32 x 8.
__global__ void transpose_tiled(const float* in, float* out, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  int y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

// Five points of a plane; the border stays as it is.
__global__ void stencil(const float* in, float* out, int n) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x == 0 || y == 0 || x >= n - 1 || y >= n - 1) return;
  const int i = y * n + x;
  out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
}

// Each element is read from where another array says.
__global__ void gather(const float* in, const int* index, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[index[i]];
}

// 256 bins a block in shared memory, then added to the whole.
__global__ void histogram(const unsigned* in, unsigned* bins, int n) {
  __shared__ unsigned mine[256];
  mine[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&mine[in[i] & 255], 1);
  }
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

// Lanes part after different numbers of steps.
__global__ void collatz(const unsigned* in, unsigned* steps, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned count = 0;
  for (unsigned x = in[i]; x > 1; ++count) x = x % 2 ? 3 * x + 1 : x / 2;
  steps[i] = count;
}
}

template <int kTile>
__device__ void Multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const int row = blockIdx.y * kTile + y;
  const int column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int k = 0; k < n; k += kTile) {
    tile_a[y][x] = a[row * n + k + x];
    tile_b[y][x] = b[(k + y) * n + column];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; i++) sum += tile_a[y][i] * tile_b[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

extern "C" __global__ void multiply_16(const float* a, const float* b, float* c, int n) {
  Multiply<16>(a, b, c, n);
}

extern "C" __global__ void multiply_32(const float* a, const float* b, float* c, int n) {
  Multiply<32>(a, b, c, n);
}
