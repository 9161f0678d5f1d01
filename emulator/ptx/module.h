#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/ptx/instruction.h"
#include "emulator/ptx/type.h"

namespace torpor::ptx {

// Which modules may use a name of a module; see link.h.
enum class Linkage : std::uint8_t {
  kLocal,     // nobody
  kExternal,  // declared here, defined in another module
  kVisible,   // everybody
  kWeak,      // everybody, unless another module defines it too
  kCommon,    // as kWeak; the largest definition is taken
};

inline constexpr std::uint32_t kMaxVariableAlignment = 4096;  // of variables, in bytes

// A word of an initialiser that holds an address: `symbol` + `addend`.
struct Relocation {
  std::uint64_t offset = 0;
  unsigned bytes = 8;
  std::string_view name;
  std::uint32_t symbol = kNoIndex;
  bool is_function = false;
  std::int64_t addend = 0;
};

// Any declared memory: module variables, a function's shared and local arrays, and parameters of
// functions and of call sequences.
struct Variable {
  std::string_view name;
  Space space = Space::kGlobal;
  Type type = Type::kB8;
  std::uint64_t bytes = 0;  // 0: extern array without a length
  std::uint32_t align = 1;
  Linkage linkage = Linkage::kLocal;
  std::uint32_t function = kNoIndex;   // the owner; kNoIndex for the module
  std::uint32_t parameter_offset = 0;  // in the packed parameters of its function
  std::vector<std::uint8_t> initial;   // may be shorter than `bytes`; the rest is zero
  std::vector<Relocation> relocations;
};

// A kernel or device function. Indices are of Module::variables and of the function's own tables.
struct Function {
  std::string_view name;
  bool is_kernel = false;
  bool has_body = false;
  Linkage linkage = Linkage::kLocal;
  std::vector<std::uint32_t> parameters;  // variables
  std::vector<std::uint32_t> results;     // variables
  std::uint32_t parameter_bytes = 0;
  std::uint32_t max_threads = 0;  // .maxntid or .reqntid; 0 if not given
  // .reqnctapercluster, in blocks along each axis; 0 if not given.
  std::array<std::uint32_t, 3> cluster = {};
  bool explicit_cluster = false;  // .explicitcluster: every launch names the size
  std::vector<Type> registers;
  std::uint32_t carry = kNoIndex;  // the register of .cc, behind the declared ones
  std::vector<Instruction> instructions;
  std::vector<std::uint32_t> labels;                      // label -> instruction index
  std::vector<std::vector<std::uint32_t>> branch_tables;  // of labels

  bool HasParameter(std::uint32_t variable) const;
};

// A parsed or linked module. Movable; keeps the texts alive that names and spellings point into.
struct Module {
  std::vector<std::shared_ptr<const std::string>> texts;  // every string_view points into one
  unsigned target = 0;                                    // 90 of sm_90
  std::vector<Variable> variables;
  std::vector<Function> functions;

  // Returns kNoIndex if there is no such function.
  std::uint32_t FindFunction(std::string_view name) const;
};

}  // namespace torpor::ptx
