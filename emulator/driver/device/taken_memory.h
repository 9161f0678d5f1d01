#pragma once

#include <optional>
#include <utility>

#include "base/units.h"
#include "emulator/node/memory_budget.h"

namespace torpor::emulator {

// Bytes of a device's memory that the driver takes for itself, such as a context's; given back at
// the end.
class TakenMemory {
 public:
  TakenMemory() = default;  // takes nothing
  TakenMemory(TakenMemory&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  TakenMemory& operator=(TakenMemory&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~TakenMemory() {
    if (budget_ != nullptr) budget_->Return(size_);
  }

  // Returns nullopt if less is free. `budget` must outlive the result.
  static std::optional<TakenMemory> Take(MemoryBudget& budget, Bytes size) {
    if (size != 0 && !budget.Take(size)) return std::nullopt;
    return TakenMemory(budget, size);
  }

  Bytes size() const { return size_; }
  // Takes over what `other` holds, of the same budget.
  void Add(TakenMemory other) {
    budget_ = other.budget_;
    size_ += std::exchange(other.size_, 0);
  }

 private:
  TakenMemory(MemoryBudget& budget, Bytes size) : budget_(&budget), size_(size) {}

  MemoryBudget* budget_ = nullptr;
  Bytes size_ = 0;
};

}  // namespace torpor::emulator
