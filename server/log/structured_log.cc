#include "server/log/structured_log.h"

#include <fmt/chrono.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace torpor::server {
namespace {

// Fields travel inside spdlog's payload: message, then for each field a separator, 'n' or 's'
// (number or text), key, separator, value. Values are cleaned of the separator. The event's source
// marks such a payload; text from a client cannot forge the mark.
constexpr char kSeparator = '\x1f';
constexpr const char* kEventSource = "LogEvent";

std::string_view TakeUntilSeparator(std::string_view& text) {
  const std::size_t end = std::min(text.find(kSeparator), text.size());
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return piece;
}

void Append(spdlog::memory_buf_t& line, std::string_view text) {
  line.append(text.data(), text.data() + text.size());
}

void AppendEscaped(spdlog::memory_buf_t& line, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      line.push_back('\\');
      line.push_back(c);
    } else if (c == '\n') {
      Append(line, "\\n");
    } else if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(line), "\\u{:04x}", static_cast<unsigned>(byte));
    } else {
      line.push_back(c);
    }
  }
}

void AppendQuoted(spdlog::memory_buf_t& line, std::string_view text) {
  line.push_back('"');
  AppendEscaped(line, text);
  line.push_back('"');
}

void AppendTime(spdlog::memory_buf_t& line, spdlog::log_clock::time_point time) {
  const auto since_epoch =
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch());
  const std::time_t seconds = since_epoch.count() / 1000;
  fmt::format_to(std::back_inserter(line), "{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds),
                 since_epoch.count() % 1000);
}

std::string_view View(spdlog::string_view_t text) { return {text.data(), text.size()}; }

// Takes the message off the payload and leaves the fields.
std::string_view TakeMessage(const spdlog::details::log_msg& message, std::string_view& payload) {
  return message.source.filename == kEventSource ? TakeUntilSeparator(payload)
                                                 : std::exchange(payload, {});
}

class TextFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    AppendTime(line, message.time);
    fmt::format_to(std::back_inserter(line), " {:<5} ",
                   View(spdlog::level::to_string_view(message.level)));
    std::string_view rest = View(message.payload);
    AppendEscaped(line, TakeMessage(message, rest));
    while (!rest.empty()) {
      const std::string_view key = TakeUntilSeparator(rest).substr(1);
      const std::string_view value = TakeUntilSeparator(rest);
      fmt::format_to(std::back_inserter(line), " {}=", key);
      if (value.empty() || value.find_first_of(" \"=\\") != std::string_view::npos) {
        AppendQuoted(line, value);
      } else {
        AppendEscaped(line, value);
      }
    }
    line.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<TextFormatter>();
  }
};

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    Append(line, "{\"time\":\"");
    AppendTime(line, message.time);
    fmt::format_to(std::back_inserter(line), "\",\"level\":\"{}\",\"message\":",
                   View(spdlog::level::to_string_view(message.level)));
    std::string_view rest = View(message.payload);
    AppendQuoted(line, TakeMessage(message, rest));
    while (!rest.empty()) {
      const std::string_view kind_and_key = TakeUntilSeparator(rest);
      const std::string_view value = TakeUntilSeparator(rest);
      line.push_back(',');
      AppendQuoted(line, kind_and_key.substr(1));
      line.push_back(':');
      kind_and_key.front() == 'n' ? Append(line, value) : AppendQuoted(line, value);
    }
    Append(line, "}\n");
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

LogField::LogField(std::string_view field_key, double number)
    : key(field_key), value(fmt::format("{:.3f}", number)), is_number(true) {}

void SetUpLog(LogLevel level, LogFormat format, std::FILE* file) {
  using Sink = spdlog::sinks::stdout_sink_base<spdlog::details::console_mutex>;
  auto sink = std::make_shared<Sink>(file);
  auto logger = std::make_shared<spdlog::logger>("torpor", std::move(sink));
  if (format == LogFormat::kJson) {
    logger->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    logger->set_formatter(std::make_unique<TextFormatter>());
  }
  logger->set_level(SpdlogLevel(level));
  spdlog::set_default_logger(std::move(logger));
}

void LogEvent(spdlog::level::level_enum level, std::string_view message,
              std::initializer_list<LogField> fields) {
  if (!spdlog::should_log(level)) return;
  std::string payload(message);
  for (const LogField& field : fields) {
    payload += kSeparator;
    payload += field.is_number ? 'n' : 's';
    payload += field.key;
    payload += kSeparator;
    for (const char c : field.value) payload += c == kSeparator ? ' ' : c;
  }
  const spdlog::source_loc source(kEventSource, 1, kEventSource);
  spdlog::log(source, level, spdlog::string_view_t(payload.data(), payload.size()));
}

}  // namespace torpor::server
