#include "client_shim/cudart/memory/free_marks.h"

#include <utility>

#include "client_shim/cudart/call/entry.h"

namespace torpor::shim {

// A completion slot for the marks of a stream; freed with the last point that refers to the slot.
class FreeMarks::Slot {
 public:
  Slot(ClientCore& core, std::uint32_t index) : core_(core), index_(index) {}
  ~Slot() { core_.FreeSlot(index_); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  std::uint32_t index() const { return index_; }
  bool HasReached(std::uint64_t value) const { return core_.SlotValue(index_) >= value; }

 private:
  ClientCore& core_;
  const std::uint32_t index_;
};

// A mark in a slot: passed once the slot has the mark's value.
class FreeMarks::Point final : public FreePoint {
 public:
  Point(std::uint64_t stream, std::shared_ptr<const Slot> slot, std::uint64_t value)
      : FreePoint(stream), slot_(std::move(slot)), value_(value) {}
  bool IsPassed() const override { return slot_->HasReached(value_); }

 private:
  const std::shared_ptr<const Slot> slot_;
  const std::uint64_t value_;
};

std::uint64_t NameOf(const ClientStream& stream) {
  return IsLegacy(stream) ? static_cast<std::uint64_t>(DeviceInUse()) : stream.wire;
}

std::uint64_t WireOf(std::uint64_t name) {
  return name < static_cast<std::uint64_t>(wire::kMaxDevices) ? 0 : name;
}

bool IsStreamHere(std::uint64_t name) {
  return name == static_cast<std::uint64_t>(DeviceInUse()) || Core().IsLive(name);
}

cudaError_t FreeMarks::Mark(const ClientStream& stream, FreePointPtr& point) {
  if (Core().IsDrained()) return cudaSuccess;
  const std::uint64_t name = NameOf(stream);
  const std::shared_ptr<const Slot> slot = SlotOf(name);
  if (!slot) return Ask(wire::StreamSynchronize{stream.wire});
  const std::uint64_t value = Core().NextSlotValue(slot->index());
  TORPOR_TRY(Send(wire::StreamMark{stream.wire, slot->index(), value}));
  point = std::make_shared<Point>(name, slot, value);
  return cudaSuccess;
}

// Finds or allots the stream's slot. Returns null if the page has no free slot.
std::shared_ptr<const FreeMarks::Slot> FreeMarks::SlotOf(std::uint64_t stream) {
  if (const auto known = slots_.find(stream); known != slots_.end())
    if (auto slot = known->second.lock()) return slot;
  std::erase_if(slots_, [](const auto& entry) { return entry.second.expired(); });
  const std::uint32_t index = Core().AllotSlot();
  if (index == 0) return nullptr;
  auto slot = std::make_shared<const Slot>(Core(), index);
  slots_[stream] = slot;
  return slot;
}

}  // namespace torpor::shim
