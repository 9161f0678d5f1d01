#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace torpor::shim {

// Device memory that the program has freed while a replay might still need it. Allocations of the
// same size get it back at once; the rest is free once the session's memory is saved. Sizes are in
// bytes. Thread-safe.
class DeferredFrees {
 public:
  // Adds memory that commands up to `number` may use.
  void Add(std::uint64_t address, std::uint64_t bytes, std::uint64_t number);
  // Takes memory for an allocation of `bytes`. False if there is none.
  bool Take(std::uint64_t bytes, std::uint64_t& address);
  // Calls `free` with the addresses of all memory that only commands up to `saved` use.
  void FreeUpTo(std::uint64_t saved, const std::function<void(std::uint64_t address)>& free);

  std::uint64_t bytes() const;
  // Sets `bytes` to what is deferred beside an account that `ask` takes elsewhere. Asks again if
  // memory went from here to there meanwhile. Returns ask's error.
  cudaError_t CountBeside(const std::function<cudaError_t()>& ask, std::uint64_t& bytes) const;

 private:
  // Sizes count as equal if torpord rounds both to the same.
  static std::uint64_t ClassOf(std::uint64_t bytes);
  std::vector<std::uint64_t> TakeUpTo(std::uint64_t saved);
  std::uint64_t frees_ended() const;

  struct Freed {
    std::uint64_t address = 0;
    std::uint64_t number = 0;
  };

  mutable std::mutex mutex_;
  std::multimap<std::uint64_t, Freed> by_class_;
  std::uint64_t bytes_ = 0;
  std::uint64_t frees_begun_ = 0;  // calls of FreeUpTo
  std::uint64_t frees_ended_ = 0;
};

}  // namespace torpor::shim
