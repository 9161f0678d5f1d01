// Every self-checking CUDA program, over the replacement libraries and a private daemon.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/base/temporary_folder.h"
#include "tests/e2e/address_mode.h"
#include "tests/e2e/child_process.h"

namespace torpor::e2e {
namespace {

constexpr auto kPatience = std::chrono::seconds(110);

// One GPU that is large enough for every program, two for good measure.
constexpr const char* kTopology = R"(version: v1
gpus:
  - memory: 2GiB
    count: 2
)";

// Where no topology says it: the programs' PTX is for sm_90.
const std::map<std::string, std::string> kCapableOfAll = {
    {"TORPOR_EMULATOR_COMPUTE_CAPABILITY", "12.0"}};

// What a program's libraries say on its stdout.
std::string_view SaidBefore(std::string_view program) {
  if (program == "blas") return " ** On entry to SGEMM  parameter number 3 had an illegal value\n";
  return {};
}

class Programs : public testing::TestWithParam<const char*> {
 protected:
  void ExpectPass(const std::string& name, const std::vector<std::string>& options) {
    std::vector<std::string> command = {std::string(TORPOR_BIN_DIR) + "/torporctl", "run",
                                        "--standalone"};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"--", std::string(PROGRAM_DIR) + "/" + name});
    ChildProcess program(command, {folder_.path(), kCapableOfAll});
    const auto status = program.Wait(kPatience);
    EXPECT_EQ(status, 0) << program.Stderr();
    // The program's stdout passes through untouched.
    EXPECT_EQ(program.Stdout(), std::string(SaidBefore(name)) + "PASS\n") << program.Stderr();
  }

  TemporaryFolder folder_;
};

// Why a program cannot pass with address_mode: translate; nothing for those that can.
std::string_view WhyNotTranslated(std::string_view program) {
  if (program == "device_state") return kPointersInMemory;
  if (program == "blas_families") return "calls cuBLAS with arrays of pointers in device memory";
  return {};
}

TEST_P(Programs, Pass) {
  const std::string_view why_not = IsTranslating() ? WhyNotTranslated(GetParam()) : "";
  if (!why_not.empty()) GTEST_SKIP() << why_not;
  ExpectPass(GetParam(), {"--topology", folder_.Write("topology.yaml", kTopology)});
}

// Programs without PTX, on a GPU that runs such machine code as they have.
using ProgramsAsMachineCode = Programs;

constexpr const char* kTuringTopology = R"(version: v1
gpus:
  - {memory: 2GiB, compute_capability: 7.5}
)";

TEST_P(ProgramsAsMachineCode, Pass) {
  const std::string_view why_not = IsTranslating() ? WhyNotTranslated(GetParam()) : "";
  if (!why_not.empty()) GTEST_SKIP() << why_not;
  ExpectPass(std::string("../e2e_machine_code/machine_code_") + GetParam(),
             {"--topology", folder_.Write("topology.yaml", kTuringTopology)});
}

INSTANTIATE_TEST_SUITE_P(E2e, ProgramsAsMachineCode,
                         testing::Values("vector_add", "tiled_matmul", "reductions", "arithmetic",
                                         "symbols", "device_state", "streams_events"),
                         [](const auto& info) { return std::string(info.param); });

class ProgramsOfSeveralGpus : public Programs {
 protected:
  void ExpectPassWith(const std::string& gpus) {
    if (IsTranslating()) GTEST_SKIP() << kPeers;
    ExpectPass(std::string("../e2e_several_gpus/") + GetParam(), {"--gpus", gpus});
  }
};

TEST_P(ProgramsOfSeveralGpus, PassWithTwo) { ExpectPassWith("2"); }
TEST_P(ProgramsOfSeveralGpus, PassWithFour) { ExpectPassWith("4"); }

// Programs that make do with one GPU, too.
using ProgramsOfAnyGpus = Programs;

TEST_P(ProgramsOfAnyGpus, PassWithTwo) {
  if (IsTranslating()) GTEST_SKIP() << kPeers;
  ExpectPass(GetParam(), {"--gpus", "2"});
}
TEST_P(ProgramsOfAnyGpus, PassWithFour) {
  if (IsTranslating()) GTEST_SKIP() << kPeers;
  ExpectPass(GetParam(), {"--gpus", "4"});
}

INSTANTIATE_TEST_SUITE_P(E2e, ProgramsOfAnyGpus, testing::Values("processes"),
                         [](const auto& info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(E2e, ProgramsOfSeveralGpus,
                         testing::Values("several_gpus", "peer_memory", "visible_devices"),
                         [](const auto& info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(
    E2e, Programs,
    testing::Values("vector_add", "vector_add_by_pointer", "tiled_matmul", "streams_events",
                    "default_stream", "default_stream_per_thread", "copies", "symbols",
                    "device_state", "reductions", "arithmetic", "big_copies", "many_launches",
                    "threads", "errors", "sticky_error", "attributes", "device_assert",
                    "registered_memory", "device_reset", "forks", "arrays", "textures",
                    "texture_kinds", "blas", "blas_families", "separate_units",
                    "separate_units_ptx", "device_launch", "tensor_cores", "block_barriers",
                    "device_calls", "clusters", "graphs", "graph_capture", "graph_blas", "blas_lt",
                    "memory_pools", "managed_memory", "managed_variables", "processes", "nvml",
                    "launch_blocking", "segments"),
    [](const auto& info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(DriverApi, Programs, testing::Values("driver_api", "driver_arrays"),
                         [](const auto& info) { return std::string(info.param); });

#ifdef TORPOR_HAS_CUDNN
INSTANTIATE_TEST_SUITE_P(Cudnn, Programs,
                         testing::Values("../e2e_cudnn/dnn", "../e2e_cudnn/dnn_backend"),
                         [](const auto& info) {
                           return std::filesystem::path(info.param).stem().string();
                         });
#endif

#ifdef TORPOR_HAS_NVRTC
INSTANTIATE_TEST_SUITE_P(Nvrtc, Programs, testing::Values("../e2e_nvrtc/runtime_compilation"),
                         [](const auto&) { return "runtime_compilation"; });
#endif

}  // namespace
}  // namespace torpor::e2e
