#include "tests/e2e/sequence_model.h"

#include <algorithm>
#include <utility>

namespace torpor::e2e {
namespace {

using sequence::kWidth;

constexpr Bytes kAlignment = 512;
constexpr unsigned kProjectionWeights = kWidth * kWidth;

template <typename Elements>
std::uint64_t DigestOf(const Elements& elements) {
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < elements.size(); ++i) sum += sequence::Digest(elements[i], i);
  return sum;
}

Bytes Allocated(std::uint64_t elements) { return RoundUp(elements * sizeof(unsigned), kAlignment); }

unsigned UpTo(unsigned most, std::mt19937& random) {
  return std::uniform_int_distribution<unsigned>(0, most)(random);
}

using Member = std::pair<const char*, unsigned>;

Turn TurnOf(std::string path, std::initializer_list<Member> members, std::uint64_t answer) {
  std::string body = "{";
  for (const auto& [name, value] : members) {
    if (body.size() > 1) body += ",";
    body.append("\"").append(name).append("\":[").append(std::to_string(value)).append("]");
  }
  return {std::move(path), body + "}", "{\"sum\":" + std::to_string(answer) + "}\n"};
}

}  // namespace

std::vector<std::string> SequenceShape::Command() const {
  return {std::string(DRIVEN_DIR) + "/sequence_server",
          "--seed",
          std::to_string(seed),
          "--kilobytes",
          std::to_string(kilobytes),
          "--paged",
          is_paged ? "1" : "0"};
}

SequenceModel::SequenceModel(const SequenceShape& shape)
    : shape_(shape), table_count_(shape.kilobytes * sequence::kElementsPerKib) {
  for (unsigned i = 0; i < table_count_; ++i) {
    table_digest_ += sequence::Digest(sequence::TableElement(shape.seed, i), i);
  }
  for (unsigned layer = 0; layer < layers_.size(); ++layer) {
    std::vector<unsigned>& weights = layers_[layer].weights;
    weights.resize(std::size_t{sequence::kProjections} * kProjectionWeights);
    for (unsigned i = 0; i < weights.size(); ++i) {
      weights[i] = sequence::WeightElement(shape.seed, layer, i);
    }
  }
}

std::uint64_t SequenceModel::Step(unsigned token, unsigned count) {
  for (unsigned i = 0; i < count && tokens_ < sequence::kMaxTokens; ++i) {
    Append(token);
    token = sequence::NextToken(hidden_[0]);
  }
  return Answer();
}

std::uint64_t SequenceModel::Reset() {
  tokens_ = 0;
  capacity_ = 0;
  for (Layer& layer : layers_) {
    layer.keys.clear();
    layer.values.clear();
  }
  return Answer();
}

std::uint64_t SequenceModel::Allocate(unsigned block, unsigned kilobytes, unsigned value) {
  std::vector<unsigned> elements(std::size_t{kilobytes} * sequence::kElementsPerKib);
  for (unsigned i = 0; i < elements.size(); ++i) elements[i] = sequence::BlockElement(value, i);
  const std::uint64_t digest = DigestOf(elements);
  blocks_.at(block) = {std::move(elements), digest};
  return Answer();
}

std::uint64_t SequenceModel::Change(unsigned block, unsigned value) {
  Block& changed = blocks_.at(block);
  const std::size_t half = changed.elements.size() / 2;
  for (std::size_t i = 0; i < half; ++i) changed.elements[i] += value;
  changed.digest = DigestOf(changed.elements);
  return Answer();
}

std::uint64_t SequenceModel::Free(unsigned block) {
  blocks_.at(block) = {};
  return Answer();
}

void SequenceModel::Append(unsigned token) {
  if (tokens_ == capacity_) {
    capacity_ = shape_.is_paged  ? capacity_ + sequence::kPageTokens
                : capacity_ == 0 ? sequence::kFirstCapacity
                                 : 2 * capacity_;
  }
  for (unsigned i = 0; i < kWidth; ++i) {
    hidden_[i] = sequence::TableElement(shape_.seed, (token * kWidth + i) % table_count_);
  }
  for (Layer& layer : layers_) Attend(layer);
  ++tokens_;
}

void SequenceModel::Attend(Layer& layer) {
  const Row query = Project(layer, 0);
  layer.keys.push_back(Project(layer, 1));
  layer.values.push_back(Project(layer, 2));
  for (std::size_t token = 0; token < layer.keys.size(); ++token) {
    unsigned score = 0;
    for (unsigned i = 0; i < kWidth; ++i) score += query[i] * layer.keys[token][i];
    const unsigned attention = sequence::Attention(score);
    for (unsigned i = 0; i < kWidth; ++i) hidden_[i] += attention * layer.values[token][i];
  }
  for (unsigned& element : hidden_) element = sequence::Mix(element);
}

SequenceModel::Row SequenceModel::Project(const Layer& layer, unsigned projection) const {
  const unsigned* const matrix = &layer.weights[std::size_t{projection} * kProjectionWeights];
  Row result{};
  for (unsigned i = 0; i < kWidth; ++i) {
    for (unsigned j = 0; j < kWidth; ++j) result[j] += matrix[i * kWidth + j] * hidden_[i];
  }
  return result;
}

std::uint64_t SequenceModel::Answer() const {
  std::uint64_t answer = table_digest_ + (tokens_ > 0 ? DigestOf(hidden_) : 0);
  for (const Block& block : blocks_) answer += block.digest;
  return answer;
}

Bytes SequenceModel::CacheBytes() const {
  const unsigned piece = shape_.is_paged ? sequence::kPageTokens : capacity_;
  const unsigned pieces = capacity_ == 0 ? 0 : capacity_ / piece;
  return 2 * layers_.size() * pieces * Allocated(std::uint64_t{piece} * kWidth);
}

Bytes SequenceModel::bytes() const {
  // Hidden state, query, scores and the answer's sum.
  Bytes bytes =
      Allocated(kWidth) + Allocated(kWidth) + Allocated(sequence::kMaxTokens) + kAlignment;
  bytes += Allocated(table_count_) + CacheBytes();
  for (const Layer& layer : layers_) bytes += Allocated(layer.weights.size());
  for (const Block& block : blocks_) bytes += Allocated(block.elements.size());
  return bytes;
}

Turn RandomTurn(SequenceModel& model, const TurnLimits& limits, std::mt19937& random) {
  constexpr unsigned kMaxTokensAtOnce = 12;
  const unsigned block = UpTo(sequence::kMaxBlocks - 1, random);
  const unsigned value = UpTo(1u << 20, random);
  const unsigned kind = UpTo(15, random);
  if (model.tokens() + kMaxTokensAtOnce > limits.tokens || kind == 0) {
    return TurnOf("reset", {}, model.Reset());
  }
  if (kind <= 2) {
    const unsigned kilobytes = 1 + UpTo(limits.block_kilobytes - 1, random);
    return TurnOf("allocate", {{"block", block}, {"kilobytes", kilobytes}, {"value", value}},
                  model.Allocate(block, kilobytes, value));
  }
  if (kind == 3) return TurnOf("free", {{"block", block}}, model.Free(block));
  if (kind <= 5) {
    return TurnOf("change", {{"block", block}, {"value", value}}, model.Change(block, value));
  }
  const unsigned count = 1 + UpTo(kMaxTokensAtOnce - 1, random);
  return TurnOf("step", {{"token", value}, {"count", count}}, model.Step(value, count));
}

Turn LookTurn(const SequenceModel& model) {
  return TurnOf("step", {{"token", 0}, {"count", 0}}, model.Look());
}

Turn BytesTurn(const SequenceModel& model) { return TurnOf("bytes", {}, model.bytes()); }

}  // namespace torpor::e2e
