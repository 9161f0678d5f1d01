#pragma once

#include <cuda.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "emulator/driver/address_space.h"
#include "emulator/driver/physical_memory.h"
#include "emulator/driver/topology.h"
#include "emulator/exec/program.h"

namespace torpor::emulator {

class Context;

// Allocations count in these, the pages of the host.
inline constexpr Bytes kAllocationUnit = 4 * kKiB;

// One direction of a PCIe link: transfers follow one another at the link's rate. Thread-safe.
class Link {
 public:
  explicit Link(double bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  bool paced() const { return bytes_per_second_ > 0; }
  // When a transfer of `size` that is ready `now` ends.
  TimePoint Reserve(Bytes size, TimePoint now);

 private:
  const double bytes_per_second_;
  std::mutex mutex_;
  TimePoint free_at_;
};

// Both directions, as seen from the GPU.
struct PcieLink {
  explicit PcieLink(double bytes_per_second)
      : to_device(bytes_per_second), to_host(bytes_per_second) {}
  Link to_device;
  Link to_host;
};

// One emulated GPU. Thread-safe.
class Device final : public DeviceMemory {
 public:
  Device(CUdevice index, GpuSpec spec, std::shared_ptr<PcieLink> link, AddressSpace& space);

  CUdevice index() const { return index_; }
  const GpuSpec& spec() const { return spec_; }
  MemoryBudget& budget() { return budget_; }
  PcieLink& link() { return *link_; }
  DeviceTraits traits() const;
  // Nothing for an attribute that cuda.h does not name.
  std::optional<int> Attribute(CUdevice_attribute attribute) const;
  CUuuid uuid() const;
  std::string pci_bus_id() const;

  // Memory that counts against the device; see Region::owner.
  DriverResult<std::uint64_t> AllocateMemory(Bytes size, RegionKind kind, CUcontext owner,
                                             unsigned flags = 0);
  CUresult FreeMemory(std::uint64_t address, RegionKind kind);

  // The primary context: made by the first Retain, gone with the last Release.
  std::shared_ptr<Context> RetainPrimary(CUcontext& handle);
  CUresult ReleasePrimary();
  void ResetPrimary();
  CUresult SetPrimaryFlags(unsigned flags);
  void PrimaryState(unsigned& flags, int& active) const;
  // Null if there is none now.
  CUcontext primary() const;

  // DeviceMemory, for kernels
  std::uint64_t window_begin() const override { return kWindowBegin; }
  std::uint64_t window_end() const override { return kWindowEnd; }
  bool IsAccessible(std::uint64_t address, Bytes size) const override;
  ExecResult<std::uint64_t> Allocate(Bytes size) override;
  void Free(std::uint64_t address) override;

 private:
  const CUdevice index_;
  const GpuSpec spec_;
  const std::shared_ptr<PcieLink> link_;
  AddressSpace& space_;
  MemoryBudget budget_;

  mutable std::mutex primary_mutex_;
  CUcontext primary_ = nullptr;
  unsigned primary_references_ = 0;
  unsigned primary_flags_ = 0;
};

}  // namespace torpor::emulator
