#include "server/executor/image/fresh_memory.h"

namespace torpor::executor {

void FreshMemory::Reset() {
  MutexLock lock(&mutex_);
  is_all_ = true;
  has_any_ = true;
  used_ = {};
}

void FreshMemory::Add(memory::Extent extent) {
  MutexLock lock(&mutex_);
  extents_.Add(extent);
  has_any_ = true;
}

bool FreshMemory::Contains(memory::Extent extent) const {
  MutexLock lock(&mutex_);
  if (!used_.Within(extent).empty()) return false;
  return is_all_ || extents_.Contains(extent);
}

void FreshMemory::UseAll() {
  MutexLock lock(&mutex_);
  is_all_ = false;
  extents_ = {};
  used_ = {};
  has_any_ = false;
}

void FreshMemory::Use(memory::Extent extent) {
  MutexLock lock(&mutex_);
  if (has_any_) used_.Add(extent);
}

}  // namespace torpor::executor
