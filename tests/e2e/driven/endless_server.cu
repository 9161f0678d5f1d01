// A function that does not give its GPU back when it is asked to, for tests/e2e/run_limit_test.cc.
//   POST /add {"value":[v]}  ->  {"sum":S}, the sum of all values
//   POST /spin {}            launches a kernel without end, and waits for it
//   POST /wait {}            waits for ever, with a GPU that does nothing
#include <unistd.h>

#include <optional>
#include <string>

#include "examples/service/cuda_error.h"
#include "examples/service/endpoint.h"
#include "tests/e2e/driven/sum_service.h"

namespace torpor::examples {
namespace {

__global__ void Add(unsigned* sum, unsigned value) { *sum += value; }

__global__ void Spin(volatile unsigned* sum) {
  while (*sum != ~0u) {
  }
}

class Endless {
 public:
  Endless() {
    Check(cudaMalloc(&sum_, sizeof(*sum_)));
    Check(cudaMemset(sum_, 0, sizeof(*sum_)));
  }

  unsigned Extend(unsigned value) {
    Add<<<1, 1>>>(sum_, value);
    unsigned sum = 0;
    Check(cudaMemcpy(&sum, sum_, sizeof(sum), cudaMemcpyDeviceToHost));
    return sum;
  }

  unsigned WaitForEver() {
    Spin<<<1, 1>>>(sum_);
    Check(cudaDeviceSynchronize());
    return 0;
  }

 private:
  unsigned* sum_ = nullptr;
};

int Main(int argc, char** argv) {
  const Flags flags = ParseFlags(
      argc, argv, std::string("usage: endless_server [flags]\n") + kEndpointUsage, EndpointFlags());
  Endless endless;
  ServeSums(flags, [&](const SumRequest& request) -> std::optional<unsigned long long> {
    if (request.Is("/add", "value")) return endless.Extend(request.number("value"));
    if (request.Is("/spin")) return endless.WaitForEver();
    while (request.Is("/wait")) pause();
    return std::nullopt;
  });
  return 0;
}

}  // namespace
}  // namespace torpor::examples

int main(int argc, char** argv) {
  return torpor::examples::RunProgram("endless_server", torpor::examples::Main, argc, argv);
}
