#pragma once

#include <cuda.h>

#include <functional>
#include <memory>
#include <optional>

#include "base/unique_fd.h"
#include "base/units.h"
#include "emulator/node/memory_budget.h"

namespace torpor::emulator {

// What cuMemCreate makes: a memory file that can be mapped at several addresses and passed to
// other processes. It counts against `budget` until handle and mappings are gone.
class PhysicalMemory {
 public:
  // Memory of the device at `place` in the topology. Null when the device or the machine has too
  // little memory (or descriptors) left. `budget` must outlive the result.
  static std::shared_ptr<PhysicalMemory> Create(Bytes size, const CUmemAllocationProp& properties,
                                                unsigned place, MemoryBudget& budget);
  // What another process exported. Null if `fd` is no such file, or of a place where `device_at`
  // knows no device. Counts only at its creator.
  static std::shared_ptr<PhysicalMemory> Import(
      int fd, const std::function<std::optional<CUdevice>(unsigned place)>& device_at);

  PhysicalMemory(UniqueFd file, Bytes size, const CUmemAllocationProp& properties,
                 MemoryBudget* budget)
      : file_(std::move(file)), size_(size), properties_(properties), budget_(budget) {}
  ~PhysicalMemory();
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;

  int fd() const { return file_.get(); }
  Bytes size() const { return size_; }
  const CUmemAllocationProp& properties() const { return properties_; }
  // A descriptor for another process, the caller's to close; -1 when there are none left.
  int Export() const;

 private:
  const UniqueFd file_;
  const Bytes size_;
  const CUmemAllocationProp properties_;
  MemoryBudget* const budget_;
};

}  // namespace torpor::emulator
