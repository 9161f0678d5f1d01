#pragma once

#include <atomic>
#include <filesystem>
#include <string>

namespace torpor::conformance {

// Machine code, or why there is none.
struct MachineCode {
  std::string image;    // an ELF file for cuModuleLoadData
  std::string refusal;  // of the assembler, where `image` is empty

  // Whether the assembler refused an instruction that the architecture does not have.
  bool IsForAnotherArchitecture() const;
};

// NVIDIA's assembler for PTX, a process for each module. Threads may share one.
class Assembler {
 public:
  // `ptxas` is a path or a name to be found in PATH, `architecture` for example sm_75.
  Assembler(std::string ptxas, std::string architecture);
  ~Assembler();
  Assembler(const Assembler&) = delete;
  Assembler& operator=(const Assembler&) = delete;

  // Throws std::runtime_error where ptxas cannot be run.
  MachineCode Assemble(const std::string& ptx);

 private:
  std::string ptxas_;
  std::string architecture_;
  std::filesystem::path folder_;
  std::atomic<int> modules_ = 0;
};

}  // namespace torpor::conformance
