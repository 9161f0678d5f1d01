// Whatever executors ask for, and however they end: a chunk is one's at a time, also until the
// process of a closed connection has ended, and no domain finds another's bytes. The input is a
// list of steps: a request of some connection, its end, its process's end, or a failure to clear.
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "server/executor/image/chunk_lender.h"

namespace torpor::executor {
namespace {

constexpr std::size_t kChunks = 300;  // more than one request may take
constexpr int kConnections = 3;

void Check(bool condition) {
  if (!condition) std::abort();
}

// Cuts the input into numbers; zeros after the end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
  bool empty() const { return rest_.empty(); }
  template <typename Number>
  Number Next() {
    Number number = 0;
    const std::size_t count = std::min(sizeof number, rest_.size());
    std::memcpy(&number, rest_.data(), count);
    rest_ = rest_.subspan(count);
    return number;
  }
  // Mostly less than `usual`, and sometimes anything.
  template <typename Number>
  Number Near(Number usual) {
    const auto small = Next<std::uint8_t>();
    return small < 250 ? static_cast<Number>(small % usual) : Next<Number>();
  }

 private:
  std::span<const std::uint8_t> rest_;
};

class World {
 public:
  void Step(Input& input) {
    const int connection = input.Next<std::uint8_t>() % kConnections;
    switch (input.Next<std::uint8_t>() % 8) {
      case 0:
      case 1:
      case 2:
        return Take(connection, input);
      case 3:
      case 4:
        return Return(connection, input);
      case 5:
        return Close(connection);
      case 6:
        return EndProcess(connection);
      default:
        clearings_left_ = input.Next<std::uint8_t>() % 8;
    }
  }
  void CheckFree() {
    const std::size_t free = lender_.free_chunks();
    std::size_t at_least = 0;
    std::size_t at_most = 0;
    for (const Chunk& chunk : chunks_) {
      const bool may_be = !chunk.holder || has_ended_[*chunk.holder];
      at_most += may_be ? 1 : 0;
      at_least += chunk.holder && !(may_be && is_closed_[*chunk.holder]) ? 0 : 1;
    }
    Check(free >= at_least && free <= at_most);
  }

 private:
  struct Chunk {
    std::optional<std::size_t> holder;    // a place in has_ended_
    std::optional<std::uint64_t> writer;  // domain; none: zeros
  };

  // The holder behind a connection, from its first request on.
  std::size_t HolderOf(int connection) {
    std::optional<std::size_t>& holder = holders_.at(static_cast<std::size_t>(connection));
    if (!holder) {
      holder = has_ended_.size();
      has_ended_.push_back(false);
      is_closed_.push_back(false);
      processes_.emplace_back(eventfd(0, EFD_CLOEXEC));
    }
    return *holder;
  }
  void Take(int connection, Input& input) {
    const std::size_t holder = HolderOf(connection);
    PoolRequest request{.what = PoolAsk::kTake};
    request.count = input.Near<std::uint32_t>(kMaxTaken);
    request.needed = request.count + input.Near<std::uint64_t>(2);
    request.domain = input.Near<std::uint64_t>(3);
    PoolReply reply;
    if (!lender_.Take(connection, request, reply).ok()) return;
    Check(request.count >= 1 && request.count <= kMaxTaken);
    for (const std::uint32_t number : std::span(reply.numbers).first(request.count)) {
      Chunk& chunk = chunks_.at(number);
      Check(!chunk.holder || has_ended_[*chunk.holder]);
      Check(!chunk.writer || chunk.writer == request.domain);
      // An ended process's last request is served too, and what it takes is free at once.
      chunk = {holder, request.domain};
    }
  }
  void Return(int connection, Input& input) {
    const std::size_t holder = HolderOf(connection);
    PoolRequest request{.what = PoolAsk::kReturn};
    request.count = input.Near<std::uint32_t>(8);
    std::set<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < std::min(request.count, kMaxTaken); ++i) {
      request.numbers[i] = input.Near<std::uint32_t>(kChunks);
      numbers.insert(request.numbers[i]);
    }
    if (!lender_.Return(connection, request).ok()) return;
    Check(numbers.size() == request.count);
    for (const std::uint32_t number : numbers) {
      Check(chunks_.at(number).holder == holder);
      chunks_[number].holder.reset();
    }
  }
  void Close(int connection) {
    std::optional<std::size_t>& holder = holders_.at(static_cast<std::size_t>(connection));
    lender_.OnClosing(connection);
    if (holder) is_closed_[*holder] = true;
    holder.reset();
  }
  void EndProcess(int connection) {
    const std::size_t holder = HolderOf(connection);
    has_ended_[holder] = true;
    eventfd_write(processes_[holder].get(), 1);
  }
  absl::Status Clear(std::span<const std::uint32_t> numbers) {
    for (const std::uint32_t number : numbers) {
      if (clearings_left_ == 0) {
        clearings_left_ = kChunks;
        return absl::InternalError("cannot clear");
      }
      --clearings_left_;
      chunks_.at(number).writer.reset();
    }
    clearings_left_ = kChunks;
    return absl::OkStatus();
  }

  std::array<Chunk, kChunks> chunks_;
  std::array<std::optional<std::size_t>, kConnections> holders_;
  std::vector<bool> has_ended_;
  std::vector<bool> is_closed_;
  std::vector<UniqueFd> processes_;
  std::size_t clearings_left_ = kChunks;
  ChunkLender lender_ = ChunkLender(
      kChunks,
      [this](int connection) -> absl::StatusOr<UniqueFd> {
        return UniqueFd(dup(processes_[HolderOf(connection)].get()));
      },
      [this](std::span<const std::uint32_t> numbers) { return Clear(numbers); });
};

}  // namespace
}  // namespace torpor::executor

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor::executor;  // NOLINT
  if (size > 2048) return 0;         // each end of a process costs a descriptor
  World world;
  Input input(data, size);
  while (!input.empty()) {
    world.Step(input);
    world.CheckFree();
  }
  return 0;
}
