#include "memory/trace/allocation_trace.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace torpor::memory {
namespace {

constexpr std::string_view kFirstLine = "torpor-allocation-trace 1";

using Kind = TraceEvent::Kind;

struct LineShape {
  std::string_view word;
  Kind kind;
  std::size_t numbers;  // how many of function, block and bytes follow
  std::string_view usage;
};

constexpr std::array<LineShape, 5> kShapes = {{
    {"load", Kind::kLoad, 1, "load FUNCTION"},
    {"evict", Kind::kEvict, 1, "evict FUNCTION"},
    {"alloc", Kind::kAllocate, 3, "alloc FUNCTION BLOCK BYTES"},
    {"free", Kind::kFree, 2, "free FUNCTION BLOCK"},
    {"idle", Kind::kIdle, 0, "idle"},
}};

const LineShape& ShapeOf(Kind kind) { return kShapes[static_cast<std::size_t>(kind)]; }

std::optional<std::uint64_t> ParseNumber(std::string_view text, std::uint64_t max) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > max) return std::nullopt;
  return value;
}

// The state after the lines read so far.
class TraceState {
 public:
  // Returns why the event cannot happen; empty if the event can.
  std::string Apply(const TraceEvent& event) {
    const auto function = [&] { return absl::StrCat("function ", event.function); };
    const auto block = [&] { return absl::StrCat("block ", event.block, " of ", function()); };
    const bool is_loaded = loaded_.contains(event.function);
    switch (event.kind) {
      case Kind::kLoad:
        loaded_.insert(event.function);
        return "";
      case Kind::kEvict:
        return loaded_.erase(event.function) > 0 ? "" : function() + " is not loaded";
      case Kind::kAllocate:
        if (!is_loaded) return function() + " is not loaded";
        if (blocks_[event.function].insert(event.block).second) return "";
        return block() + " is there already";
      case Kind::kFree:
        return blocks_[event.function].erase(event.block) > 0 ? "" : block() + " is not allocated";
      case Kind::kIdle:
        return "";
    }
    return "";
  }

 private:
  std::set<std::uint32_t> loaded_;
  std::map<std::uint32_t, std::set<std::uint32_t>> blocks_;
};

// Makes a word of any length and bytes fit for a message.
std::string Quoted(const std::string& word) {
  constexpr std::size_t kMax = 40;
  return absl::StrCat("\"", absl::CHexEscape(word.substr(0, kMax)), word.size() > kMax ? "..." : "",
                      "\"");
}

absl::StatusOr<TraceEvent> ParseLine(const std::vector<std::string>& words) {
  for (const LineShape& shape : kShapes) {
    if (words.front() != shape.word) continue;
    if (words.size() != shape.numbers + 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("should be \"", std::string(shape.usage), "\""));
    }
    constexpr std::uint64_t kMaxId = std::numeric_limits<std::uint32_t>::max();
    constexpr std::array<std::uint64_t, 3> kMax = {kMaxId, kMaxId, kMaxTraceBlockBytes};
    std::array<std::uint64_t, 3> numbers{};
    for (std::size_t i = 0; i < shape.numbers; ++i) {
      const auto number = ParseNumber(words[i + 1], kMax[i]);
      if (!number) {
        return absl::InvalidArgumentError(
            absl::StrCat(Quoted(words[i + 1]), " is not a number from 0 to ", kMax[i]));
      }
      numbers[i] = *number;
    }
    if (shape.kind == Kind::kAllocate && numbers[2] == 0) {
      return absl::InvalidArgumentError("a block has at least one byte");
    }
    return TraceEvent{shape.kind, static_cast<std::uint32_t>(numbers[0]),
                      static_cast<std::uint32_t>(numbers[1]), numbers[2]};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      Quoted(words.front()), " is no event; there are load, evict, alloc, free and idle"));
}

}  // namespace

absl::StatusOr<AllocationTrace> ParseTrace(std::string_view text, std::string_view name) {
  AllocationTrace trace;
  TraceState state;
  std::size_t number = 0;
  const auto wrong = [&](std::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name), ":", number, ": ", std::string(what)));
  };
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    if (number == 1) {
      const absl::string_view line = absl::StripSuffix(part, "\r");
      if (std::string_view(line.data(), line.size()) != kFirstLine) {
        return wrong(absl::StrCat("the first line should be \"", std::string(kFirstLine), "\""));
      }
      continue;
    }
    const std::vector<std::string> words =
        absl::StrSplit(part.substr(0, part.find('#')), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    const absl::StatusOr<TraceEvent> event = ParseLine(words);
    if (!event.ok()) return wrong(std::string(event.status().message()));
    if (const std::string why = state.Apply(*event); !why.empty()) return wrong(why);
    trace.push_back(*event);
  }
  return trace;
}

std::string FormatTrace(const AllocationTrace& trace) {
  std::string text = absl::StrCat(std::string(kFirstLine), "\n");
  for (const TraceEvent& event : trace) {
    const LineShape& shape = ShapeOf(event.kind);
    const std::array<std::uint64_t, 3> numbers = {event.function, event.block, event.bytes};
    absl::StrAppend(&text, std::string(shape.word));
    for (std::size_t i = 0; i < shape.numbers; ++i) absl::StrAppend(&text, " ", numbers[i]);
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace torpor::memory
