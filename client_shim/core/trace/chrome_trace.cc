#include "client_shim/core/trace/chrome_trace.h"

#include <cstdio>
#include <utility>

namespace torpor::shim {
namespace {

// The number of no thread of Linux.
constexpr int kSectionLine = 0;

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      quoted += '\\';
      quoted += character;
    } else if (code < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      quoted += escape;
    } else {
      quoted += character;
    }
  }
  return quoted + "\"";
}

std::string Microseconds(std::chrono::nanoseconds span) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(span.count()) / 1e3);
  return text;
}

}  // namespace

ChromeTrace::ChromeTrace(int process, std::string_view program)
    : process_(std::to_string(process)) {
  AddName("process_name", kSectionLine, program);
  AddName("thread_name", kSectionLine, "sections");
}

void ChromeTrace::AddName(std::string_view what, int thread, std::string_view name) {
  text_ += text_.empty() ? "[\n" : ",\n";
  text_ += "{\"ph\":\"M\",\"name\":" + Quoted(what) + ",\"pid\":" + process_ +
           ",\"tid\":" + std::to_string(thread) + ",\"args\":{\"name\":" + Quoted(name) + "}}";
}

void ChromeTrace::AddEvent(std::string_view name, std::string_view category, const Span& span,
                           std::string_view arguments) {
  text_ += ",\n{\"ph\":\"X\",\"name\":" + Quoted(name) + ",\"cat\":" + Quoted(category) +
           ",\"ts\":" + Microseconds(span.begin) + ",\"dur\":" + Microseconds(span.length) +
           ",\"pid\":" + process_ + ",\"tid\":" + std::to_string(span.thread) + ",\"args\":{" +
           std::string(arguments) + "}}";
}

void ChromeTrace::AddCall(const FinishedCall& call, const Span& span) {
  std::string arguments = "\"kind\":" + Quoted(NameOf(call.kind())) +
                          ",\"commands\":" + std::to_string(call.commands) +
                          ",\"answers\":" + std::to_string(call.answers) +
                          ",\"bytes_up\":" + std::to_string(call.bytes_up) +
                          ",\"bytes_down\":" + std::to_string(call.bytes_down);
  if (!call.caller.empty()) arguments += ",\"caller\":" + Quoted(call.caller);
  AddEvent(call.name, NameOf(call.kind()), span, arguments);
}

void ChromeTrace::AddWait(TracedWaitFor what, const Span& span) {
  AddEvent("wait for " + std::string(NameOf(what)), "wait", span, {});
}

void ChromeTrace::AddSection(std::string_view name, std::chrono::nanoseconds begin,
                             std::chrono::nanoseconds length) {
  AddEvent(name, "section", {begin, length, kSectionLine}, {});
}

std::string ChromeTrace::Take() { return std::exchange(text_, {}); }

}  // namespace torpor::shim
