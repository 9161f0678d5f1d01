#include "tests/chaos/program.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>

#include "tests/e2e/driven/chain_numbers.h"

namespace torpor::chaos {
namespace {

constexpr unsigned kMaxValue = 1U << 20;

std::string AnswerOf(std::uint64_t sum) { return fmt::format("{{\"sum\":{}}}\n", sum); }

std::string PathOf(const char* program) { return std::string(DRIVEN_DIR) + "/" + program; }

class ChainProgram final : public Program {
 public:
  std::vector<std::string> Command() const override { return {PathOf("chain_server")}; }
  void Begin() override { hash_ = e2e::kChainBegin; }

  e2e::Turn Next(std::mt19937& random) override {
    const auto value = static_cast<unsigned>(random() % kMaxValue);
    const auto steps = static_cast<unsigned>(random() % kOneLongOf == 0 ? random() % kMaxLong
                                                                        : random() % kMaxShort);
    for (unsigned step = 0; step < steps; ++step) {
      hash_ = hash_ * e2e::kChainFactor + value + value / 2 + step;
    }
    return TurnOf(value, steps);
  }
  e2e::Turn Inquiry() const override { return TurnOf(/*value=*/0, /*steps=*/0); }
  std::unique_ptr<Program> Clone() const override { return std::make_unique<ChainProgram>(*this); }

 private:
  // Some requests are long enough to be killed in, most are short.
  static constexpr unsigned kOneLongOf = 8;
  static constexpr unsigned kMaxLong = 1000;
  static constexpr unsigned kMaxShort = 40;

  e2e::Turn TurnOf(unsigned value, unsigned steps) const {
    return {"chain", fmt::format(R"({{"value":[{}],"steps":[{}]}})", value, steps),
            AnswerOf(hash_)};
  }

  unsigned hash_ = e2e::kChainBegin;
};

class SequenceProgram final : public Program {
 public:
  explicit SequenceProgram(unsigned number)
      : shape_{.seed = number,
               .kilobytes = kLeastTable + number * kLargerTable % kMaxTable,
               .is_paged = number % 2 == 0} {}

  std::vector<std::string> Command() const override { return shape_.Command(); }
  void Begin() override { model_.emplace(shape_); }
  e2e::Turn Next(std::mt19937& random) override { return RandomTurn(*model_, kLimits, random); }
  e2e::Turn Inquiry() const override { return LookTurn(*model_); }
  std::unique_ptr<Program> Clone() const override {
    return std::make_unique<SequenceProgram>(*this);
  }

 private:
  static constexpr unsigned kLeastTable = 256;
  static constexpr unsigned kMaxTable = 4096;
  static constexpr unsigned kLargerTable = 300;
  static constexpr e2e::TurnLimits kLimits{.block_kilobytes = 1024, .tokens = 200};

  const e2e::SequenceShape shape_;
  std::optional<e2e::SequenceModel> model_;
};

class LayersProgram final : public Program {
 public:
  explicit LayersProgram(bool has_pointers) : has_pointers_(has_pointers) {}

  std::vector<std::string> Command() const override {
    return {PathOf("layers_server"), "--layers", std::to_string(kLayers), "--mebibytes", "1"};
  }

  void Begin() override {
    for (unsigned i = 0; i < kLayers; ++i) values_.at(i) = i;
  }

  e2e::Turn Next(std::mt19937& random) override {
    const auto number = static_cast<unsigned>(random() % kMaxValue);
    switch (random() % 8) {
      case 0:
        values_[0] = number;
        return {"upload", Body("value", number), AnswerOf(kElements * std::uint64_t{number})};
      case 1:
        for (unsigned& value : values_) value += number;
        return {"add", Body("value", number), AnswerOf(Sum(1))};
      case 2:
      case 3:
      case 4:
        if (!has_pointers_) break;
        return {"follow", Body("layer", number),
                AnswerOf(kElements * std::uint64_t{values_.at(number % kLayers)})};
      default:
        break;
    }
    return {"run", Body("stride", number), AnswerOf(Sum(number))};
  }
  e2e::Turn Inquiry() const override { return {"run", Body("stride", 1), AnswerOf(Sum(1))}; }
  std::unique_ptr<Program> Clone() const override { return std::make_unique<LayersProgram>(*this); }

 private:
  static constexpr unsigned kLayers = 5;
  static constexpr std::uint64_t kElements = 1 << 18;

  static std::string Body(const char* member, unsigned value) {
    return fmt::format(R"({{"{}":[{}]}})", member, value);
  }
  std::uint64_t Sum(unsigned stride) const {
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < kLayers; ++i) sum += values_.at(i * stride % kLayers);
    return sum * kElements;
  }

  const bool has_pointers_;
  std::array<unsigned, kLayers> values_{};
};

}  // namespace

std::unique_ptr<Program> MakeProgram(unsigned number, bool has_pointers) {
  switch (number % 3) {
    case 0:
      return std::make_unique<ChainProgram>();
    case 1:
      return std::make_unique<SequenceProgram>(number);
    default:
      return std::make_unique<LayersProgram>(has_pointers);
  }
}

}  // namespace torpor::chaos
