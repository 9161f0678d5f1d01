#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/units.h"
#include "tests/e2e/driven/sequence_numbers.h"
#include "tests/e2e/http_posts.h"

namespace torpor::e2e {

// How a sequence_server is started.
struct SequenceShape {
  unsigned seed = 1;
  unsigned kilobytes = 1024;  // of its table
  bool is_paged = false;

  std::vector<std::string> Command() const;
};

// What a sequence_server (driven/sequence_server.cu) answers, computed by the CPU: its state after
// the same requests. Each function gives the sum that the request of its name is answered with.
class SequenceModel {
 public:
  explicit SequenceModel(const SequenceShape& shape);

  std::uint64_t Step(unsigned token, unsigned count);
  std::uint64_t Reset();
  std::uint64_t Allocate(unsigned block, unsigned kilobytes, unsigned value);
  std::uint64_t Change(unsigned block, unsigned value);
  std::uint64_t Free(unsigned block);
  // As Step without a token: changes nothing.
  std::uint64_t Look() const { return Answer(); }

  // Device memory that is allocated, as the request /bytes tells.
  Bytes bytes() const;
  unsigned tokens() const { return tokens_; }

 private:
  using Row = std::array<unsigned, sequence::kWidth>;

  struct Layer {
    std::vector<unsigned> weights;
    std::vector<Row> keys;
    std::vector<Row> values;
  };
  struct Block {
    std::vector<unsigned> elements;
    std::uint64_t digest = 0;
  };

  void Append(unsigned token);
  void Attend(Layer& layer);
  Row Project(const Layer& layer, unsigned projection) const;
  std::uint64_t Answer() const;
  Bytes CacheBytes() const;

  const SequenceShape shape_;
  const unsigned table_count_;
  std::uint64_t table_digest_ = 0;
  std::array<Layer, sequence::kLayers> layers_;
  std::array<Block, sequence::kMaxBlocks> blocks_;
  Row hidden_{};
  unsigned tokens_ = 0;
  unsigned capacity_ = 0;  // of each cache, in tokens
};

// A request and its right answer.
struct Turn {
  std::string path;  // after the function's own
  std::string body;
  std::string answer;
};

struct TurnLimits {
  unsigned block_kilobytes = 2048;  // of one block
  unsigned tokens = 512;            // beyond which the sequence is begun anew
};

// A random request, which the model has taken.
Turn RandomTurn(SequenceModel& model, const TurnLimits& limits, std::mt19937& random);

// A request without a change. The answer is that of the last change.
Turn LookTurn(const SequenceModel& model);

// The request for the bytes of device memory, and the right answer.
Turn BytesTurn(const SequenceModel& model);

}  // namespace torpor::e2e
