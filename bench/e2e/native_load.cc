#include "bench/e2e/native_load.h"

#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "bench/process_check.h"

namespace torpor::bench {
namespace {

Duration Load(const std::vector<Bytes>& tensors, const std::vector<char>& weights) {
  std::vector<CUdeviceptr> loaded(tensors.size());
  const TimePoint begin = std::chrono::steady_clock::now();
  const char* next = weights.data();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Check(cuMemAlloc(&loaded[i], tensors[i]), "cuMemAlloc");
    Check(cuMemcpyHtoD(loaded[i], next, tensors[i]), "cuMemcpyHtoD");
    next += tensors[i];
  }
  const Duration took = std::chrono::steady_clock::now() - begin;
  for (const CUdeviceptr tensor : loaded) Check(cuMemFree(tensor), "cuMemFree");
  return took;
}

void LoadRepeatedly(const std::string& topology_path, const std::vector<Bytes>& tensors, int rounds,
                    int answers) {
  setenv("TORPOR_EMULATOR_TOPOLOGY", topology_path.c_str(), 1);
  unsetenv("TORPOR_EMULATOR_NODE");
  CUcontext context = nullptr;
  Check(cuInit(0), "cuInit");
  Check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  Bytes bytes = 0;
  for (const Bytes tensor : tensors) bytes += tensor;
  const std::vector<char> weights(bytes, 1);
  for (int round = 0; round < rounds; ++round) {
    const std::int64_t ns = Load(tensors, weights).count();
    Check(write(answers, &ns, sizeof(ns)) == sizeof(ns), "answering");
  }
}

}  // namespace

std::vector<Duration> MeasureNativeLoad(const std::string& topology_path,
                                        const std::vector<Bytes>& tensors, int rounds) {
  int answers[2] = {-1, -1};
  Check(pipe(answers) == 0, "pipe");
  const pid_t child = fork();
  Check(child >= 0, "fork");
  if (child == 0) {
    LoadRepeatedly(topology_path, tensors, rounds, answers[1]);
    std::_Exit(0);
  }
  close(answers[1]);
  std::vector<Duration> durations;
  std::int64_t ns = 0;
  while (read(answers[0], &ns, sizeof(ns)) == sizeof(ns)) durations.emplace_back(ns);
  close(answers[0]);
  waitpid(child, nullptr, 0);
  Check(durations.size() == static_cast<std::size_t>(rounds), "loading natively");
  return durations;
}

}  // namespace torpor::bench
