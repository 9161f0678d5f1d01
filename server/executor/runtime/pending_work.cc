#include "server/executor/runtime/pending_work.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace torpor::executor {
namespace {

// Pieces between two marks of a stream once half of the room is used; before, nobody needs marks.
constexpr std::size_t kBetweenMarks = 64;
constexpr Duration kLookPause = std::chrono::microseconds(50);

}  // namespace

PendingWork::Stream& PendingWork::StreamOf(CUstream handle) {
  if (latest_ < streams_.size() && streams_[latest_].handle == handle) return streams_[latest_];
  const auto [place, is_new] = places_.try_emplace(handle, streams_.size());
  if (is_new) streams_.push_back({handle, 0});
  latest_ = place->second;
  return streams_[latest_];
}

void PendingWork::Note(CUstream stream, std::size_t pieces) {
  if (!is_in_room_) device_.queue_room().Enter();
  is_in_room_ = true;
  Stream& target = StreamOf(stream);
  const bool is_worth_marks = pieces_ >= device_.queue_room().share() / 2;
  if (is_worth_marks && target.unmarked >= kBetweenMarks) SetMark(target);
  target.unmarked += pieces;
  pieces_ += pieces;
}

void PendingWork::NoteMore(std::size_t pieces) {
  if (latest_ >= streams_.size()) return;
  streams_[latest_].unmarked += pieces;
  pieces_ += pieces;
}

void PendingWork::Move(CUstream from, CUstream to) {
  const auto place = places_.find(from);
  if (place == places_.end()) return;
  Stream& source = streams_[place->second];
  const std::size_t unmarked = std::exchange(source.unmarked, 0);
  source.handle = nullptr;
  places_.erase(place);
  StreamOf(to).unmarked += unmarked;
}

void PendingWork::SetMark(Stream& stream) {
  const absl::StatusOr<CUevent> event = events_.Take();
  if (!event.ok()) return;
  if (device_.driver().EventRecord(*event, stream.handle) != CUDA_SUCCESS) {
    events_.Return(*event);
    return;
  }
  ++pieces_;
  marks_.push_back({*event, stream.unmarked + 1});
  stream.unmarked = 0;
}

// An error of the driver ends the wait: the next call tells of it.
void PendingWork::Look() {
  std::erase_if(marks_, [this](const Mark& mark) {
    if (device_.driver().EventQuery(mark.event) == CUDA_ERROR_NOT_READY) return false;
    events_.Return(mark.event);
    pieces_ -= mark.pieces;
    return true;
  });
}

bool PendingWork::HasRoom() {
  const std::size_t share = device_.queue_room().share();
  if (!is_full_ && pieces_ < share) return true;
  if (!is_full_) {
    for (Stream& stream : streams_) {
      if (stream.unmarked > 0) SetMark(stream);
    }
  }
  Look();
  is_full_ = pieces_ > share / 2;
  return !is_full_;
}

bool PendingWork::AwaitRoom() {
  while (!HasRoom()) {
    if (lease_ != nullptr && lease_->load(std::memory_order_acquire) != own_lease_) return false;
    std::this_thread::sleep_for(kLookPause);
  }
  return true;
}

std::vector<CUstream> PendingWork::Streams() const {
  std::vector<CUstream> streams;
  streams.reserve(places_.size());
  for (const auto& [stream, place] : places_) streams.push_back(stream);
  return streams;
}

void PendingWork::Clear() {
  for (const Mark& mark : marks_) events_.Return(mark.event);
  marks_.clear();
  streams_.clear();
  places_.clear();
  pieces_ = 0;
  is_full_ = false;
  if (is_in_room_) device_.queue_room().Leave();
  is_in_room_ = false;
}

}  // namespace torpor::executor
