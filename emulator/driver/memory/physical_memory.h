#pragma once

#include <cuda.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "base/unique_fd.h"
#include "base/units.h"
#include "emulator/driver/memory/new_contents.h"
#include "emulator/node/memory_budget.h"

namespace torpor::emulator {

// Memory of cuMemCreate: a memory file that can be mapped at several addresses and passed to other
// processes. Counts against its budget until the handles and mappings are gone.
class PhysicalMemory {
 public:
  // Creates memory of the device at `place` in the topology. Returns null if the device or the
  // machine lacks memory or descriptors. `budget` must outlive the result.
  // With `contents`, new memory holds its bytes instead of zeros.
  static std::shared_ptr<PhysicalMemory> Create(Bytes size, const CUmemAllocationProp& properties,
                                                unsigned place, MemoryBudget& budget,
                                                NewContents* contents = nullptr);
  // Imports memory that another process exported, without counting it here. Returns null if `fd` is
  // another kind of file, or of a place for which `device_at` returns nullopt.
  static std::shared_ptr<PhysicalMemory> Import(
      int fd, const std::function<std::optional<CUdevice>(unsigned place)>& device_at);

  PhysicalMemory(UniqueFd file, Bytes size, const CUmemAllocationProp& properties,
                 MemoryBudget* budget, NewContents* contents)
      : file_(std::move(file)),
        size_(size),
        properties_(properties),
        budget_(budget),
        contents_(contents) {}
  ~PhysicalMemory();
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;

  int fd() const { return file_.get(); }
  Bytes size() const { return size_; }
  const CUmemAllocationProp& properties() const { return properties_; }
  // Call with the memory mapped and writable at `mapping`: fills new memory at the first call.
  void FillNew(void* mapping) {
    if (NewContents* contents = contents_.exchange(nullptr)) contents->Fill(mapping, size_);
  }
  // Returns a descriptor for another process, owned by the caller; -1 if descriptors ran out.
  int Export() const;

 private:
  const UniqueFd file_;
  const Bytes size_;
  const CUmemAllocationProp properties_;
  MemoryBudget* const budget_;
  std::atomic<NewContents*> contents_;  // null: filled already, or not to be filled
};

}  // namespace torpor::emulator
