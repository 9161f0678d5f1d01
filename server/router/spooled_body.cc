#include "server/router/spooled_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace torpor::server {

namespace asio = boost::asio;

std::size_t SpooledBody::NextPieceBytes() const {
  if (file_ != nullptr || held_bytes_ >= max_memory_) return kPieceBytes;
  return std::min<std::size_t>(kPieceBytes, max_memory_ - held_bytes_);
}

asio::awaitable<absl::Status> SpooledBody::Append(std::string piece) {
  if (Hold(piece)) co_return absl::OkStatus();
  absl::Status status = co_await Write(std::move(piece));
  co_return status;
}

bool SpooledBody::Hold(std::string& piece) {
  if (file_ != nullptr || held_bytes_ + piece.size() > max_memory_) return false;
  piece.shrink_to_fit();
  const Bytes room = piece.capacity();
  if (!spool_.TakeMemory(room)) return false;
  taken_.memory += room;
  held_.push_back({.begin = size_, .bytes = std::move(piece)});
  held_bytes_ += held_.back().bytes.size();
  size_ = held_bytes_;
  return true;
}

asio::awaitable<absl::Status> SpooledBody::Write(std::string piece) {
  if (!spool_.TakeDisk(piece.size())) {
    co_return absl::ResourceExhaustedError(fmt::format("bodies take {} of spool_limit's {} bytes",
                                                       spool_.used().disk, spool_.limits().disk));
  }
  taken_.disk += piece.size();
  if (file_ == nullptr) file_ = spool_.MakeFile();
  // Shared, as the disk may outlast this request.
  const auto bytes = std::make_shared<const std::string>(std::move(piece));
  std::function<absl::Status()> work = [file = file_, offset = size_ - held_bytes_, bytes] {
    return file->Write(offset, *bytes);
  };
  absl::Status status = co_await spool_.OnDisk(std::move(work));
  if (status.ok()) size_ += bytes->size();
  co_return status;
}

asio::awaitable<absl::Status> SpooledBody::Read(std::uint64_t offset, std::string& piece) {
  piece.clear();
  if (offset >= size_) co_return absl::OkStatus();
  if (offset >= held_bytes_) {
    absl::Status status = co_await ReadFile(offset - held_bytes_, piece);
    co_return status;
  }
  ReadHeld(offset, piece);
  co_return absl::OkStatus();
}

void SpooledBody::ReadHeld(std::uint64_t offset, std::string& piece) const {
  piece.reserve(std::min<std::uint64_t>(held_bytes_ - offset, kReadBytes));
  auto held = std::prev(std::ranges::upper_bound(held_, offset, {}, &Held::begin));
  for (; held != held_.end() && piece.size() < kReadBytes; ++held) {
    const std::uint64_t begin = offset + piece.size() - held->begin;
    piece.append(held->bytes, begin, kReadBytes - piece.size());
  }
}

asio::awaitable<absl::Status> SpooledBody::ReadFile(std::uint64_t offset, std::string& piece) {
  const std::uint64_t left = size_ - held_bytes_ - offset;
  const auto bytes = std::make_shared<std::string>(std::min<std::uint64_t>(left, kReadBytes), '\0');
  std::function<absl::Status()> work = [file = file_, offset, bytes] {
    return file->Read(offset, *bytes);
  };
  absl::Status status = co_await spool_.OnDisk(std::move(work));
  if (status.ok()) piece = std::move(*bytes);
  co_return status;
}

void SpooledBody::Clear() {
  if (taken_ != BodyBytes()) spool_.GiveBack(std::exchange(taken_, {}));
  if (file_ != nullptr) spool_.Discard(std::exchange(file_, nullptr));
  held_ = {};
  held_bytes_ = 0;
  size_ = 0;
}

}  // namespace torpor::server
