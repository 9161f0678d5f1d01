#pragma once

#include <cuda.h>

#include <optional>
#include <string>

#include "emulator/driver/memory/address_space.h"
#include "emulator/driver/stream/call_costs.h"
#include "emulator/exec/program.h"
#include "emulator/node/identity.h"
#include "emulator/node/memory_budget.h"
#include "emulator/node/topology.h"

namespace torpor::emulator {

// The unit in which allocations count against a device: a page of the host.
inline constexpr Bytes kAllocationUnit = 4 * kKiB;

// One emulated GPU: properties, memory budget, and device memory as kernels see it. Thread-safe.
class DriverDevice final : public DeviceMemory {
 public:
  // `node` and `space` must outlive the device. `index` is the CUDA ordinal in this process;
  // `spec.place` is the index in the topology.
  DriverDevice(CUdevice index, GpuSpec spec, const Topology& topology, NodeFile& node,
               AddressSpace& space);

  CUdevice index() const { return index_; }
  const GpuSpec& spec() const { return spec_; }
  MemoryBudget& budget() { return budget_; }
  CallCosts& call_costs() { return call_costs_; }
  const Strictness& strict() const { return strict_; }
  // Null if new memory is zeroed.
  NewContents* new_contents() { return strict_.addresses ? &new_contents_ : nullptr; }
  DeviceTraits traits() const;
  // Returns nullopt for an attribute that cuda.h does not name.
  std::optional<int> Attribute(CUdevice_attribute attribute) const;
  // The same in every process for the same place and link of the topology.
  CUuuid uuid() const;
  PciAddress pci_address() const { return pci_address_; }

  // Allocates memory that counts against the device until FreeMemory; for `owner` see Region.
  DriverResult<std::uint64_t> AllocateMemory(Bytes size, RegionKind kind, CUcontext owner,
                                             unsigned flags = 0);
  CUresult FreeMemory(std::uint64_t address, RegionKind kind);

  // DeviceMemory, for kernels
  std::uint64_t window_begin() const override { return kWindowBegin; }
  std::uint64_t window_end() const override { return kWindowEnd; }
  bool IsAccessible(std::uint64_t address, Bytes size) const override;
  ExecResult<std::uint64_t> Allocate(Bytes size) override;
  void Free(std::uint64_t address) override;

 private:
  const CUdevice index_;
  const GpuSpec spec_;
  const PciAddress pci_address_;
  const std::uint32_t link_signature_;
  AddressSpace& space_;
  MemoryBudget budget_;
  CallCosts call_costs_;
  const Strictness strict_;
  NewContents new_contents_;
};

}  // namespace torpor::emulator
