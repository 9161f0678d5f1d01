#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <span>

#include "base/units.h"
#include "memory/extent_set.h"
#include "server/executor/image/address_hull.h"
#include "server/executor/image/address_table.h"
#include "server/executor/image/image_backing.h"

namespace torpor::executor {

// The addresses of an image, the client's and the GPU's: where the client's pointers lead on this
// GPU, and whether bytes hold such pointers.
class ImageAddresses {
 public:
  // For client's addresses in [base, base + bytes); `backing` covers the same range and must
  // outlive this object.
  ImageAddresses(const ImageBacking& backing, std::uint64_t base, Bytes bytes);

  std::uint64_t base() const { return base_; }
  Bytes bytes() const { return bytes_; }
  // Whether all of [address, address + bytes) are the client's. Takes any numbers.
  bool Contains(std::uint64_t address, Bytes bytes) const {
    return address >= base_ && address - base_ <= bytes_ && bytes <= bytes_ - (address - base_);
  }

  // Whether the GPU's addresses differ from the client's. If so, Translate returns the GPU's
  // address of a client's pointer, as of the last Refresh, or 0 for other numbers; see
  // AddressTable. For the thread that executes the session's calls.
  bool is_translating() const { return is_translating_; }
  void Refresh();
  CUdeviceptr Translate(std::uint64_t address) const { return TranslateBy(*table_, address); }
  // As Translate, with the present addresses, for any thread.
  CUdeviceptr TranslateForSibling(std::uint64_t address) const {
    return TranslateBy(*backing_.Addresses(), address);
  }

  // Notes an allocation at `extent`, bytes from base(). One thread at a time.
  void NoteAllocation(memory::Extent extent);
  // Whether an aligned word of `bytes`, the memory at the client's `address`, may be a client's
  // pointer to an allocation. Any thread.
  bool ArePointersIn(std::span<const std::uint8_t> bytes, std::uint64_t address) const;
  // As ArePointersIn, for addresses of the GPU's, too.
  bool AreAnyPointersIn(std::span<const std::uint8_t> bytes, std::uint64_t address) const;

 private:
  CUdeviceptr TranslateBy(const AddressTable& table, std::uint64_t address) const {
    return address - base_ < bytes_ ? table.Translate(address - base_) : 0;
  }

  const ImageBacking& backing_;
  const bool is_translating_;
  const std::uint64_t base_;
  const Bytes bytes_;
  AddressHull allocated_;
  std::shared_ptr<const AddressTable> table_;  // of the thread that executes the calls
};

}  // namespace torpor::executor
