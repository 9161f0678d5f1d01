// A forked child has no session: its calls fail with CUDA's error, and the parent goes on.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/programs/check.h"

__global__ void Set(int* value, int to) { *value = to; }

static void RequireUsable(int* device, int to) {
  int value = 0;
  Set<<<1, 1>>>(device, to);
  CUDA(cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost));
  REQUIRE(value == to);
}

int main() {
  int* device = nullptr;
  CUDA(cudaMalloc(&device, sizeof(int)));
  RequireUsable(device, 1);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    void* other = nullptr;
    int value = 0;
    const bool refused = cudaMalloc(&other, 1) == cudaErrorInitializationError &&
                         cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost) ==
                             cudaErrorInitializationError &&
                         cudaDeviceSynchronize() == cudaErrorInitializationError;
    _exit(refused ? 0 : 1);
  }
  RequireUsable(device, 2);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  RequireUsable(device, 3);
  return Pass();
}
