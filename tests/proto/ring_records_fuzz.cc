// Whatever a client writes into a ring and its cursor: the reader stays inside the ring, hands out
// no record longer than allowed, and what was handed out does not change. The input is a list of
// steps: set the cursor, move the cursor on, write a byte, or take a record.
#include <cstdlib>
#include <vector>

#include "proto/wire/record_reader.h"

namespace torpor::wire {
namespace {

constexpr std::size_t kRingBytes = 256;
constexpr std::size_t kMaxRecord = 700;

// Cuts the input into bytes and numbers; zeros after the end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
  bool empty() const { return rest_.empty(); }
  std::uint64_t Number(std::size_t bytes) {
    std::uint64_t number = 0;
    const std::size_t count = std::min(bytes, rest_.size());
    std::memcpy(&number, rest_.data(), count);
    rest_ = rest_.subspan(count);
    return number;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

void TakeRecord(RecordReader& records, std::vector<std::uint8_t>& ring) {
  std::span<const std::uint8_t> record;
  if (records.Next(record) != RecordReader::Step::kRecord) return;
  if (record.size() > kMaxRecord) std::abort();
  const std::vector<std::uint8_t> before(record.begin(), record.end());
  for (std::uint8_t& byte : ring) byte = static_cast<std::uint8_t>(byte + 1);
  if (!std::equal(before.begin(), before.end(), record.begin())) std::abort();
}

}  // namespace
}  // namespace torpor::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor::wire;  // NOLINT
  RingCursors cursors{};
  std::vector<std::uint8_t> ring(kRingBytes);
  RecordReader records(RingReader(cursors, ring), kMaxRecord);
  Input input(data, size);
  while (!input.empty()) {
    switch (input.Number(1) % 4) {
      case 0:
        cursors.written = input.Number(8);
        break;
      case 1:
        cursors.written += input.Number(1);
        break;
      case 2: {
        const std::size_t at = input.Number(1);
        ring[at % kRingBytes] = static_cast<std::uint8_t>(input.Number(1));
        break;
      }
      default:
        TakeRecord(records, ring);
    }
  }
  return 0;
}
