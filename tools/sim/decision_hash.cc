#include "tools/sim/decision_hash.h"

#include <bit>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "scheduler/event_fields.h"

// Every field enters the hash as a word; lists add their sizes, and optional fields whether there
// is a value.
namespace torpor::sim {
namespace {

std::uint64_t WordOf(double value) { return std::bit_cast<std::uint64_t>(value); }
std::uint64_t WordOf(Duration value) { return static_cast<std::uint64_t>(value.count()); }
std::uint64_t WordOf(TimePoint value) { return WordOf(value.time_since_epoch()); }
std::uint64_t WordOf(GpuIndex gpu) { return static_cast<std::uint64_t>(gpu.value); }
template <typename Tag>
std::uint64_t WordOf(Id<Tag> id) {
  return id.value;
}
template <typename T>
requires(std::is_integral_v<T> || std::is_enum_v<T>) std::uint64_t WordOf(T value) {
  return static_cast<std::uint64_t>(value);
}

// Adds one field of an event or action.
struct FieldAdder {
  DecisionHash& hash;

  template <typename T>
  void operator()(std::string_view, const T& value) const {
    hash.Add(WordOf(value));
  }
  template <typename T>
  void operator()(std::string_view name, const std::optional<T>& value) const {
    hash.Add(value.has_value() ? 1 : 0);
    if (value) (*this)(name, *value);
  }
  template <typename T>
  void operator()(std::string_view name, const std::vector<T>& values) const {
    hash.Add(values.size());
    for (const T& value : values) (*this)(name, value);
  }
};

}  // namespace

void DecisionHash::Add(const scheduler::Event& event, TimePoint now) {
  Add(event.index());
  Add(WordOf(now));
  std::visit([this](const auto& e) { scheduler::VisitFields(e, FieldAdder{*this}); }, event);
}

void DecisionHash::Add(const scheduler::Action& action) {
  Add(action.index());
  std::visit([this](const auto& a) { scheduler::VisitFields(a, FieldAdder{*this}); }, action);
}

}  // namespace torpor::sim
