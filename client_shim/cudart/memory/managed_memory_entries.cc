#include <algorithm>
#include <functional>
#include <vector>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/managed/managed_ranges.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {
namespace {

// cudaMallocManaged: pinned memory of the arena, noted as managed.
cudaError_t Allocate(void** out, std::uint64_t bytes, unsigned flags) {
  const bool is_known = flags == cudaMemAttachGlobal || flags == cudaMemAttachHost;
  if (!out || bytes == 0 || !is_known) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  std::uint64_t address = 0;
  TORPOR_TRY(Core().HostAlloc(bytes, address));
  TheManagedRanges().Add(address, bytes);
  *out = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

// Checks a target of advice or prefetching: any device, or the host with any NUMA node.
cudaError_t CheckLocation(const cudaMemLocation& location) {
  switch (location.type) {
    case cudaMemLocationTypeDevice:
      return Core().OfDevice(location.id) ? cudaSuccess : cudaErrorInvalidDevice;
    case cudaMemLocationTypeHost:
    case cudaMemLocationTypeHostNuma:
    case cudaMemLocationTypeHostNumaCurrent:
      return cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}

// Whether the advice has a location.
bool HasLocation(cudaMemoryAdvise advice) {
  return advice == cudaMemAdviseSetPreferredLocation || advice == cudaMemAdviseSetAccessedBy ||
         advice == cudaMemAdviseUnsetAccessedBy;
}

// Checks and stores advice; see ManagedAdvice.
cudaError_t Advise(const void* pointer, std::uint64_t bytes, cudaMemoryAdvise advice,
                   const cudaMemLocation& location) {
  TORPOR_TRY(Begin());
  if (bytes == 0 || advice < cudaMemAdviseSetReadMostly || advice > cudaMemAdviseUnsetAccessedBy)
    return cudaErrorInvalidValue;
  if (HasLocation(advice)) TORPOR_TRY(CheckLocation(location));
  const auto change = [&](ManagedAdvice& kept) {
    const bool is_device = location.type == cudaMemLocationTypeDevice;
    const auto accessor = static_cast<std::size_t>(is_device ? location.id : kHostAccessor);
    switch (advice) {
      case cudaMemAdviseSetReadMostly:
      case cudaMemAdviseUnsetReadMostly:
        kept.read_mostly = advice == cudaMemAdviseSetReadMostly;
        break;
      case cudaMemAdviseSetPreferredLocation:
        kept.preferred = location;
        break;
      case cudaMemAdviseUnsetPreferredLocation:
        kept.preferred = {cudaMemLocationTypeInvalid, 0};
        break;
      case cudaMemAdviseSetAccessedBy:
      case cudaMemAdviseUnsetAccessedBy:
        kept.accessed_by[accessor] = advice == cudaMemAdviseSetAccessedBy;
        break;
    }
  };
  return TheManagedRanges().Advise(Address(pointer), bytes, change) ? cudaSuccess
                                                                    : cudaErrorInvalidValue;
}

cudaError_t CheckStream(cudaStream_t handle) {
  ClientStreamPtr stream;
  return FindStream(handle, stream);
}

// Only notes the location: the memory moves nowhere.
cudaError_t Prefetch(const void* pointer, std::uint64_t bytes, const cudaMemLocation& location) {
  if (bytes == 0) return cudaErrorInvalidValue;
  TORPOR_TRY(CheckLocation(location));
  const auto change = [&](ManagedAdvice& kept) { kept.prefetched = location; };
  return TheManagedRanges().Advise(Address(pointer), bytes, change) ? cudaSuccess
                                                                    : cudaErrorInvalidValue;
}

// The ranges of a batch call, in the program's arrays.
struct Batch {
  void* const* pointers = nullptr;
  const std::size_t* sizes = nullptr;
  std::size_t count = 0;
};

// CUDA's rules: no flags, no legacy stream, and every range inside one managed allocation.
cudaError_t CheckBatch(const Batch& batch, unsigned long long flags, cudaStream_t stream) {
  if (!batch.pointers || !batch.sizes || batch.count == 0 || flags != 0)
    return cudaErrorInvalidValue;
  if (stream == nullptr || stream == cudaStreamLegacy) return cudaErrorInvalidValue;
  TORPOR_TRY(CheckStream(stream));
  for (std::size_t i = 0; i < batch.count; ++i)
    if (batch.sizes[i] == 0 ||
        !TheManagedRanges().Contains(Address(batch.pointers[i]), batch.sizes[i]))
      return cudaErrorInvalidValue;
  return cudaSuccess;
}

// Location k applies to the ranges from indices[k] up to indices[k + 1].
cudaError_t PrefetchBatch(const Batch& batch, const cudaMemLocation* locations,
                          const std::size_t* indices, std::size_t location_count) {
  const bool is_sane = locations && indices && location_count > 0 &&
                       location_count <= batch.count && indices[0] == 0;
  if (!is_sane || std::adjacent_find(indices, indices + location_count, std::greater_equal<>()) !=
                      indices + location_count)
    return cudaErrorInvalidValue;
  for (std::size_t k = 0; k < location_count; ++k) {
    const std::size_t end = k + 1 < location_count ? indices[k + 1] : batch.count;
    if (end > batch.count) return cudaErrorInvalidValue;
    for (std::size_t i = indices[k]; i < end; ++i)
      TORPOR_TRY(Prefetch(batch.pointers[i], batch.sizes[i], locations[k]));
  }
  return cudaSuccess;
}

// The location common to all parts; invalid if they differ.
cudaMemLocation CommonLocation(const std::vector<ManagedAdvice>& parts,
                               cudaMemLocation ManagedAdvice::*location) {
  const cudaMemLocation first = parts.front().*location;
  const bool agree = std::all_of(parts.begin(), parts.end(), [&](const ManagedAdvice& part) {
    return (part.*location).type == first.type && (part.*location).id == first.id;
  });
  return agree ? first : cudaMemLocation{cudaMemLocationTypeInvalid, 0};
}

// The number of a location in CUDA's older attributes.
int DeviceOf(const cudaMemLocation& location) {
  if (location.type == cudaMemLocationTypeInvalid) return cudaInvalidDeviceId;
  return location.type == cudaMemLocationTypeDevice ? location.id : cudaCpuDeviceId;
}

// Writes the accessors common to all parts, then cudaInvalidDeviceId.
void PutAccessedBy(const std::vector<ManagedAdvice>& parts, int* out, std::size_t count) {
  std::fill_n(out, count, cudaInvalidDeviceId);
  std::size_t next = 0;
  for (int accessor = 0; accessor <= kHostAccessor && next < count; ++accessor) {
    const bool of_all = std::all_of(parts.begin(), parts.end(), [&](const ManagedAdvice& part) {
      return part.accessed_by[static_cast<std::size_t>(accessor)];
    });
    if (of_all) out[next++] = accessor == kHostAccessor ? cudaCpuDeviceId : accessor;
  }
}

// Answers queries of advice from all parts of a range. CUDA's sizes: an int, or several for
// accessors.
cudaError_t GetAttribute(void* data, std::size_t data_bytes, cudaMemRangeAttribute attribute,
                         const void* pointer, std::uint64_t bytes) {
  TORPOR_TRY(Begin());
  constexpr std::size_t kWord = sizeof(int);
  if (!data || bytes == 0 || data_bytes == 0 || data_bytes % kWord != 0)
    return cudaErrorInvalidValue;
  const std::vector<ManagedAdvice> parts = TheManagedRanges().AdviceOf(Address(pointer), bytes);
  if (parts.empty()) return cudaErrorInvalidValue;
  auto* const words = static_cast<int*>(data);
  if (attribute == cudaMemRangeAttributeAccessedBy) {
    PutAccessedBy(parts, words, data_bytes / kWord);
    return cudaSuccess;
  }
  if (data_bytes != kWord) return cudaErrorInvalidValue;
  const cudaMemLocation preferred = CommonLocation(parts, &ManagedAdvice::preferred);
  const cudaMemLocation prefetched = CommonLocation(parts, &ManagedAdvice::prefetched);
  switch (attribute) {
    case cudaMemRangeAttributeReadMostly:
      *words = std::all_of(parts.begin(), parts.end(),
                           [](const ManagedAdvice& part) { return part.read_mostly; });
      return cudaSuccess;
    case cudaMemRangeAttributePreferredLocation:
      *words = DeviceOf(preferred);
      return cudaSuccess;
    case cudaMemRangeAttributeLastPrefetchLocation:
      *words = DeviceOf(prefetched);
      return cudaSuccess;
    case cudaMemRangeAttributePreferredLocationType:
      *words = preferred.type;
      return cudaSuccess;
    case cudaMemRangeAttributePreferredLocationId:
      *words = preferred.id;
      return cudaSuccess;
    case cudaMemRangeAttributeLastPrefetchLocationType:
      *words = prefetched.type;
      return cudaSuccess;
    case cudaMemRangeAttributeLastPrefetchLocationId:
      *words = prefetched.id;
      return cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}

// cudaStreamAttachMemAsync: only checks. Host and all streams may use managed memory at any time.
cudaError_t Attach(const void* pointer, std::size_t length, unsigned flags, cudaStream_t handle) {
  TORPOR_TRY(CheckStream(handle));
  const bool is_known =
      flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle;
  const bool to_null_stream = handle == nullptr || handle == cudaStreamLegacy;
  if (!is_known || (flags == cudaMemAttachSingle && to_null_stream)) return cudaErrorInvalidValue;
  std::uint64_t bytes = 0;
  const bool is_whole =
      TheManagedRanges().BeginsAt(Address(pointer), bytes) && (length == 0 || length == bytes);
  return is_whole ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  return Entry([&] { return Allocate(pointer, bytes, flags); });
}

cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location) {
  return Entry([&] { return Advise(pointer, bytes, advice, location); });
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, struct cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream) {
  return Entry([&]() -> cudaError_t {
    if (flags != 0) return cudaErrorInvalidValue;
    TORPOR_TRY(CheckStream(stream));
    return Prefetch(pointer, bytes, location);
  });
}

cudaError_t cudaMemPrefetchBatchAsync(void** pointers, size_t* sizes, size_t count,
                                      struct cudaMemLocation* locations, size_t* indices,
                                      size_t location_count, unsigned long long flags,
                                      cudaStream_t stream) {
  return Entry([&]() -> cudaError_t {
    const Batch batch{pointers, sizes, count};
    TORPOR_TRY(CheckBatch(batch, flags, stream));
    return PrefetchBatch(batch, locations, indices, location_count);
  });
}

// Only checks: discarded memory may keep the old bytes.
cudaError_t cudaMemDiscardBatchAsync(void** pointers, size_t* sizes, size_t count,
                                     unsigned long long flags, cudaStream_t stream) {
  return Entry([&] { return CheckBatch({pointers, sizes, count}, flags, stream); });
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void** pointers, size_t* sizes, size_t count,
                                                struct cudaMemLocation* locations, size_t* indices,
                                                size_t location_count, unsigned long long flags,
                                                cudaStream_t stream) {
  return cudaMemPrefetchBatchAsync(pointers, sizes, count, locations, indices, location_count,
                                   flags, stream);
}

cudaError_t cudaMemRangeGetAttribute(void* data, size_t data_bytes,
                                     enum cudaMemRangeAttribute attribute, const void* pointer,
                                     size_t bytes) {
  return Entry([&] { return GetAttribute(data, data_bytes, attribute, pointer, bytes); });
}

cudaError_t cudaMemRangeGetAttributes(void** data, size_t* data_bytes,
                                      enum cudaMemRangeAttribute* attributes, size_t count,
                                      const void* pointer, size_t bytes) {
  return Entry([&]() -> cudaError_t {
    if (!data || !data_bytes || !attributes || count == 0) return cudaErrorInvalidValue;
    for (std::size_t i = 0; i < count; ++i)
      TORPOR_TRY(GetAttribute(data[i], data_bytes[i], attributes[i], pointer, bytes));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t length,
                                     unsigned int flags) {
  return Entry([&] { return Attach(pointer, length, flags, stream); });
}
