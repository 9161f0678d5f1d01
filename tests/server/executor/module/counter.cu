// A module with a variable.
__device__ int counter = 5;

extern "C" __global__ void count_up() { counter += 1; }
