#include "client_shim/core/trace/trace_summary.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace torpor::shim {
namespace {

constexpr std::string_view kPrefix = "torpor: trace: ";
// Rarer names beyond this number say little about possible improvements.
constexpr std::size_t kMaxNames = 8;

std::string Milliseconds(std::chrono::nanoseconds span) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(span.count()) / 1e6);
  return text;
}

std::string Counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

// Sorts by frequency, most frequent first, then by name.
template <typename Map, typename Count>
std::vector<typename Map::const_pointer> ByCount(const Map& map, const Count& count) {
  std::vector<typename Map::const_pointer> entries;
  entries.reserve(map.size());
  for (const auto& entry : map) entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
    return count(a->second) > count(b->second);
  });
  return entries;
}

template <typename Names>
std::string NamesLine(std::string_view kind, const Names& names) {
  if (names.empty()) return {};
  std::string line = std::string(kPrefix) + "  " + std::string(kind) + ": ";
  const auto entries = ByCount(names, [](std::uint64_t count) { return count; });
  const std::size_t shown = std::min(entries.size(), kMaxNames);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) line += ", ";
    line += std::to_string(entries[i]->second) + " x " + entries[i]->first;
  }
  if (entries.size() > shown)
    line += " and " + Counted(entries.size() - shown, "name", "names") + " more";
  return line + "\n";
}

}  // namespace

std::string_view NameOf(CallKind kind) {
  switch (kind) {
    case CallKind::kLocal:
      return "local";
    case CallKind::kAsynchronous:
      return "asynchronous";
    case CallKind::kSynchronous:
      return "synchronous";
  }
  return "";
}

std::string_view NameOf(TracedWaitFor what) {
  switch (what) {
    case TracedWaitFor::kExecutor:
      return "the executor";
    case TracedWaitFor::kDaemon:
      return "the daemon";
    case TracedWaitFor::kLease:
      return "a lease";
    case TracedWaitFor::kRoom:
      return "a slow executor";
    case TracedWaitFor::kWindow:
      return "room for bulk bytes";
  }
  return "";
}

void TraceSummary::Add(const FinishedCall& call) {
  const CallKind kind = call.kind();
  ++calls_[static_cast<std::size_t>(kind)];
  bytes_up_ += call.bytes_up;
  bytes_down_ += call.bytes_down;
  waited_ += call.waited;
  if (kind == CallKind::kSynchronous) {
    Synchronous& entry = synchronous_[{std::string(call.name), std::string(call.caller)}];
    ++entry.calls;
    entry.answers += call.answers;
    entry.waited += call.waited;
    return;
  }
  Names& names = kind == CallKind::kLocal ? local_ : asynchronous_;
  if (const auto known = names.find(call.name); known != names.end())
    ++known->second;
  else
    names.emplace(call.name, 1);
}

void TraceSummary::AddHold(TracedWaitFor what, std::chrono::nanoseconds span) {
  Hold& hold = holds_[static_cast<std::size_t>(what)];
  ++hold.times;
  hold.span += span;
}

std::string TraceSummary::Text(std::string_view title) const {
  std::string text =
      std::string(kPrefix) + std::string(title) + ": " +
      Counted(calls(CallKind::kSynchronous), "synchronous call", "synchronous calls");
  text += ", " + std::to_string(calls(CallKind::kAsynchronous)) + " asynchronous, " +
          std::to_string(calls(CallKind::kLocal)) + " local; " + std::to_string(bytes_up_) +
          " bytes up, " + std::to_string(bytes_down_) + " down, " +
          Counted(batches_, "batch", "batches") + "; waited " + Milliseconds(waited_) + "\n";
  for (const auto* entry : ByCount(synchronous_, [](const auto& of) { return of.calls; })) {
    const auto& [name, caller] = entry->first;
    const Synchronous& of = entry->second;
    text.append(kPrefix).append("  synchronous: ").append(std::to_string(of.calls));
    text.append(" x ").append(name).append(" by ").append(caller).append(": ");
    text.append(Counted(of.answers, "answer", "answers")).append(", ");
    text.append(Milliseconds(of.waited)).append("\n");
  }
  text += NamesLine(NameOf(CallKind::kAsynchronous), asynchronous_);
  text += NamesLine(NameOf(CallKind::kLocal), local_);
  for (std::size_t i = 0; i < holds_.size(); ++i) {
    if (holds_[i].times == 0) continue;
    text += std::string(kPrefix) + "  held up: " + std::to_string(holds_[i].times) + " x for " +
            std::string(NameOf(static_cast<TracedWaitFor>(i))) + ": " +
            Milliseconds(holds_[i].span) + "\n";
  }
  return text;
}

}  // namespace torpor::shim
