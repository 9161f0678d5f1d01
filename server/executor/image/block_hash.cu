// The hash by which an executor finds memory changed by the GPU. A thread block hashes one block of
// memory; each thread hashes a column, so that a warp reads consecutive bytes.
//
// Each step of a column is a bijection of 64 bits of state: a single changed word always changes
// the hash, and any other change is missed once in 2^61 times. Uses 32-bit products, which are fast
// on GPUs and in the emulator's vectors.
namespace {

constexpr unsigned kThreads = 256;

__device__ unsigned Rotate(unsigned value, unsigned bits) {
  return __funnelshift_l(value, value, bits);
}

struct Column {
  unsigned low;
  unsigned high;

  __device__ void Add(unsigned first, unsigned second) {
    low = (low ^ first) * 0x9E3779B1u;
    high = (high ^ second) * 0x85EBCA77u;
    low += Rotate(high, 7);
    high ^= Rotate(low, 13);
  }

  // The finaliser of MurmurHash3: columns are added up, so each must be well mixed.
  __device__ unsigned long long Finish() const {
    unsigned long long hash = static_cast<unsigned long long>(high) << 32 | low;
    hash = (hash ^ hash >> 33) * 0xFF51AFD7ED558CCDull;
    hash = (hash ^ hash >> 33) * 0xC4CEB9FE1A85EC53ull;
    return hash ^ hash >> 33;
  }
};

}  // namespace

// Puts the hash of memory block i, `vectors` times 16 bytes from blocks + i * vectors on, into
// hashes[i]; i is the thread block's index.
extern "C" __global__ void __launch_bounds__(kThreads)
    torpor_hash_blocks(const uint4* blocks, unsigned vectors, unsigned long long* hashes) {
  __shared__ unsigned long long sums[kThreads];
  const uint4* const block = blocks + static_cast<unsigned long long>(blockIdx.x) * vectors;
  Column column{threadIdx.x, ~threadIdx.x};
  for (unsigned i = threadIdx.x; i < vectors; i += kThreads) {
    const uint4 part = block[i];
    column.Add(part.x, part.y);
    column.Add(part.z, part.w);
  }
  sums[threadIdx.x] = column.Finish();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) hashes[blockIdx.x] = sums[0];
}
