#include "server/executor/image/image_addresses.h"

#include "memory/range_allocator.h"
#include "server/executor/image/address_scan.h"

namespace torpor::executor {

ImageAddresses::ImageAddresses(const ImageBacking& backing, std::uint64_t base, Bytes bytes)
    : backing_(backing),
      is_translating_(backing.is_translating()),
      base_(base),
      bytes_(bytes),
      allocated_(base),
      table_(backing.Addresses()) {}

void ImageAddresses::Refresh() {
  // A launch translates many pointers, and one lock for each pointer would cost more than the
  // launch. A current table owned by the calling thread needs no lock:
  //
  // - Swaps and moves change addresses only while no batch runs (Session::run_mutex_), so that the
  // next batch sees another version.
  //
  // - Growing and shrinking may overlap a batch, but the client names new memory only after the
  // call has returned, hence after the version has changed, and never names freed memory. A client
  // that breaks the rule gets the old address or 0, as with a lock.
  if (table_->version() != backing_.addresses_version()) table_ = backing_.Addresses();
}

void ImageAddresses::NoteAllocation(memory::Extent extent) {
  // A pointer may point behind the last byte, and a little further.
  allocated_.Add({extent.begin, extent.end + memory::RangeAllocator::kGuard});
}

bool ImageAddresses::ArePointersIn(std::span<const std::uint8_t> bytes,
                                   std::uint64_t address) const {
  return HoldsAddress(bytes, address, allocated_.range());
}

// Kernels may have written the GPU's addresses.
bool ImageAddresses::AreAnyPointersIn(std::span<const std::uint8_t> bytes,
                                      std::uint64_t address) const {
  if (ArePointersIn(bytes, address)) return true;
  return is_translating_ && HoldsAddress(bytes, address, backing_.gpu_addresses());
}

}  // namespace torpor::executor
