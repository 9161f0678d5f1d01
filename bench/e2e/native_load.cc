#include "bench/e2e/native_load.h"

#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "bench/process_check.h"
#include "tests/base/temporary_folder.h"
#include "tests/e2e/child_process.h"

namespace torpor::bench {
namespace {

// The tensors lie one after another in `weights`.
void LoadTensors(const std::vector<CUdeviceptr>& to, const std::vector<Bytes>& tensors,
                 const char* weights) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Check(cuMemcpyHtoD(to[i], weights, tensors[i]), "cuMemcpyHtoD");
    weights += tensors[i];
  }
}

void LoadRepeatedly(const std::string& topology_path, const std::string& node_path,
                    const std::vector<Bytes>& tensors, int rounds, int answers) {
  setenv("TORPOR_EMULATOR_TOPOLOGY", topology_path.c_str(), 1);
  setenv("TORPOR_EMULATOR_NODE", node_path.c_str(), 1);
  CUcontext context = nullptr;
  Check(cuInit(0), "cuInit");
  Check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  Bytes bytes = 0;
  for (const Bytes tensor : tensors) bytes += tensor;
  const std::vector<char> weights(bytes, 1);
  std::vector<CUdeviceptr> loaded(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Check(cuMemAlloc(&loaded[i], tensors[i]), "cuMemAlloc");
  }
  LoadTensors(loaded, tensors, weights.data());  // the emulated GPU's pages come into being
  auto account = emulator::ModelAccount::Open(node_path);
  Check(account.ok(), "opening the node's account");
  account->Reset();
  for (int round = 0; round < rounds; ++round) {
    const TimePoint begin = std::chrono::steady_clock::now();
    LoadTensors(loaded, tensors, weights.data());
    const std::int64_t ns = Duration(std::chrono::steady_clock::now() - begin).count();
    Check(write(answers, &ns, sizeof(ns)) == sizeof(ns), "answering");
  }
}

}  // namespace

NativeLoad MeasureNativeLoad(const std::string& topology, const std::vector<Bytes>& tensors,
                             int rounds) {
  const TemporaryFolder folder;
  const std::string topology_path = folder.Write("topology.yaml", topology);
  const std::string node_path = folder.path() + "/node";
  int answers[2] = {-1, -1};
  Check(pipe(answers) == 0, "pipe");
  const pid_t child = fork();
  Check(child >= 0, "fork");
  if (child == 0) {
    LoadRepeatedly(topology_path, node_path, tensors, rounds, answers[1]);
    std::_Exit(0);
  }
  close(answers[1]);
  NativeLoad load;
  std::int64_t ns = 0;
  while (read(answers[0], &ns, sizeof(ns)) == sizeof(ns)) load.durations.emplace_back(ns);
  close(answers[0]);
  waitpid(child, nullptr, 0);
  Check(load.durations.size() == static_cast<std::size_t>(rounds), "loading natively");
  const auto account = emulator::ModelAccount::Open(node_path);
  Check(account.ok(), "reading the node's account");
  load.report = account->Read();
  return load;
}

}  // namespace torpor::bench
