#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "emulator/exec/program.h"

namespace torpor::emulator {

// A module whose kernels become PTX one by one, each when it is first compiled. What it says never
// changes. Thread-safe.
class KernelSource {
 public:
  // A word of memory that holds an address of memory: where `memory` begins, and `addend`.
  struct Address {
    std::uint64_t offset = 0;
    std::uint32_t memory = 0;
    std::uint64_t addend = 0;
  };
  // Of all kernels: in their PTX it is an .extern variable of this name.
  struct Memory {
    std::string name;
    Bytes size = 0;
    Bytes align = 1;  // a power of two
    bool constant = false;
    std::vector<std::byte> initial = {};  // may be shorter than `size`; the rest is zero
    std::vector<Address> addresses = {};  // all inside `initial`
  };
  // What the user knows by a name.
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

  // A module of PTX with kernel `index` and what it calls: its name and parameters are as kernels()
  // says. kUnsupported where its code cannot be said in PTX.
  virtual ExecResult<std::string> KernelPtx(std::size_t index) const = 0;
};

}  // namespace torpor::emulator
