#include "emulator/exec/texture/texture_table.h"

#include <random>
#include <utility>

namespace torpor::emulator {
namespace {

// Fields of a handle, from the lowest bit: slot, generation of the slot, process, and a mark that
// addresses and small numbers never have.
constexpr unsigned kSlotBits = 20;
constexpr unsigned kGenerationBits = 20;
constexpr unsigned kProcessBits = 16;
constexpr std::uint64_t kMark = 0x7e;

constexpr std::uint64_t Low(std::uint64_t value, unsigned bits) {
  return value & ((std::uint64_t{1} << bits) - 1);
}

}  // namespace

TextureTable::TextureTable() : process_(Low(std::random_device()(), kProcessBits)) {}

TextureTable& TextureTable::Instance() {
  static auto* const table = new TextureTable;  // kernels may run while the process exits
  return *table;
}

TextureTable::Slot* TextureTable::SlotOf(std::uint64_t handle) const {
  const std::uint64_t index = Low(handle, kSlotBits);
  Page* const page = pages_[index / kSlotsPerPage].load(std::memory_order_acquire);
  return page == nullptr ? nullptr : &(*page)[index % kSlotsPerPage];
}

// Reuses the slot freed last, with the next generation in the handle.
std::uint64_t TextureTable::Add(std::shared_ptr<const TextureObject> object) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    if (made_ == kPages * kSlotsPerPage) return 0;
    if (made_ % kSlotsPerPage == 0) {
      pages_[made_ / kSlotsPerPage].store(new Page, std::memory_order_release);
    }
    free_.push_back(made_++);
  }
  const std::size_t index = free_.back();
  free_.pop_back();
  Slot& slot = *SlotOf(index);
  slot.owner = std::move(object);
  slot.generation = Low(slot.generation + 1, kGenerationBits);
  const std::uint64_t handle =
      (((kMark << kProcessBits | process_) << kGenerationBits | slot.generation) << kSlotBits) |
      index;
  slot.object.store(slot.owner.get(), std::memory_order_relaxed);
  slot.handle.store(handle, std::memory_order_release);
  return handle;
}

bool TextureTable::Remove(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  Slot* const slot = SlotOf(handle);
  if (handle == 0 || slot == nullptr || slot->handle.load(std::memory_order_relaxed) != handle) {
    return false;
  }
  slot->handle.store(0, std::memory_order_release);
  retired_.emplace(next_use_, std::move(slot->owner));
  free_.push_back(Low(handle, kSlotBits));
  DropRetiredLocked();
  return true;
}

const TextureObject* TextureTable::Find(std::uint64_t handle) const {
  const Slot* const slot = SlotOf(handle);
  if (handle == 0 || slot == nullptr || slot->handle.load(std::memory_order_acquire) != handle) {
    return nullptr;
  }
  return slot->object.load(std::memory_order_relaxed);
}

std::uint64_t TextureTable::BeginUse() {
  const std::lock_guard lock(mutex_);
  uses_.insert(next_use_);
  return next_use_++;
}

void TextureTable::EndUse(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  uses_.erase(number);
  DropRetiredLocked();
}

void TextureTable::DropRetiredLocked() {
  const std::uint64_t oldest = uses_.empty() ? next_use_ : *uses_.begin();
  retired_.erase(retired_.begin(), retired_.upper_bound(oldest));
}

}  // namespace torpor::emulator
