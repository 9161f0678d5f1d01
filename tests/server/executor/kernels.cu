// A module without variables.
extern "C" __global__ void scale(float* data, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] *= factor;
}

extern "C" __global__ void poke(int* address) { *address = 1; }
