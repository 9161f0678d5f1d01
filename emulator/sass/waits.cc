#include "emulator/sass/waits.h"

#include <algorithm>
#include <string_view>

#include "emulator/sass/flow.h"

namespace torpor::sass {
namespace {

constexpr std::string_view kLoad = "ld.shared.";
constexpr std::string_view kVolatileLoad = "ld.volatile.shared.";
constexpr std::size_t kLongest = 64;  // statements of a loop that only waits

bool ChangesShared(const Statement& statement) {
  const std::string_view format = statement.format;
  return format.starts_with("st.shared.") || format.starts_with("atom.shared.") ||
         format.starts_with("bar.");
}

bool HasFixedAddress(const Statement& load, const SlotSet& written, const std::vector<bool>& made) {
  const Value& address = load.values.back();
  if (address.written) return true;  // a number
  if (address.kind == Value::Kind::kRegister) return !written[SlotOf(address.reg)];
  if (address.kind == Value::Kind::kTemporary) return !made[address.temporary];
  return true;
}

// The loop [first, end).
void MarkLoop(std::vector<Statement>& statements, std::size_t first, std::size_t end) {
  const auto begin_of_loop = statements.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end_of_loop = statements.begin() + static_cast<std::ptrdiff_t>(end);
  const auto loads = [](const Statement& statement) { return statement.format.starts_with(kLoad); };
  if (std::none_of(begin_of_loop, end_of_loop, loads)) return;
  if (std::any_of(begin_of_loop, end_of_loop, ChangesShared)) return;
  SlotSet written;
  std::uint32_t temporaries = 0;
  for (auto i = begin_of_loop; i != end_of_loop; ++i) {
    ForEachWrite(*i, [&](const Register& reg) { written.set(SlotOf(reg)); });
    for (const Value& value : i->values) temporaries = std::max(temporaries, value.temporary + 1);
  }
  // Temporaries whose value changes between iterations.
  std::vector<bool> made(temporaries);
  for (auto i = begin_of_loop; i != end_of_loop; ++i) {
    bool changes = false;
    ForEachRead(*i, [&](const Register& reg) { changes |= written[SlotOf(reg)]; });
    for (const Value& value : i->values) {
      if (value.kind == Value::Kind::kTemporary) changes |= made[value.temporary];
    }
    if (!changes || i->values.empty()) continue;
    const Value& result = i->values.front();
    if (result.kind == Value::Kind::kTemporary) made[result.temporary] = true;
  }
  for (auto i = begin_of_loop; i != end_of_loop; ++i) {
    if (!loads(*i) || !HasFixedAddress(*i, written, made)) continue;
    i->format.replace(0, kLoad.size(), kVolatileLoad);
  }
}

}  // namespace

void MarkWaits(std::vector<Statement>& statements) {
  for (std::size_t i = 0; i < statements.size(); ++i) {
    for (const std::uint64_t target : statements[i].targets) {
      if (target > statements[i].offset) continue;
      const auto first = std::lower_bound(
          statements.begin(), statements.end(), target,
          [](const Statement& statement, std::uint64_t at) { return statement.offset < at; });
      const auto begin = static_cast<std::size_t>(first - statements.begin());
      if (i + 1 - begin <= kLongest) MarkLoop(statements, begin, i + 1);
    }
  }
}

}  // namespace torpor::sass
