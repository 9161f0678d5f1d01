#include "client_shim/core/transport/ring_stream.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "client_shim/core/fork_guard.h"
#include "client_shim/core/transport/frame_codec.h"
#include "client_shim/core/transport/unix_socket.h"
#include "proto/wire/batch.h"

namespace torpor::shim {
namespace {

using wire::TakeWaits;
using wire::WakeSleepers;

// Replies carry no more than a download's inline bytes or a part of the output of kernels; the
// limit only has to bound the memory.
constexpr std::size_t kMaxReplyBytes = std::size_t{64} << 20;

// Writes the record's length in front of the payload. Returns the record.
std::span<const std::uint8_t> SealRecord(std::vector<std::uint8_t>& frame) {
  constexpr std::size_t kBegin = kFrameRoom - sizeof(wire::RecordLength);
  const auto length = static_cast<wire::RecordLength>(frame.size() - kFrameRoom);
  std::memcpy(frame.data() + kBegin, &length, sizeof length);
  return std::span<const std::uint8_t>(frame).subspan(kBegin);
}

}  // namespace

RingStream::RingStream(RingConnection connection)
    : connection_(std::move(connection)),
      requests_(page().requests, connection_.file->requests()),
      replies_(wire::RingReader(page().replies, connection_.file->replies()), kMaxReplyBytes) {
  ForkGuard::Watch(fd());
}

RingStream::~RingStream() { ForkGuard::Unwatch(fd()); }

void RingStream::Send(std::vector<std::uint8_t>& frame) {
  const std::span<const std::uint8_t> record = SealRecord(frame);
  const std::size_t sent = queue_.empty() ? requests_.Write(record) : 0;
  has_published_ = has_published_ || sent > 0;
  if (sent == record.size()) return;
  const std::span<const std::uint8_t> rest = record.subspan(sent);
  queue_.push_back({{rest.begin(), rest.end()}, 0});
  queued_bytes_ += rest.size();
}

void RingStream::MoveQueue() {
  while (!queue_.empty()) {
    Queued& front = queue_.front();
    const std::size_t sent =
        requests_.Write(std::span<const std::uint8_t>(front.bytes).subspan(front.at));
    if (sent == 0) return;
    has_published_ = true;
    front.at += sent;
    queued_bytes_ -= sent;
    if (front.at == front.bytes.size()) queue_.pop_front();
  }
}

void RingStream::Write() {
  if (closed_) return;
  MoveQueue();
  if (!queue_.empty()) {
    // The executor sees the wish, or has made the room already.
    page().client_waits.fetch_or(wire::kWaitsForRoom);
    MoveQueue();
  }
  if (requests_.is_broken()) Close("the executor broke the ring of requests");
  if (std::exchange(has_published_, false) &&
      TakeWaits(page().executor_waits, wire::kWaitsForRecord) != 0) {
    WakeSleepers(page().executor_waits);
    has_woken_.store(true, std::memory_order_relaxed);
  }
}

FrameStream::Arrival RingStream::Await(bool waits) {
  const auto is_ready = [this] { return replies_.HasBytes() || hung_up_.load(); };
  if (waits) {
    // The system may have put the woken thread on this core, where looking would hold it up.
    if (has_woken_.exchange(false, std::memory_order_relaxed) && !is_ready()) sched_yield();
    spin_.Wait(is_ready,
               [&] { wire::SleepOnce(page().client_waits, wire::kWaitsForRecord, is_ready); });
  }
  // In this order: what was written before the end counts.
  const bool ended = hung_up_.load();
  if (replies_.HasBytes()) return Arrival::kBytes;
  return ended ? Arrival::kEnd : Arrival::kNothing;
}

void RingStream::Take(Arrival arrival) {
  if (arrival != Arrival::kEnd) return;
  Close(last_words_.empty() ? "the executor closed the connection" : last_words_);
}

bool RingStream::Next(std::span<const std::uint8_t>& payload) {
  if (closed_) return false;
  const wire::RecordReader::Step step = replies_.Next(payload);
  if (step == wire::RecordReader::Step::kMalformed) Close("the executor broke the ring of replies");
  if (replies_.ring().RoomLeft() >= wire::kReplyRingBytes / 2 &&
      TakeWaits(page().executor_waits, wire::kWaitsForRoom) != 0)
    WakeSleepers(page().executor_waits);
  return step == wire::RecordReader::Step::kRecord;
}

void RingStream::HangUp() {
  hung_up_.store(true);
  TakeWaits(page().client_waits, std::numeric_limits<std::uint32_t>::max());
  WakeSleepers(page().client_waits);
}

void RingStream::End(const std::string& why) {
  Close(why);
  ForkGuard::Unwatch(fd());
  shutdown(fd(), SHUT_RDWR);
  HangUp();
}

void RingStream::Close(const std::string& why) {
  if (closed_) return;
  closed_ = true;
  why_closed_ = why;
}

FrameStream::Polled RingStream::Prepare(bool reads) {
  Polled polled{POLLIN, false};
  if (!reads) return polled;
  page().client_waits.fetch_or(wire::kPollsForRecord);
  polled.is_ready = replies_.HasBytes();
  return polled;
}

// Takes the executor's notices, and the end of the connection.
bool RingStream::OnEvents(short) {
  bool looks = false;
  for (;;) {
    std::array<char, wire::kMaxNoticeBytes> notice{};
    const ssize_t got = Receive(fd(), notice.data(), notice.size(), MSG_DONTWAIT);
    if (got == -1) return looks;
    if (got <= 0) {
      HangUp();
      return looks;
    }
    looks = true;
    if (notice[0] == static_cast<char>(wire::RingNotice::kEnd))
      last_words_.assign(notice.data() + 1, static_cast<std::size_t>(got) - 1);
  }
}

}  // namespace torpor::shim
