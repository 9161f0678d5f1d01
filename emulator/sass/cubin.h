#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "nvidia/machine_code/cubin_format.h"
#include "nvidia/machine_code/instruction.h"

// A linked cubin as the emulator needs it: NVIDIA's machine code (SASS) with kernels, variables and
// relocations.
namespace torpor::sass {

enum class CubinError {
  kMalformed,    // CUDA_ERROR_INVALID_IMAGE
  kUnsupported,  // of an architecture or a form that is not known: CUDA_ERROR_NO_BINARY_FOR_GPU
};
template <typename T>
using CubinResult = Result<T, CubinError>;

inline constexpr std::uint32_t kNoIndex = 0xffffffff;

// Architectures whose machine code the emulator runs: Turing.
inline constexpr std::array<unsigned, 1> kArchitectures = {75};

// An address that is known only when the cubin is loaded: of a place in a Memory, of code, or of a
// system function.
struct CubinRelocation {
  std::uint64_t offset = 0;  // where to put it: in the code or data that has the relocation
  RelocationType type = RelocationType::k64;
  std::uint32_t memory = kNoIndex;    // of Cubin::memories; or
  std::uint32_t text = kNoIndex;      // of Cubin::texts; or
  std::uint32_t external = kNoIndex;  // of Cubin::externals
  std::uint64_t addend = 0;           // from the begin of the memory or text
};

// A section of variables: one contiguous piece of memory.
struct Memory {
  enum class Kind : std::uint8_t { kGlobal, kConstant };
  std::string_view section;  // .nv.global, .nv.global.init, .nv.constant3, .nv.constant4
  Kind kind = Kind::kGlobal;
  std::uint32_t bank = 0;  // of constants
  std::uint64_t bytes = 0;
  std::uint32_t align = 1;
  std::span<const std::byte> initial;        // empty, or `bytes` long
  std::vector<CubinRelocation> relocations;  // ascending
};

// A variable that the program can find by name.
struct CubinVariable {
  std::string_view name;
  std::uint32_t memory = 0;  // of Cubin::memories
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// A function in a Text: the kernel itself, or one of its subroutines.
struct CubinFunction {
  std::string_view name;
  std::uint64_t offset = 0;  // of its first instruction, in the text
  std::uint64_t bytes = 0;
};

// A section of code. `code_address` is the section's address as instructions and data with code
// addresses (MOV 32@lo(function), tables of functions) see it. Texts do not overlap, and no address
// is 0.
struct Text {
  std::string_view name;  // of the section, without ".text."
  std::span<const std::byte> code;
  std::uint64_t code_address = 0;
  std::vector<CubinFunction> functions;      // ascending
  std::vector<CubinRelocation> relocations;  // ascending
};

struct Parameter {
  std::uint32_t offset = 0;  // in the packed parameters
  std::uint32_t bytes = 0;
};

// A BRX or JMX, with all possible targets.
struct IndirectBranch {
  std::uint64_t offset = 0;            // of the instruction
  std::vector<std::uint64_t> targets;  // in the same text
};

// A kernel, with the properties that the driver reports and that launches need. Sizes in bytes.
struct CubinKernel {
  std::string_view name;
  std::uint32_t text = 0;    // of Cubin::texts
  std::uint64_t offset = 0;  // of the entry in its text: 0, as far as is known
  std::vector<Parameter> parameters;
  std::uint32_t parameter_bytes = 0;  // of all, up to the end of the last one's double word: code
                                      // reads the words that hold the last ones
  std::uint32_t parameter_base = 0;   // where they begin in constant bank 0
  std::uint32_t registers = 0;
  std::uint32_t max_threads = 0;   // of a block; 0 if not given
  std::uint64_t shared_bytes = 0;  // static ones: they begin at shared address 0, dynamic ones
                                   // follow
  std::uint64_t local_bytes = 0;   // the stack that it and what it calls need: R1 begins at its end
  std::span<const std::byte> bank2;  // the compiler's own constants: c[0x2][…]
  std::vector<IndirectBranch> branches;
};

// Everything in a cubin. Names and code point into the bytes given to ReadCubin.
struct Cubin {
  unsigned architecture = 0;                // 75 of sm_75
  std::vector<std::string_view> externals;  // functions of the system: vprintf, __assertfail, ...
  std::vector<Text> texts;
  std::vector<CubinKernel> kernels;
  std::vector<Memory> memories;
  std::vector<CubinVariable> variables;

  const CubinKernel* FindKernel(std::string_view name) const;
  // Returns the memory of a constant bank that all kernels share (3, 4), or null.
  const Memory* Bank(std::uint32_t bank) const;
};

// The address of Cubin::externals[external] as code and data see it: beyond all code.
constexpr std::uint64_t ExternalAddress(std::uint32_t external) {
  return 0xffff'0000'0000'0000 + std::uint64_t{external} * kInstructionBytes;
}

// Reads a linked cubin. Safe on hostile bytes; the result points into `bytes`.
CubinResult<Cubin> ReadCubin(std::span<const std::byte> bytes);

}  // namespace torpor::sass
