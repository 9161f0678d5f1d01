#include "server/executor/image/image_touches.h"

namespace torpor::executor {

void ImageTouches::Use(memory::Extent bytes, bool read) {
  if (arrival_.is_pending()) arrival_.Need(bytes, read);
  MutexLock lock(&mutex_);
  log_.Touch(bytes);
}

void ImageTouches::UsePointee(std::uint64_t offset) {
  if (arrival_.is_pending()) arrival_.NeedPointee(offset, wait_);
  MutexLock lock(&mutex_);
  log_.Touch({offset, offset + 1});
}

void ImageTouches::Upload(memory::Extent bytes) {
  MutexLock lock(&mutex_);
  log_.Upload(bytes);
}

void ImageTouches::Reset(std::span<const memory::Extent> allocations) {
  MutexLock lock(&mutex_);
  log_.Reset(allocations);
}

void ImageTouches::Add(memory::Extent allocation) {
  MutexLock lock(&mutex_);
  log_.Add(allocation);
}

void ImageTouches::Remove(memory::Extent extent) {
  MutexLock lock(&mutex_);
  log_.Remove(extent);
}

std::vector<memory::Extent> ImageTouches::allocations() const {
  ReaderMutexLock lock(&mutex_);
  return log_.allocations();
}

void ImageTouches::Begin(bool record) {
  MutexLock lock(&mutex_);
  log_.Restart();
  recording_.store(record ? ++recordings_ : 0, std::memory_order_relaxed);
}

std::vector<Bytes> ImageTouches::End() {
  MutexLock lock(&mutex_);
  recording_.store(0, std::memory_order_relaxed);
  return log_.order();
}

std::vector<memory::Extent> ImageTouches::TakeUploaded(Bytes max_bytes) {
  MutexLock lock(&mutex_);
  return log_.TakeUploaded(max_bytes);
}

bool ImageTouches::has_uploaded() const {
  ReaderMutexLock lock(&mutex_);
  return log_.has_uploaded();
}

}  // namespace torpor::executor
