#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "emulator/exec/texture/texture.h"

namespace torpor::emulator {

// The texture and surface objects of this process by the 64-bit handles that kernels hold. Handles
// are reused only after a million Adds, and are unlikely to equal a handle of another process.
// Thread-safe.
class TextureTable {
 public:
  static TextureTable& Instance();

  // Returns the new object's handle, or 0 if the table is full.
  std::uint64_t Add(std::shared_ptr<const TextureObject> object);
  // Returns false for an unknown handle. Running kernels may use the object until the end of their
  // launch.
  bool Remove(std::uint64_t handle);

  // Returns null for any number that is no live handle. Call during a Use; takes no lock.
  const TextureObject* Find(std::uint64_t handle) const;

  // Keeps all objects that Find returns valid during its life.
  class Use {
   public:
    explicit Use(TextureTable& table) : table_(table), number_(table.BeginUse()) {}
    ~Use() { table_.EndUse(number_); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    TextureTable& table_;
    const std::uint64_t number_;
  };

 private:
  static constexpr std::size_t kSlotsPerPage = 1024;
  static constexpr std::size_t kPages = 1024;

  struct Slot {
    std::atomic<std::uint64_t> handle = 0;  // 0: free
    std::atomic<const TextureObject*> object = nullptr;
    std::shared_ptr<const TextureObject> owner;  // guarded by mutex_
    std::uint64_t generation = 0;                // guarded by mutex_
  };
  using Page = std::array<Slot, kSlotsPerPage>;

  TextureTable();
  Slot* SlotOf(std::uint64_t handle) const;
  std::uint64_t BeginUse();
  void EndUse(std::uint64_t number);
  // Destroys removed objects that no running use can have found.
  void DropRetiredLocked();

  const std::uint64_t process_;  // bits that tell handles of different processes apart
  std::array<std::atomic<Page*>, kPages> pages_ = {};  // never freed

  std::mutex mutex_;  // guards what follows
  std::size_t made_ = 0;
  std::vector<std::size_t> free_;
  std::uint64_t next_use_ = 1;
  std::set<std::uint64_t> uses_;
  std::multimap<std::uint64_t, std::shared_ptr<const TextureObject>> retired_;  // by next_use_
};

}  // namespace torpor::emulator
