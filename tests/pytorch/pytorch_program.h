#pragma once

#include <string>
#include <vector>

namespace torpor::e2e {

// A GPU that runs the machine code of PyTorch's wheels, as a line of a topology's `gpus`, `count`
// times.
std::string TuringGpus(const std::string& memory, int count);

// The command that runs a program of this project's (a path from its root) with the Python that has
// PyTorch: of the virtual environment that TORPOR_PYTORCH_VENV names, default
// ~/.cache/torpor/venv.
std::vector<std::string> PytorchProgram(const std::string& program,
                                        const std::vector<std::string>& arguments = {});

// Runs it without Torpor until it ends, with files in `folder`; what it prints. A failure is one of
// the test's.
std::string RunOnCpu(const std::string& program, const std::vector<std::string>& arguments,
                     const std::string& folder);

}  // namespace torpor::e2e
