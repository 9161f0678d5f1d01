#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "emulator/exec/program.h"

namespace torpor::emulator {

// A module of kernels in another format than PTX: KernelPtx translates each kernel when first
// compiled. All functions return the same values at every call. Thread-safe.
class KernelSource {
 public:
  // A word of memory that holds an address of memory: where `memory` begins, and `addend`.
  struct LaneAddress {
    std::uint64_t offset = 0;
    std::uint32_t memory = 0;
    std::uint64_t addend = 0;
  };
  // Memory shared by all kernels, an .extern variable of this name in the PTX of each.
  struct Memory {
    std::string name;
    Bytes size = 0;
    Bytes align = 1;  // a power of two
    bool constant = false;
    std::vector<std::byte> initial = {};      // may be shorter than `size`; the rest is zero
    std::vector<LaneAddress> addresses = {};  // all inside `initial`
  };
  // A part of a Memory under a name that users look up.
  struct Variable {
    std::string name;
    std::uint32_t memory = 0;
    std::uint64_t offset = 0;
    Bytes size = 0;
  };

  virtual ~KernelSource() = default;

  virtual const std::vector<KernelInfo>& kernels() const = 0;
  virtual const std::vector<Memory>& memories() const = 0;
  virtual const std::vector<Variable>& variables() const = 0;

  // Returns a module of PTX with kernel `index` and all functions called; name and parameters match
  // kernels()[index]. kUnsupported if PTX cannot express the kernel's code.
  virtual ExecResult<std::string> KernelPtx(std::size_t index) const = 0;
};

}  // namespace torpor::emulator
