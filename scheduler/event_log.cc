#include "scheduler/event_log.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <type_traits>
#include <utility>

#include "scheduler/event_fields.h"

namespace torpor::scheduler {
namespace {

constexpr std::string_view kFirstWords = "torpor-events 6";
constexpr std::string_view kEventMark = "<";
constexpr std::string_view kActionMark = ">";

// --- Values as text -----------------------------------------------------------------------------

template <typename Number>
requires std::integral<Number> || std::floating_point<Number>
void Append(std::string& text, Number number) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), number).ptr;
  text.append(std::begin(digits), end);
}
void Append(std::string& text, bool value) { text += value ? '1' : '0'; }
template <typename Tag>
void Append(std::string& text, Id<Tag> id) {
  Append(text, id.value);
}
void Append(std::string& text, GpuIndex gpu) { Append(text, gpu.value); }
void Append(std::string& text, Duration duration) { Append(text, duration.count()); }
void Append(std::string& text, TimePoint when) { Append(text, when.time_since_epoch()); }
template <typename Enum>
requires std::is_enum_v<Enum>
void Append(std::string& text, Enum value) { text += WordOf(value); }
template <typename Value>
void Append(std::string& text, const std::optional<Value>& value) {
  if (!value) {
    text += '-';
    return;
  }
  Append(text, *value);
}
template <typename Value>
void Append(std::string& text, const std::vector<Value>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ',';
    Append(text, values[i]);
  }
}

// False where the text is not what Append makes of a value.
template <typename Number>
requires std::integral<Number> || std::floating_point<Number>
bool Parse(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return false;
  if constexpr (std::floating_point<Number>) {
    if (!std::isfinite(number)) return false;
  }
  // Another way to write the same, such as 007.
  std::string again;
  Append(again, number);
  return again == text;
}
bool Parse(std::string_view text, bool& value) {
  value = text == "1";
  return value || text == "0";
}
template <typename Tag>
bool Parse(std::string_view text, Id<Tag>& id) {
  return Parse(text, id.value);
}
bool Parse(std::string_view text, GpuIndex& gpu) { return Parse(text, gpu.value); }
bool Parse(std::string_view text, Duration& duration) {
  Duration::rep count = 0;
  if (!Parse(text, count)) return false;
  duration = Duration(count);
  return true;
}
bool Parse(std::string_view text, TimePoint& when) {
  Duration since{};
  if (!Parse(text, since)) return false;
  when = TimePoint(since);
  return true;
}
template <typename Enum>
requires std::is_enum_v<Enum>
bool Parse(std::string_view text, Enum& value) {
  for (std::size_t i = 0; i < kWordsOf<Enum>.size(); ++i) {
    if (text != kWordsOf<Enum>[i]) continue;
    value = static_cast<Enum>(i);
    return true;
  }
  return false;
}
template <typename Value>
bool Parse(std::string_view text, std::optional<Value>& value) {
  value.reset();
  return text == "-" || Parse(text, value.emplace());
}
template <typename Value>
bool Parse(std::string_view text, std::vector<Value>& values) {
  values.clear();
  if (text.empty()) return true;
  for (;;) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (!Parse(text.substr(0, comma), values.emplace_back())) return false;
    if (comma == text.size()) return true;
    text.remove_prefix(comma + 1);
  }
}

// --- Lines --------------------------------------------------------------------------------------

template <typename Fields>
void AppendFields(std::string& line, const Fields& fields) {
  VisitFields(fields, [&line](std::string_view name, const auto& value) {
    line += ' ';
    line += name;
    line += '=';
    Append(line, value);
  });
}

template <typename Fields>
std::string EncodeLine(TimePoint when, std::string_view mark, const Fields& fields) {
  std::string line;
  Append(line, when);
  line += ' ';
  line += mark;
  line += ' ';
  line += kNameOf<Fields>;
  AppendFields(line, fields);
  return line;
}

// Takes words, which single spaces part, from the front of a line.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  std::string_view Take() {
    if (!rest_) return {};
    const std::size_t space = rest_->find(' ');
    const std::string_view word = rest_->substr(0, space);
    rest_ =
        space == std::string_view::npos ? std::nullopt : std::optional(rest_->substr(space + 1));
    return word;
  }
  bool is_empty() const { return !rest_; }

 private:
  std::optional<std::string_view> rest_;
};

std::string Quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

// What is wrong with a word that is to be `name`=value, or nothing.
template <typename Value>
std::string ParseField(std::string_view word, std::string_view name, Value& value) {
  const bool has_name =
      word.size() > name.size() && word.substr(0, name.size()) == name && word[name.size()] == '=';
  if (!has_name) return "expected " + std::string(name) + "=, found " + Quoted(word);
  const std::string_view text = word.substr(name.size() + 1);
  return Parse(text, value) ? "" : Quoted(text) + " is no " + std::string(name);
}

// The same for all that are left.
template <typename Fields>
std::string ParseFields(Words& words, Fields& fields) {
  std::string error;
  VisitFields(fields, [&](std::string_view name, auto& value) {
    if (error.empty()) error = ParseField(words.Take(), name, value);
  });
  if (error.empty() && !words.is_empty()) error = "expected the end, found " + Quoted(words.Take());
  return error;
}

template <typename Alternative>
bool TakeEvent(std::string_view name, Words& words, Decoded<LoggedEvent>& decoded) {
  if (name != kNameOf<Alternative>) return false;
  Alternative event;
  decoded.error = ParseFields(words, event);
  decoded.value->event = std::move(event);
  return true;
}

// Whether the name is one of the alternatives'.
template <typename... Alternatives>
bool TakeAnyEvent(std::string_view name, Words& words, Decoded<LoggedEvent>& decoded,
                  const std::variant<Alternatives...>*) {
  return (TakeEvent<Alternatives>(name, words, decoded) || ...);
}

}  // namespace

std::string Encode(const EventLogHeader& header) {
  std::string line(kFirstWords);
  line += " policy=" + header.policy + " seed=";
  Append(line, header.seed);
  AppendFields(line, header.options);
  return line;
}

std::string Encode(const Event& event, TimePoint when) {
  return std::visit([when](const auto& e) { return EncodeLine(when, kEventMark, e); }, event);
}

std::string Encode(const Action& action, TimePoint when) {
  return std::visit([when](const auto& a) { return EncodeLine(when, kActionMark, a); }, action);
}

Decoded<EventLogHeader> DecodeHeader(std::string_view line) {
  Decoded<EventLogHeader> decoded;
  const std::string start = std::string(kFirstWords) + ' ';
  if (line.substr(0, start.size()) != start) {
    decoded.error = "expected " + Quoted(kFirstWords) + ": not an event log, or of another release";
    return decoded;
  }
  Words words(line.substr(start.size()));
  EventLogHeader header;
  constexpr std::string_view kPolicy = "policy=";
  const std::string_view policy = words.Take();
  if (policy.substr(0, kPolicy.size()) == kPolicy) {
    header.policy = policy.substr(kPolicy.size());
    decoded.error = ParseField(words.Take(), "seed", header.seed);
  } else {
    decoded.error = "expected policy=, found " + Quoted(policy);
  }
  if (decoded.error.empty()) decoded.error = ParseFields(words, header.options);
  if (decoded.error.empty()) decoded.value = std::move(header);
  return decoded;
}

Decoded<LoggedEvent> DecodeEvent(std::string_view line) {
  Decoded<LoggedEvent> decoded;
  decoded.value.emplace();
  Words words(line);
  const std::string_view when = words.Take();
  if (!Parse(when, decoded.value->when)) {
    decoded.error = Quoted(when) + " is no time in nanoseconds";
  } else if (const std::string_view mark = words.Take(); mark != kEventMark) {
    decoded.error = "expected " + Quoted(kEventMark) + ", found " + Quoted(mark);
  } else if (const std::string_view name = words.Take();
             !TakeAnyEvent(name, words, decoded, static_cast<const Event*>(nullptr))) {
    decoded.error = "there is no event " + Quoted(name);
  }
  if (!decoded.error.empty()) decoded.value.reset();
  return decoded;
}

bool IsActionLine(std::string_view line) {
  Words words(line);
  words.Take();
  return words.Take() == kActionMark;
}

}  // namespace torpor::scheduler
