#include "emulator/driver/stream/capture.h"

#include <utility>

#include "emulator/driver/stream/stream.h"

namespace torpor::emulator {

void Capture::Add(Work work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
}

void Capture::Join(std::shared_ptr<Stream> stream) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(std::move(stream));
}

void Capture::Invalidate() {
  const std::lock_guard lock(mutex_);
  is_valid_ = false;
}

bool Capture::is_valid() const {
  const std::lock_guard lock(mutex_);
  return is_valid_;
}

bool Capture::has_ended() const {
  const std::lock_guard lock(mutex_);
  return has_ended_;
}

std::vector<Capture::Work> Capture::End() {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  for (const auto& stream : streams_) stream->set_capture(nullptr);
  streams_.clear();
  return std::exchange(work_, {});
}

}  // namespace torpor::emulator
