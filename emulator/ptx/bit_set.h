#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace torpor::ptx {

// A set of small integers: blocks or registers of one function. Elements must be below the size.
class BitSet {
 public:
  BitSet() = default;
  explicit BitSet(std::size_t size) : words_((size + 63) / 64) {}

  bool Contains(std::size_t i) const { return ((words_[i / 64] >> (i % 64)) & 1) != 0; }
  void Insert(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void Erase(std::size_t i) { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  std::size_t Count() const {
    std::size_t count = 0;
    for (const std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
    return count;
  }
  bool empty() const {
    for (const std::uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }

  // Adds the elements of `other`, a set of equal size; returns whether this set grew.
  bool UniteWith(const BitSet& other) {
    bool grew = false;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t united = words_[i] | other.words_[i];
      grew |= united != words_[i];
      words_[i] = united;
    }
    return grew;
  }

  // Calls visit(element) in ascending order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t word = words_[i]; word != 0; word &= word - 1) {
        visit(i * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      }
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace torpor::ptx
