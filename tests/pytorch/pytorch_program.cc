#include "tests/pytorch/pytorch_program.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "tests/e2e/child_process.h"

namespace torpor::e2e {
namespace {

constexpr auto kPatience = std::chrono::minutes(3);

std::string VirtualEnvironment() {
  if (const char* const named = std::getenv("TORPOR_PYTORCH_VENV")) return named;
  const char* const home = std::getenv("HOME");
  return std::string(home == nullptr ? "" : home) + "/.cache/torpor/venv";
}

}  // namespace

std::string TuringGpus(const std::string& memory, int count) {
  return "{memory: " + memory +
         ", compute_capability: 7.5, pcie_gbps: 8, count: " + std::to_string(count) + "}";
}

std::vector<std::string> PytorchProgram(const std::string& program,
                                        const std::vector<std::string>& arguments) {
  // -B: a test leaves no files in the source folder.
  std::vector<std::string> command = {VirtualEnvironment() + "/bin/python", "-B",
                                      std::string(TORPOR_SOURCE_DIR) + "/" + program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

std::string RunOnCpu(const std::string& program, const std::vector<std::string>& arguments,
                     const std::string& folder) {
  ChildProcess process(PytorchProgram(program, arguments), {folder, {}});
  EXPECT_EQ(process.Wait(kPatience), 0)
      << process.Stderr() << "\nThe tests need the packages of tests/pytorch/requirements.txt in "
      << VirtualEnvironment();
  return process.Stdout();
}

}  // namespace torpor::e2e
