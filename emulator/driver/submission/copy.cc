#include "emulator/driver/submission/copy.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/try.h"
#include "emulator/driver/process/driver.h"
#include "emulator/driver/process/planned_faults.h"
#include "emulator/driver/stream/transfer.h"
#include "emulator/node/route.h"

namespace torpor::emulator {
namespace {

// Up to here a copy or fill costs less than waking the stream's thread.
constexpr Bytes kInlineBytes = 64 * kKiB;
// As much pageable memory is staged, so that a busy stream does not block the caller.
constexpr Bytes kStagedBytes = 64 * kKiB;

// The memory at one end of a copy.
struct Place {
  DriverDevice* device = nullptr;  // null: the host
  bool pageable = false;
};

// Finds the device of a copy's end. Memory that the driver does not know is pageable host memory.
Place Locate(const CopyEnd& end, const std::shared_ptr<ArrayMemory>& array) {
  if (array != nullptr) return {.device = &array->device()};
  Driver& driver = Driver::Get();
  const auto region = driver.space().Find(end.address);
  if (!region) return {.pageable = true};
  switch (region->kind) {
    case RegionKind::kDevice:
    case RegionKind::kManaged:
    case RegionKind::kMapped:
      return {.device = driver.device(region->device)};
    case RegionKind::kHost:
    case RegionKind::kRegistered:
      break;
  }
  return {};
}

// The links between two ends, by the places of their devices.
Route RouteOf(const Place& to, const Place& from) {
  const auto place = [](const Place& end) {
    return end.device == nullptr ? std::nullopt : std::optional(end.device->spec().place);
  };
  Driver& driver = Driver::Get();
  const bool is_pageable = from.pageable || to.pageable;
  return RouteBetween(driver.topology(), driver.node(), place(from), place(to),
                      is_pageable ? HostMemory::kPageable : HostMemory::kPinned);
}

// Whether strides and addresses stay within 64 bits.
bool Representable(const CopyEnd& end, Bytes width, Bytes height, Bytes depth, Bytes pitch,
                   Bytes slice) {
  constexpr Bytes kLimit = Bytes{1} << 62;
  const auto product = [](Bytes a, Bytes b) { return b != 0 && a > kLimit / b ? kLimit : a * b; };
  return width < kLimit && end.address < kLimit && product(pitch, height) < kLimit &&
         product(slice, depth) < kLimit;
}

// Calls `copy` for every part of the copy that is contiguous at both ends, until one fails.
template <typename Copy>
CUresult ForEachRun(const CopyRequest& request, const Copy& copy) {
  const bool contiguous = request.depth == 1 && request.to_pitch == request.width &&
                          request.from_pitch == request.width;
  if (contiguous || request.height * request.depth == 1) {
    return copy(request.to, request.from, request.bytes());
  }
  for (Bytes z = 0; z < request.depth; ++z) {
    for (Bytes y = 0; y < request.height; ++y) {
      const CopyEnd to{request.to.address + z * request.to_slice + y * request.to_pitch,
                       request.to.device};
      const CopyEnd from{request.from.address + z * request.from_slice + y * request.from_pitch,
                         request.from.device};
      const CUresult result = copy(to, from, request.width);
      if (result != CUDA_SUCCESS) return result;
    }
  }
  return CUDA_SUCCESS;
}

CUresult CopyRun(const CopyEnd& to, const CopyEnd& from, Bytes size) {
  return Driver::Get().space().Copy(to, from, size);
}

// Copies as much as the links let through at a time.
CUresult CopyRunOverLinks(Transfer& transfer, CopyEnd to, CopyEnd from, Bytes size) {
  while (size != 0) {
    const Bytes piece = std::min(size, transfer.room());
    TORPOR_TRY(CopyRun(to, from, piece));
    transfer.Pass(piece);
    to.address += piece;
    from.address += piece;
    size -= piece;
  }
  return CUDA_SUCCESS;
}

// Copies all runs of a request, at the pace of the route.
CUresult Perform(const CopyRequest& request, const Route& route) {
  if (!route.paced()) return ForEachRun(request, CopyRun);
  Transfer transfer(route, request.bytes(), Driver::Get().node().copies_done);
  return ForEachRun(request, [&](const CopyEnd& to, const CopyEnd& from, Bytes size) {
    return CopyRunOverLinks(transfer, to, from, size);
  });
}

// The last byte that a strided end touches, relative to its address.
Bytes ExtentBytes(Bytes width, Bytes height, Bytes depth, Bytes pitch, Bytes slice) {
  return (depth - 1) * slice + (height - 1) * pitch + width;
}

// Whether the first and the last row of an end may be touched. Gaps between the rows of a pitched
// extent need no memory; the copy checks each row.
bool Backed(const CopyEnd& end, Bytes extent, Bytes width, Access access) {
  const AddressSpace& space = Driver::Get().space();
  const CopyEnd last{end.address + extent - width, end.device};
  return space.IsLegal(end, width, access) && space.IsLegal(last, width, access);
}

bool SpansRegistrations(const CopyEnd& end, Bytes extent) {
  return Driver::Get().space().SpansRegistrations(end.address, extent);
}

// Checks, before anything is queued, that both ends are representable and accessible.
CUresult Validate(const CopyRequest& request) {
  if (!Representable(request.to, request.width, request.height, request.depth, request.to_pitch,
                     request.to_slice) ||
      !Representable(request.from, request.width, request.height, request.depth, request.from_pitch,
                     request.from_slice)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Bytes to_extent =
      ExtentBytes(request.width, request.height, request.depth, request.to_pitch, request.to_slice);
  const Bytes from_extent = ExtentBytes(request.width, request.height, request.depth,
                                        request.from_pitch, request.from_slice);
  if (Driver::Get().topology().strict.host_registrations &&
      (SpansRegistrations(request.to, to_extent) ||
       SpansRegistrations(request.from, from_extent))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool legal = Backed(request.to, to_extent, request.width, Access::kWrite) &&
                     Backed(request.from, from_extent, request.width, Access::kRead);
  return legal ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The copy was legal when submitted, so a failure now is the device's.
CUresult Asynchronous(CUresult result) {
  return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_ILLEGAL_ADDRESS : result;
}

// Copies the bytes out of the caller's buffer now and into the device in stream order.
void SubmitStaged(const StreamTarget& target, const CopyRequest& request, const Route& route) {
  const auto* source = reinterpret_cast<const char*>(request.from.address);
  target.context->Submit(
      target.stream,
      [request, route, staged = std::vector<char>(source, source + request.width)] {
        CopyRequest from_staging = request;
        from_staging.from.address = reinterpret_cast<std::uint64_t>(staged.data());
        return Asynchronous(Perform(from_staging, route));
      },
      Stream::Placement::kQueue);
}

// Fills all rows at once if they are contiguous.
CUresult FillRows(const FillRequest& request) {
  const AddressSpace& space = Driver::Get().space();
  if (request.height == 1 || request.pitch == request.width * request.unit) {
    return space.Fill(request.address, &request.value, request.unit,
                      request.width * request.height);
  }
  for (Bytes y = 0; y < request.height; ++y) {
    const CUresult result = space.Fill(request.address + y * request.pitch, &request.value,
                                       request.unit, request.width);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// As for copies; addresses and pitches must also be aligned to the unit.
CUresult Validate(const FillRequest& request) {
  if (request.address % request.unit != 0 || request.pitch % request.unit != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Bytes row = request.width * request.unit;
  if (request.width > UINT64_MAX / request.unit ||
      !Representable({request.address}, row, request.height, 1, request.pitch, 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CopyEnd end{request.address, true};
  return Backed(end, ExtentBytes(row, request.height, 1, request.pitch, 0), row, Access::kWrite)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

// A paced copy belongs to its stream's thread, whose place in modelled time it moves.
Stream::Placement PlacementOf(const CopyRequest& request, const Route& route) {
  if (route.paced()) return Stream::Placement::kQueue;
  return request.bytes() <= kInlineBytes ? Stream::Placement::kInlineIfIdle
                                         : Stream::Placement::kForAnyThread;
}

CostedCall CostOfCopyCall(const StreamTarget& target) {
  CallCosts& costs = target.context->device().call_costs();
  return {costs, costs.costs().copy_call_us};
}

}  // namespace

CUresult CopyNow(const StreamTarget& target, const CopyRequest& request) {
  if (request.bytes() == 0) return CUDA_SUCCESS;
  TORPOR_TRY(Validate(request));
  MeetPlan(CallKind::kCopy, target);
  const Place to = Locate(request.to, request.to_array);
  const Place from = Locate(request.from, request.from_array);
  const Route route = RouteOf(to, from);
  return target.context->Run(target.stream, [&] { return Perform(request, route); });
}

// Small pageable sources are staged, so that the caller does not wait for a busy stream.
CUresult CopyInStream(const StreamTarget& target, const CopyRequest& request) {
  if (request.bytes() == 0) return CUDA_SUCCESS;
  const CostedCall cost = CostOfCopyCall(target);
  TORPOR_TRY(Validate(request));
  MeetPlan(CallKind::kCopy, target);
  const Place to = Locate(request.to, request.to_array);
  const Place from = Locate(request.from, request.from_array);
  const Route route = RouteOf(to, from);
  const bool flat = request.height * request.depth == 1;
  if (from.pageable && !to.pageable && flat && request.width <= kStagedBytes &&
      !target.stream->Idle()) {
    SubmitStaged(target, request, route);
    return CUDA_SUCCESS;
  }
  if (to.pageable || from.pageable) {
    return target.context->Run(target.stream, [&] { return Perform(request, route); });
  }
  target.context->Submit(
      target.stream, [=] { return Asynchronous(Perform(request, route)); },
      PlacementOf(request, route));
  return CUDA_SUCCESS;
}

CUresult FillNow(const StreamTarget& target, const FillRequest& request) {
  if (request.width * request.height == 0) return CUDA_SUCCESS;
  TORPOR_TRY(Validate(request));
  MeetPlan(CallKind::kCopy, target);
  return target.context->Run(target.stream, [&] { return FillRows(request); });
}

CUresult FillInStream(const StreamTarget& target, const FillRequest& request) {
  if (request.width * request.height == 0) return CUDA_SUCCESS;
  const CostedCall cost = CostOfCopyCall(target);
  TORPOR_TRY(Validate(request));
  MeetPlan(CallKind::kCopy, target);
  const bool small = request.width * request.height * request.unit <= kInlineBytes;
  target.context->Submit(
      target.stream, [request] { return Asynchronous(FillRows(request)); },
      small ? Stream::Placement::kInlineIfIdle : Stream::Placement::kQueue);
  return CUDA_SUCCESS;
}

}  // namespace torpor::emulator
